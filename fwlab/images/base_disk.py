# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a base in the cache. They are read only when a box is built from it, so they take little room:
the disk is compressed to a quarter, and bases with the same kernel share its file.
"""

import filecmp
from contextlib import suppress
from pathlib import Path

from fwlab.images.subprocesses import Subprocesses

NAME = "disk.raw.zst"
#: Look for repetitions as far back as 128 MiB: it saves some per cent, and unpacking takes that much memory.
_WINDOW = "--long=27"
_LEVEL = "-9"


def pack(programs: Subprocesses, disk: Path, log: Path, image: str) -> Path:
    """Compress `disk` and remove it; returns the compressed file beside it. Raises BuildError."""
    packed = disk.with_name(NAME)
    command = ["zstd", "-q", "-f", "-T0", _LEVEL, _WINDOW, "--rm", str(disk), "-o", str(packed)]
    programs.run(command, log, f"{image}: compressing its base")
    return packed


def unpack(programs: Subprocesses, packed: Path, disk: Path, log: Path, image: str) -> Path:
    """Write the disk of a compressed base to `disk`, with holes where it is empty; returns it. Raises BuildError."""
    command = ["zstd", "-q", "-d", "-f", "--sparse", _WINDOW, str(packed), "-o", str(disk)]
    programs.run(command, log, f"{image}: unpacking its base")
    return disk


def share(made: Path, directory: Path) -> None:
    """Move a file into the directory of its base, or link to the same file of another base beside it."""
    target = directory / made.name
    for other in directory.parent.glob(f"*/{made.name}"):
        with suppress(OSError):  # another build may be removing it, or the file system has no links
            if other != target and filecmp.cmp(other, made, shallow=False):
                target.hardlink_to(other)
                made.unlink()
                return
    made.replace(target)
