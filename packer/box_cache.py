# SPDX-License-Identifier: GPL-2.0-or-later
"""Content keys of images, and the directory that keeps what was built under them.

A thing in the cache (a box or a base) is trusted only if the record beside it, `<name>.json`, holds its
SHA-256. The record is written first and the thing is renamed into place last, so that an interrupted build
leaves nothing that passes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# Room for a base's raw disk, Packer's copy of it, the compressed copy and the box.
NEEDED_BYTES = 3 << 30


class BuildError(Exception):
    """What went wrong, and in `hint` the next step."""

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.hint = hint


def cache_directory() -> Path:
    """$FWLAB_CACHE, else /var/cache/fwlab for root, else fwlab below $XDG_CACHE_HOME or ~/.cache."""
    if chosen := os.environ.get("FWLAB_CACHE"):
        return Path(chosen).resolve()
    if os.geteuid() == 0:
        return Path("/var/cache/fwlab")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fwlab"


def _files(root: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        found = [path for path in root.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]
        if not found:
            raise BuildError(f"{root / pattern} matches no file", "is this checkout complete?")
        yield from found


def _hash(root: Path, files: Iterator[Path], settings: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in sorted(set(files)):
        kind = "x" if os.access(path, os.X_OK) else "-"
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)} {kind} {content}\n".encode())
    return digest.hexdigest()


def base_key(root: Path, image: str, settings: dict[str, str]) -> str:
    """Hash (64 hex digits) of all that decides an image's base."""
    files = _files(root, "packer/base/*", "provision/run", "provision/common/*", f"provision/{image}/*")
    return _hash(root, files, settings)


def content_key(root: Path, image: str, settings: dict[str, str]) -> str:
    """Hash (64 hex digits) of all that decides what is in an image.

    root: the checkout. settings: variables from outside (base_url, base_checksum; trex_sha256 where the image
    holds TRex). The tools that merely drive the build are left out: mending a message here must not cost a rebuild.
    """
    wanted = ["packer/*.pkr.hcl", "packer/seed", "packer/base/*", "provision/run", "provision/idempotence_check"]
    wanted += ["provision/cleanup", "provision/common/*", f"provision/{image}/*"]
    if settings["base_checksum"]:
        wanted += ["packer/cloud/*"]
    files = list(_files(root, *wanted))
    if image == "generator":
        engine = _files(root, "engine/Makefile", "engine/*.c", "engine/*.h")
        files += [path for path in engine if not path.name.endswith(".skel.h")]
    return _hash(root, iter(files), settings)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_path(path: Path) -> Path:
    """Where the record of a cached file is."""
    return path.with_name(path.name + ".json")


def cached(path: Path) -> dict | None:
    """The record of a cached file if the file is whole; None if it is missing, cut short or altered."""
    try:
        record = json.loads(record_path(path).read_text())
        if path.stat().st_size != record["size"] or sha256_of(path) != record["sha256"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record


def publish(made: Path, path: Path, extra: dict) -> dict:
    """Moves a finished file into the cache and returns its record (sha256, size and `extra`).

    made must lie on the cache's own file system, for the move to be atomic.
    """
    record = {"sha256": sha256_of(made), "size": made.stat().st_size, **extra}
    draft = made.with_name(made.name + ".json")
    draft.write_text(json.dumps(record, indent=1) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.replace(record_path(path))
    made.replace(path)
    return record


def need_room(directory: Path, needed: int = NEEDED_BYTES) -> None:
    """Raises BuildError if the file system of `directory` has less than `needed` bytes left."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise BuildError(
            f"{directory}: {free >> 20} MiB are free, a build needs {needed >> 20} MiB",
            "make room there, or set FWLAB_CACHE to a directory with more",
        )


@contextmanager
def locked(path: Path, stopped: Callable[[], bool]) -> Iterator[None]:
    """Holds the lock file `path`, so that two builds of one image wait for each other.

    Raises BuildError when `stopped` says so while it waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stopped():
                    raise BuildError(f"{path.name}: stopped while another build of it ran") from None
                time.sleep(0.2)
        yield
