# SPDX-License-Identifier: GPL-2.0-or-later
"""One box format, whichever Packer made the box.

Debian's Packer writes a box in the first version of Vagrant's format for libvirt: box.img, its format and its size. The
Vagrant plugin of newer Packers writes the second version: box_0.img in a list of disks. All else reads the first.
"""

import json
import subprocess
from pathlib import Path


def virtual_gib(disk: Path) -> int:
    """The size of a qcow2 or raw disk as its machine sees it (GiB, rounded up)."""
    with disk.open("rb") as file:
        head = file.read(32)
    size = int.from_bytes(head[24:32], "big") if head.startswith(b"QFI\xfb") else disk.stat().st_size
    return -(-size // (1 << 30))


def to_first_format(box: Path) -> None:
    """Rewrite a box of the second format that has one disk; leave one of the first as it is.

    Uses tar(1), because Python's tarfile takes the times in Packer's archives for a part of the name.
    """
    names = subprocess.run(["tar", "-tf", box], check=True, capture_output=True, text=True).stdout.split()
    if "box_0.img" not in names:
        return
    parts = box.with_name(f"{box.name}.parts")
    parts.mkdir()
    subprocess.run(["tar", "-xf", box, "-C", parts], check=True)
    disk, metadata = parts / "box.img", parts / "metadata.json"
    (parts / "box_0.img").rename(disk)
    kept = {name: value for name, value in json.loads(metadata.read_text()).items() if name != "disks"}
    metadata.write_text(json.dumps({**kept, "format": "qcow2", "virtual_size": virtual_gib(disk)}) + "\n")
    rewritten = parts / box.name
    members = ["Vagrantfile", "box.img", "metadata.json"]
    subprocess.run(["tar", "-cf", rewritten, "--owner=0", "--group=0", "-C", parts, *members], check=True)
    rewritten.replace(box)
