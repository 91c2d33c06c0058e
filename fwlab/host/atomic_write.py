# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are either whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fwlab.model.errors import BadInput, FwlabError


def write_atomically(
    path: Path, content: str | bytes, *, make_folder: bool = True, error: type[FwlabError] = BadInput
) -> Path:
    """Write `content` to `path`, making its folder. Raises `error` naming the file, which is then unchanged."""
    # What UTF-8 cannot say (half a character of a file's name) is escaped rather than lost with all the rest.
    data = content if isinstance(content, bytes) else content.encode("utf-8", errors="backslashreplace")
    draft = None
    with told_if_unwritable(path, error):
        try:
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            draft = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            draft.chmod(0o666 & ~_umask())  # mkstemp makes it private, a report is to be handed on
            draft.replace(path)
        finally:
            if draft is not None:
                with contextlib.suppress(OSError):
                    draft.unlink()
    return path


@contextlib.contextmanager
def told_if_unwritable(path: Path, error: type[FwlabError] = BadInput) -> Iterator[None]:
    """Whatever the system says against writing `path` becomes an `error` that names it.

    What a session needs in order to measure is a CannotMeasure: no student fails because a disk is full.
    """
    try:
        yield
    except OSError as trouble:
        message = f"{path}: cannot be written: {trouble.strerror or trouble}"
        raise error(message, "make room there (`df -h`), or name another folder") from trouble


def refuse_unwritable(folder: Path) -> None:
    """Raises BadInput where nothing can be written into `folder`: told before an hour of measuring, not after it."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with told_if_unwritable(folder), tempfile.TemporaryFile(dir=there) as probe:
        probe.write(b"x" * 4096)
        probe.flush()


def _umask() -> int:
    """Read, not set and restored with os.umask: another thread may create a file in between."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))
