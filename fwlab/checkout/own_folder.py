# SPDX-License-Identifier: GPL-2.0-or-later
"""A temporary folder of one process. If that is killed, the next process that makes one of this kind removes it."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def _remove_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def own_folder(
    prefix: str, inside: Path | None = None, *, remove: Callable[[Path], None] = _remove_tree
) -> Iterator[Path]:
    """Make a folder, and remove it when the context ends.

    prefix  of its name, for this kind of folder only
    inside  a folder that is made if missing; default: that of temporary files

    A lock on the folder shows that its process lives.
    """
    parent = inside or Path(tempfile.gettempdir())
    parent.mkdir(parents=True, exist_ok=True)
    for folder in parent.glob(f"{prefix}*/"):
        with contextlib.suppress(OSError), _locked(folder):
            remove(folder)
    with _new(prefix, parent) as folder:
        try:
            yield folder
        finally:
            remove(folder)


@contextlib.contextmanager
def _new(prefix: str, parent: Path) -> Iterator[Path]:
    with contextlib.ExitStack() as held:
        while True:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            try:
                held.enter_context(_locked(folder))
            except (BlockingIOError, FileNotFoundError):  # another process took it for one that was left behind
                continue
            except OSError:  # no locks on this file system: nothing is ever taken for left behind
                pass
            if folder.exists():
                break
            held.close()
        yield folder


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. Raises OSError if another process holds it, or if the folder is another user's."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.getuid():
            raise PermissionError(folder)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
