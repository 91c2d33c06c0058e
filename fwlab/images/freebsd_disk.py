# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a disk image is a FreeBSD that the labs can use, as far as its bytes and its console say.

The bytes are looked at before anything boots: a machine into which nobody can log in would be waited for in vain.
"""

import mmap
import re
import subprocess
from pathlib import Path

from fwlab.images.errors import BuildError, SourceError
from fwlab.images.freebsd_release import EXAMPLE, OLDEST

SECTOR = 512
#: Sectors of a GPT with its partition table.
TABLE_SECTORS = 34
#: Types of FreeBSD's partitions for UFS and ZFS in a GPT, as stored; and of its slice in an MBR.
GPT_UFS = bytes.fromhex("b67c6e51cf6ed6118ff800022d09712b")
GPT_ZFS = bytes.fromhex("ba7c6e51cf6ed6118ff800022d09712b")
MBR_TYPE = 0xA5
#: In the text of freebsd-version(1).
USERLAND = re.compile(rb'USERLAND_VERSION="(\d+)\.(\d+)-')
NUAGEINIT = re.compile(rb"# PROVIDE: nuageinit\n")
#: The kernel's first lines, and what ends when it halts.
BANNER = re.compile(r"^FreeBSD (\d+)\.(\d+)-\S+", re.MULTILINE)


def check_freebsd(disk: Path, name: str) -> None:
    """Raise SourceError, which calls the image `name`, unless the disk can be a FreeBSD that the labs can use.

    A version or a file that is not found in a compressed disk is not held against it.
    """
    table = _first_sectors(disk, name)
    if GPT_ZFS in table and GPT_UFS not in table:
        raise SourceError(f"{name}: its root is ZFS, whose memory and threads would disturb measurements", EXAMPLE)
    slices = {table[446 + 16 * number + 4] for number in range(4)}
    if GPT_UFS not in table and MBR_TYPE not in slices:
        raise SourceError(f"{name}: not a disk of FreeBSD: it has no partition of that type", EXAMPLE)
    with disk.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = USERLAND.search(content)
        if found is None:
            return
        release = f"{found[1].decode()}.{found[2].decode()}"
        if int(found[1]) < OLDEST:
            raise SourceError(f"{name}: FreeBSD {release} is too old; {OLDEST} or later is needed", EXAMPLE)
        if NUAGEINIT.search(content) is None:
            raise SourceError(f"{name}: FreeBSD {release} without nuageinit, so nobody could log in", EXAMPLE)


def _first_sectors(disk: Path, name: str) -> bytes:
    """The partition table. Raises SourceError if QEMU cannot read the disk."""
    command = ["qemu-img", "dd", f"bs={SECTOR}", f"count={TABLE_SECTORS}", f"if={disk}", "-O", "raw"]
    draft = disk.with_name(f"{disk.name}.table")
    try:
        done = subprocess.run([*command, f"of={draft}"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SourceError(f"{name}: not a disk image: {done.stderr.strip().splitlines()[-1]}", EXAMPLE)
        return draft.read_bytes().ljust(SECTOR * TABLE_SECTORS, b"\0")
    finally:
        draft.unlink(missing_ok=True)


def explained(error: BuildError, name: str, console: str) -> BuildError:
    """Why Packer failed, if what the machine said on its console tells; else the same error."""
    found = BANNER.search(console)
    if found is not None and int(found[1]) < OLDEST:
        return SourceError(f"{name}: FreeBSD {found[1]}.{found[2]} is too old; {OLDEST} or later is needed", EXAMPLE)
    if "Timeout waiting for SSH" not in error.message:
        return error
    if found is None:
        return SourceError(f"{name}: no FreeBSD started from it", EXAMPLE)
    return SourceError(f"{name}: {found[0]} started, but nobody could log in: has it nuageinit?", EXAMPLE)
