# SPDX-License-Identifier: GPL-2.0-or-later
"""Boxes: their content keys, the cache that keeps them, and .fwlab/images.json, the list of those that a checkout uses.

A content key is a hash of everything that decides what is in an image or in its base. The code that drives the build is
not part of it: a reworded message must not cost a rebuild.

A file in the cache (a box or a base) is trusted only if its record, `<name>.json` next to it, holds its SHA-256. The
record is written first and the file is renamed into place last, so an interrupted build leaves nothing that is trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from fwlab.checkout.atomic_write import write_atomically
from fwlab.dut.registry import DUTS
from fwlab.model.errors import BuildError, CannotMeasure

if TYPE_CHECKING:  # Vagrant's planner imports this module, and not pydantic
    from fwlab.checkout.project import Project


def base_key(root: Path, image: str, settings: dict[str, str]) -> str:
    """The key (64 hex digits) of an image's base: the root file system before Packer provisions it."""
    full = ["packer/full-kernel/*"] if "kernel" in settings else []
    files = _files(root, "packer/base/*", "provision/run", "provision/common/*", f"provision/{image}/*", *full)
    return _hash(root, files, settings)


def engine_key(root: Path) -> str:
    """The key (64 hex digits) of the replay engine that the generator's image contains."""
    return _hash(root, [*_engine(root), *_files(root, "packer/base/*")], {})


def _engine(root: Path) -> list[Path]:
    files = _files(root, "engine/Makefile", "engine/*.c", "engine/*.h")
    return [path for path in files if not path.name.endswith(".skel.h")]


def content_key(root: Path, image: str, settings: dict[str, str]) -> str:
    """The key (64 hex digits) of an image.

    root      the checkout
    settings  variables from outside: base_url, base_checksum; trex_sha256 if the image contains TRex; kernel if it is
              not the usual one; system if it is not Linux
    """
    # All templates but the one that names plugins, which not each Packer reads.
    wanted = [
        "packer/[!p]*.pkr.hcl",
        "packer/seed",
        "provision/run",
        "provision/idempotence_check",
        f"provision/{image}/*",
    ]
    if "system" not in settings:
        wanted += ["packer/base/*", "provision/cleanup", "provision/common/*"]
        wanted += ["packer/cloud/*"] if settings["base_checksum"] else []
        wanted += ["packer/full-kernel/*"] if "kernel" in settings else []
    files = list(_files(root, *wanted))
    if image == "generator":
        files += _engine(root)
    return _hash(root, files, settings)


def _files(root: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        found = [path for path in root.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]
        if not found:
            raise BuildError(f"{root / pattern} matches no file", "is this checkout complete?")
        yield from found


def _hash(root: Path, files: Iterable[Path], settings: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in sorted(set(files)):
        kind = "x" if os.access(path, os.X_OK) else "-"
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)} {kind} {content}\n".encode())
    return digest.hexdigest()


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


#: Built from Debian.
LINUX_IMAGES = ("dut-linux", "generator", "sink")
#: Built from an image of the makers of the DUT's system, which is named.
MAKERS = {f"dut-{name}": system for name, system in DUTS.items() if system.image}
IMAGES = (*LINUX_IMAGES, *MAKERS)
#: By image: box, key, its settings, path, sha256, manifest, what is known of TRex if the image contains it (trex), and
#: of the image of the system's makers (by the system's name).
Boxes = dict[str, dict[str, Any]]


def outdated(root: Path, boxes: Mapping[str, Any], images: Iterable[str]) -> list[str]:
    """Of these images, those whose listed box was built from other files than the checkout at `root` has.

    Unknown, and so not among them, are boxes that are listed without settings, and those of a folder that builds none.
    """
    if not (root / "packer").is_dir():
        return []
    listed = {image: boxes[image] for image in images if "settings" in boxes.get(image, {})}
    return [image for image, box in listed.items() if content_key(root, image, box["settings"]) != box["key"]]


def boxes_path(project: Project) -> Path:
    """The file that lists the boxes built here."""
    return project.state / "images.json"


def built_boxes(project: Project) -> Boxes:
    """Raises CannotMeasure if no box was built."""
    try:
        boxes = json.loads(boxes_path(project).read_text())
        if not isinstance(boxes, dict):
            raise ValueError("not a list of boxes")
    except (OSError, ValueError, RecursionError) as error:
        raise CannotMeasure("the boxes are not built", "make boxes") from error
    return boxes


def kernels_of_boxes(project: Project) -> list[str]:
    """The kernels of the boxes that were built; none if none was."""
    with suppress(CannotMeasure):
        return [str(box.get("manifest", {}).get("kernel", "")) for box in built_boxes(project).values()]
    return []


def add_boxes(project: Project, boxes: Boxes, without: Sequence[str] = ()) -> None:
    """Write these boxes over those that are listed, and take those `without` from the list. Raises BuildError."""
    known: Boxes = {}
    with suppress(CannotMeasure):
        known = built_boxes(project)
    listed = {image: box for image, box in {**known, **boxes}.items() if image not in without}
    write_atomically(boxes_path(project), json.dumps(listed, indent=1) + "\n", error=BuildError)
