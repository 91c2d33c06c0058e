# SPDX-License-Identifier: GPL-2.0-or-later
"""Boxes that travel: a folder with what one build left in the cache, for hosts that shall not build.

The folder has the files under the names that they have in the cache: the boxes, each with its record; the kernel that
the probe of KVM starts; the saved states of machines, which only fit a host with the same QEMU. boxes.json lists the
boxes, and SHA256SUMS all files, as sha256sum prints it. Both directions leave a complete result or none.
"""

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fwlab.checkout.atomic_write import write_atomically, write_errors_as
from fwlab.checkout.project import Project
from fwlab.host.published_file import need_room
from fwlab.images.boxes import IMAGES, MAKERS, Boxes, cached, content_key, record_path, sha256_of
from fwlab.images.build import key_settings, makers_settings
from fwlab.images.sources import CloudImage
from fwlab.model.errors import BuildError, SourceError

SUMS, LISTED = "SHA256SUMS", "boxes.json"
#: Each file of such a folder, and nothing else, is written below the cache.
NAME = re.compile(
    rf"boxes/(?:{'|'.join(IMAGES)})-[0-9a-f]{{12}}\.box(?:\.json)?"
    r"|saved/(?:dut|generator|sink)-[0-9a-f]{16}\.(?:key|qcow2\.zst|qcow2\.zst\.json)"
    r"|bases/dut-linux-[0-9a-f]{12}/vmlinuz"
)
LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
#: A list of files that is longer is not one (bytes).
MAX_LIST_BYTES = 1 << 20
#: A saved state is whole with all three; the record vouches for the file, so it comes first.
STATE = (".key", ".qcow2.zst.json", ".qcow2.zst")


def require_new(folder: Path) -> None:
    """Raise SourceError unless the folder is empty or not there."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise SourceError(f"{folder} exists and is not empty", "name a new folder")


def export_boxes(cache: Path, boxes: Boxes, folder: Path, say: Callable[[str], None], *, states: bool = True) -> None:
    """Copy these boxes, and what belongs to them, into a new folder. Raises BuildError.

    states  with the saved states of machines, and the keys that let this host into them
    """
    require_new(folder)
    names = [name for box in boxes.values() for name in _of_box(Path(box["path"]).relative_to(cache))]
    names += [f"{path.relative_to(cache)}" for path in sorted(cache.glob("bases/dut-linux-*/vmlinuz"))]
    names += _states(cache) if states else []
    with write_errors_as(folder, BuildError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        size = sum((cache / name).stat().st_size for name in names) + (64 << 20)
        need_room(folder.parent, size, "this export", "name a folder on a disk")
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as made:
            draft = Path(made) / folder.name
            for name in names:
                (draft / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(cache / name, draft / name)
            entries = {image: {key: box[key] for key in box if key != "path"} for image, box in boxes.items()}
            write_atomically(draft / LISTED, json.dumps(entries, indent=1) + "\n", error=BuildError)
            sums = "".join(f"{sha256_of(draft / name)}  {name}\n" for name in sorted([*names, LISTED]))
            write_atomically(draft / SUMS, sums, error=BuildError)
            draft.chmod(0o755)
            draft.replace(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    say(
        f"exported {', '.join(boxes)} and {len(_states(folder)) // len(STATE)} saved states: {folder}, {size >> 20} MiB"
    )


def import_boxes(
    project: Project, cache: Path, folder: Path, base: CloudImage | None, *, full: bool, say: Callable[[str], None]
) -> Boxes:
    """Verify the folder, copy what it has into the cache, and return the entries of images.json for this checkout.

    base, full  what this checkout would be built from: see build.py. Boxes of another version of the project are not
                taken. Raises SourceError if the folder is not whole or does not fit, BuildError.
    """
    sums = _sums(folder)
    entries = _entries(folder, sums)
    found = {}
    for image, entry in entries.items():
        settings = _settings(image, entry, base, full=full)
        if settings is not None and content_key(project.root, image, settings) == entry["key"]:
            found[image] = {**entry, "settings": settings}
    if missing := sorted({"dut-linux", "generator", "sink"} - set(found)):
        raise SourceError(
            f"{folder} has no {', '.join(missing)} for this version of the project",
            "check out the version that it was exported from, or build here: make boxes",
        )
    with write_errors_as(cache, BuildError):
        for name in sorted(set(sums) - {LISTED}, key=_records_first):
            if not _has(cache, name, sums[name]):
                _take(folder, cache, name, sums[name])
    boxes = {image: {**entry, "path": str(cache / _box_name(image, entry))} for image, entry in found.items()}
    for box in boxes.values():
        record = cached(Path(box["path"]))
        if record is None or record["sha256"] != box["sha256"] or record.get("key") != box["key"]:
            raise _damaged(folder, f"{Path(box['path']).name} is not what its record says")
    states = sum(name.endswith(STATE[-1]) for name in sums)
    say(f"imported {', '.join(boxes)} and {states} saved states")
    return boxes


def _of_box(name: Path) -> list[str]:
    return [str(record_path(name)), str(name)]


def _states(top: Path) -> list[str]:
    """The files of the saved states below `top` that are whole."""
    names = []
    for file in sorted(top.glob("saved/*.qcow2.zst")):
        parts = [f"saved/{file.name.removesuffix('.qcow2.zst')}{part}" for part in STATE]
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads((top / f"{parts[-1]}.json").read_text())
            whole = (top / parts[0]).is_file() and record["sha256"] == sha256_of(file)
            names += parts if whole else []
    return names


def _box_name(image: str, entry: dict[str, Any]) -> str:
    return f"boxes/{image}-{entry['key'][:12]}.box"


def _records_first(name: str) -> tuple[bool, str]:
    return name.endswith((".box", ".zst")), name


def _sums(folder: Path) -> dict[str, str]:
    """By name, the SHA-256 of each file of the folder. Raises SourceError."""
    path = folder / SUMS
    try:
        text = path.read_bytes()[: MAX_LIST_BYTES + 1].decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise SourceError(f"{path}: {why}", "give a folder that `make boxes EXPORT=folder` wrote") from error
    lines = [LINE.fullmatch(line) for line in text.splitlines()]
    sums = {line[2]: line[1] for line in lines if line is not None}
    wrong = [name for name in sums if name != LISTED and not NAME.fullmatch(name)]
    if wrong or not all(lines) or LISTED not in sums or len(text) > MAX_LIST_BYTES:
        raise _damaged(folder, f"{SUMS} lists {wrong[0][:80]!r}" if wrong else f"{SUMS} is no list of such a folder")
    return sums


def _entries(folder: Path, sums: dict[str, str]) -> Boxes:
    """What boxes.json says. Raises SourceError."""
    path = folder / LISTED
    try:
        if sha256_of(path) != sums[LISTED]:
            raise _damaged(folder, f"{LISTED} was changed")
        entries = json.loads(path.read_text())
        complete = all(
            set(_of_box(Path(_box_name(image, entry)))) <= set(sums)
            and sums[_box_name(image, entry)] == entry["sha256"]
            and entry["box"] == f"fwlab-{image}-{entry['key'][:12]}"
            and isinstance(entry["manifest"], dict)
            for image, entry in entries.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(folder, f"{LISTED} cannot be read: {error}") from error
    if not complete:
        raise _damaged(folder, f"{LISTED} and {SUMS} do not agree")
    return dict(entries)


def _settings(image: str, entry: dict[str, Any], base: CloudImage | None, *, full: bool) -> dict[str, str] | None:
    """What this checkout would build that box with; None if the entry is damaged."""
    try:
        if image in MAKERS:
            return makers_settings(image, str(entry[MAKERS[image].name]["sha256"]))
        trex = str(entry["trex"]["sha256"]) if "trex" in entry else None
    except (KeyError, TypeError):
        return None
    return key_settings(base, full=full, trex=trex)


def _has(cache: Path, name: str, digest: str) -> bool:
    """Whether the cache has the file. A state that was saved here is kept with its own key and record."""
    if name.startswith("saved/"):
        return (cache / f"{name.partition('.')[0]}{STATE[-1]}").exists()
    return (cache / name).is_file() and sha256_of(cache / name) == digest


def _take(folder: Path, cache: Path, name: str, digest: str) -> None:
    """Copy one file into the cache, through a draft that gets its name once it is verified. Raises SourceError."""
    source, target = folder / name, cache / name
    if source.is_symlink() or not source.is_file():
        raise _damaged(folder, f"{name} is missing")
    target.parent.mkdir(parents=True, exist_ok=True)
    need_room(target.parent, source.stat().st_size + (64 << 20), "this import")
    with tempfile.TemporaryDirectory(prefix=".import-", dir=target.parent) as made:
        draft = Path(made) / target.name
        shutil.copyfile(source, draft)
        if sha256_of(draft) != digest:
            raise _damaged(folder, f"{name} was changed or is cut short")
        draft.chmod(0o600 if name.startswith("saved/") else 0o644)
        draft.replace(target)


def _damaged(folder: Path, what: str) -> SourceError:
    return SourceError(f"{folder}: {what}", "copy the folder again from where it was exported")
