# SPDX-License-Identifier: GPL-2.0-or-later
"""Write a file completely or not at all: to a draft in the same folder, which is then renamed."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fwlab.model.errors import BadInput, FwlabError


def write_atomically(
    path: Path, content: str | bytes, *, make_folder: bool = True, error: type[FwlabError] = BadInput
) -> Path:
    """Write `content` to `path` and make its folder. On failure raises `error`; the file is then unchanged."""
    # What UTF-8 cannot encode (half a character of a file's name) is escaped.
    data = content if isinstance(content, bytes) else content.encode("utf-8", errors="backslashreplace")
    draft = None
    with write_errors_as(path, error):
        try:
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            draft = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            draft.chmod(0o666 & ~_umask())  # mkstemp makes it private; a report is meant to be shared
            draft.replace(path)
        finally:
            if draft is not None:
                with contextlib.suppress(OSError):
                    draft.unlink()
    return path


@contextlib.contextmanager
def write_errors_as(path: Path, error: type[FwlabError] = BadInput) -> Iterator[None]:
    """An OSError in the body becomes an `error` that says `path` cannot be written.

    Use CannotMeasure for what a session needs to measure: no student fails because a disk is full.
    """
    try:
        yield
    except OSError as trouble:
        message = f"{path}: cannot be written: {trouble.strerror or trouble}"
        raise error(message, "make room there (`df -h`), or name another folder") from trouble


def check_writable(folder: Path) -> None:
    """Raise BadInput if `folder` cannot be written to: before an hour of measuring, not after it."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    with write_errors_as(folder), tempfile.TemporaryFile(dir=there) as probe:
        probe.write(b"x" * 4096)
        probe.flush()


def _umask() -> int:
    """Read, not set and restored with os.umask: another thread may create a file in between."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))
