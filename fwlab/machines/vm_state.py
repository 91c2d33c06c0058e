# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of a machine in its disk: 190 MB that are not read again once the machine continues from it.

QEMU keeps it behind the disk's last sector. Reverting to an internal snapshot makes it part of the disk in use, so that
deleting the snapshot frees nothing. QEMU writes a memory there only after it has freed the one before.
"""

import contextlib
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

#: QEMU's docs/interop/qcow2.rst.
MAGIC = b"QFI\xfb"
HEADER = struct.Struct(">20xIQ28xIQ")
SNAPSHOT = struct.Struct(">QI")
OFFSET, COMPRESSED = 0x00FF_FFFF_FFFF_FE00, 1 << 62


def state_in(disk: Path) -> list[tuple[int, int]]:
    """Where the first snapshot's memory lies in the file: offset and bytes. The machine must be off."""
    with disk.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return []
        bits, size, snapshots, table = HEADER.unpack(_at(file, 0, HEADER.size))
        if not snapshots:
            return []
        cluster = 1 << bits
        in_one = cluster * (cluster // 8)  # bytes of the disk that one table of the second level describes
        first, count = SNAPSHOT.unpack(_at(file, table, SNAPSHOT.size))
        clusters = [
            entry & OFFSET
            for tables in _entries(file, first, count)[-(-size // in_one) :]
            if tables & OFFSET
            for entry in _entries(file, tables & OFFSET, cluster // 8)
            if entry & OFFSET and not entry & COMPRESSED
        ]
    return list(_joined(sorted(clusters), cluster))


def free(disk: Path, places: list[tuple[int, int]]) -> None:
    """Give these bytes back to the file system, if it can. The machine may run."""
    with contextlib.suppress(OSError):
        for offset, size in places:
            where = ["--offset", str(offset), "--length", str(size)]
            subprocess.run(["fallocate", "--punch-hole", *where, str(disk)], stderr=subprocess.DEVNULL, check=False)


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _entries(file: BinaryIO, offset: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f">{count}Q", _at(file, offset, 8 * count))


def _joined(clusters: list[int], size: int) -> Iterator[tuple[int, int]]:
    """Clusters that lie side by side are one place."""
    begin = 0
    for number in range(1, len(clusters) + 1):
        if number == len(clusters) or clusters[number] != clusters[number - 1] + size:
            yield clusters[begin], (number - begin) * size
            begin = number
