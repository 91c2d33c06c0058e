# SPDX-License-Identifier: GPL-2.0-or-later
"""One form of box, whichever Packer made it.

Debian's Packer writes a box in Vagrant's first form for libvirt: box.img, its format and its size. The Vagrant
plugin of a newer Packer writes the second: box_0.img in a list of disks. All that reads our boxes reads the first.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path


def virtual_gib(disk: Path) -> int:
    """The size of the disk in a qcow2 file as its machine sees it, rounded up."""
    with disk.open("rb") as file:
        head = file.read(32)
    return -(-int.from_bytes(head[24:32], "big") // (1 << 30))


def in_first_form(box: Path) -> None:
    """Rewrites a box of the second form with one disk; leaves one of the first as it is.

    By tar itself: Packer's archives hold times where Python's tarfile looks for a part of the name.
    """
    names = subprocess.run(["tar", "-tf", box], check=True, capture_output=True, text=True).stdout.split()
    if "box_0.img" not in names:
        return
    parts = box.with_name(f"{box.name}.parts")
    parts.mkdir()
    subprocess.run(["tar", "-xf", box, "-C", parts], check=True)
    disk, metadata = parts / "box.img", parts / "metadata.json"
    (parts / "box_0.img").rename(disk)
    told = {name: value for name, value in json.loads(metadata.read_text()).items() if name != "disks"}
    metadata.write_text(json.dumps({**told, "format": "qcow2", "virtual_size": virtual_gib(disk)}) + "\n")
    again = parts / box.name
    wanted = ["Vagrantfile", "box.img", "metadata.json"]
    subprocess.run(["tar", "-cf", again, "--owner=0", "--group=0", "-C", parts, *wanted], check=True)
    again.replace(box)
