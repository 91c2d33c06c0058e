# SPDX-License-Identifier: GPL-2.0-or-later
"""What boxes and machines take of the disk, and what of it is removed.

The cache has boxes, the bases that they were made from, and saved states of machines. A machine's disk stands on a copy
of the box in libvirt's pool, a volume, which was made from the copy in Vagrant's folder.
"""

import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fwlab.host.environment import libvirt_uri
from fwlab.images.boxes import IMAGES, Boxes, record_path

#: Enough for the cache with one generation of boxes, and for what the machines of a lab are made from (bytes).
LIMIT = 1 << 30
#: Generations of an image that are kept: two checkouts with different boxes do not disturb each other. The older one
#: is removed once it has been unused for this long (s).
KEPT, UNUSED_S = 2, 7 * 24 * 3600
#: Parts of the cache that are named where its size is.
PARTS = ("boxes", "saved", "bases")
#: In the name of a volume, between the box's name and the rest.
VOLUME = "_vagrant_box_image_"
STATE = ".qcow2.zst"
#: Of a base. The same folder has its kernel, with which KVM is tried, and an initial RAM disk.
BASE_DISK, BASE_RAMDISK = "disk.raw.zst", "initrd.img"
#: QEMU's docs/interop/qcow2.rst: magic, version, where the name of the file below is, and its length.
HEADER, MAGIC = struct.Struct(">4sIQI"), b"QFI\xfb"


def vagrant_boxes() -> Path:
    """Where Vagrant keeps boxes."""
    return Path(os.environ.get("VAGRANT_HOME") or Path.home() / ".vagrant.d") / "boxes"


def machine_disks() -> Path:
    """libvirt's pool, where the provider puts disks."""
    user = libvirt_uri().endswith("/session")
    return Path.home() / ".local/share/libvirt/images" if user else Path("/var/lib/libvirt/images")


def bytes_of(*paths: Path) -> int:
    """What these files and folders take. Files may be sparse, or have several names; links take nothing."""
    found: dict[tuple[int, int], int] = {}
    for path in paths:
        for file in (path, *path.rglob("*")):
            with suppress(OSError):
                one = file.lstat()
                found[one.st_dev, one.st_ino] = one.st_blocks * 512
    return sum(found.values())


def bytes_of_machines() -> int:
    """What Vagrant and libvirt have of boxes and machines of these labs."""
    return bytes_of(*vagrant_boxes().glob("fwlab-*"), *machine_disks().glob("fwlab-*"))


def note_use(boxes: Mapping[str, Mapping[str, Any]]) -> None:
    """Make these the newest of their images, in the cache and in Vagrant's folder."""
    for box in boxes.values():
        for path in (Path(box["path"]), vagrant_boxes() / box["box"]):
            with suppress(OSError):  # a container's image is only read, and has none in its cache
                path.touch()


def remove_old(cache: Path, boxes: Boxes, *, unused_s: float = UNUSED_S) -> None:
    """Remove what no checkout uses any more. `boxes` are in use."""
    note_use(boxes)
    limit = time.time() - unused_s
    for image in IMAGES:
        for found in (cache.glob(f"boxes/{image}-*.box"), vagrant_boxes().glob(f"fwlab-{image}-*/")):
            for place, path in enumerate(reversed(_by_age(found))):
                if place >= KEPT or (place > 0 and path.stat().st_mtime < limit):
                    _remove(path)
    _remove_volumes()
    trim(cache)


def remove_all_but(cache: Path, boxes: Boxes) -> None:
    """Remove what these boxes do not need: also what saves time or a download when one is built again."""
    remove_old(cache, boxes, unused_s=0)
    trim(cache, limit=0)
    shutil.rmtree(cache / "downloads", ignore_errors=True)


def trim(cache: Path, *, limit: int = LIMIT) -> None:
    """While the cache is larger, remove what is made again in a minute: bases, then states but for the newest ones."""
    for path in (*_by_age(cache.glob(f"bases/*/{BASE_DISK}")), *_older_states(cache)):
        if bytes_of(cache) <= limit:
            return
        if path.name == BASE_DISK:
            _remove(path)
            path.with_name(BASE_RAMDISK).unlink(missing_ok=True)
        else:
            remove_state(path)


def remove_state(state: Path) -> None:
    """Remove a saved state with its record, key and lock."""
    for path in state.parent.glob(f"{state.name.removesuffix(STATE)}.*"):
        path.unlink(missing_ok=True)


def _older_states(cache: Path) -> Iterator[Path]:
    found = _by_age(cache.glob(f"saved/*{STATE}"))
    newest = {path.name.partition("-")[0]: path for path in found}  # by role
    return (path for path in found if path not in newest.values())


def _remove_volumes() -> None:
    """Remove volumes whose box Vagrant no longer has, unless a disk stands on them. Others would only be made again."""
    pool = machine_disks()
    boxes = {path.name for path in vagrant_boxes().glob("*")}
    volumes = [path for path in pool.glob(f"fwlab-*{VOLUME}*") if path.name.partition(VOLUME)[0] not in boxes]
    if not volumes:
        return
    with suppress(OSError):  # a disk that cannot be read may stand on any of them
        below = {_stands_on(path) for path in pool.iterdir() if VOLUME not in path.name and path.is_file()}
        for path in volumes:
            if path.name not in below:
                path.unlink()
        # A running libvirt would keep listing them; one that is not running need not be started for this.
        command = ["virsh", "--quiet", "--connect", libvirt_uri(), "pool-refresh", "default"]
        environment = {**os.environ, "LIBVIRT_AUTOSTART": "0"}
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _stands_on(disk: Path) -> str:
    """The name of the file that a qcow2 disk is a layer on; empty if there is none."""
    with disk.open("rb") as file:
        magic, _, offset, size = HEADER.unpack(file.read(HEADER.size).ljust(HEADER.size, b"\0"))
        if magic != MAGIC or not offset:
            return ""
        file.seek(offset)
        return Path(os.fsdecode(file.read(size))).name


def _by_age(paths: Iterable[Path]) -> list[Path]:
    """The one that was not used for longest first."""
    return sorted(paths, key=lambda path: path.stat().st_mtime)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
        record_path(path).unlink(missing_ok=True)
