# SPDX-License-Identifier: GPL-2.0-or-later
"""The directory that keeps what was built, by content key.

A file in the cache (a box or a base) is trusted only if its record, `<name>.json` beside it, holds its SHA-256. The
record is written first and the file is renamed into place last, so an interrupted build leaves nothing that is trusted.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from fwlab.host.atomic_write import write_atomically
from fwlab.images.errors import BuildError

#: Room for a base's raw disk, Packer's copy of it, the compressed copy and the box.
NEEDED_BYTES = 3 << 30
#: How often a build that waits for a lock asks whether it was stopped (s).
POLL_S = 0.2


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_path(path: Path) -> Path:
    """The record of a cached file."""
    return path.with_name(path.name + ".json")


def cached(path: Path) -> dict[str, Any] | None:
    """The record of a cached file if the file is whole; None if it is missing, cut short or altered."""
    try:
        record = json.loads(record_path(path).read_text())
        if path.stat().st_size != record["size"] or sha256_of(path) != record["sha256"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return dict(record)


def publish(made: Path, path: Path, extra: dict[str, Any]) -> dict[str, Any]:
    """Move a finished file into the cache; returns its record: sha256, size and `extra`.

    `made` must be on the cache's own file system, so that the move is atomic.
    """
    record = {"sha256": sha256_of(made), "size": made.stat().st_size, **extra}
    write_atomically(record_path(path), json.dumps(record, indent=1) + "\n", error=BuildError)
    made.replace(path)
    return record


def need_room(directory: Path, needed: int = NEEDED_BYTES) -> None:
    """Raise BuildError if the file system of `directory` has less than `needed` bytes left."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise BuildError(
            f"{directory}: {free >> 20} MiB free, a build needs {needed >> 20} MiB",
            "make room there, or set FWLAB_CACHE to a directory with more",
        )


@contextmanager
def locked(path: Path, stopped: Callable[[], bool]) -> Iterator[None]:
    """Hold the lock file `path`: one build of an image at a time. Raises BuildError if stopped while waiting."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=POLL_S)
        except Timeout:
            if stopped():
                raise BuildError(f"{path.name}: stopped while another build of it ran") from None
    try:
        yield
    finally:
        lock.release()
