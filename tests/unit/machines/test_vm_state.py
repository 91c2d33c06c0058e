# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a snapshot's memory lies in a disk (fwlab/machines/vm_state.py), and that it is given back."""

import os
import struct
from pathlib import Path

import pytest

from fwlab.machines.vm_state import free, state_in

CLUSTER = 512
#: One of the disk's 64 tables of the second level, and one behind them, by cluster of the file.
SIZE, TABLES, DISK, MEMORY = 64 * CLUSTER * (CLUSTER // 8), 2, 4, 5


def qcow2(path: Path, snapshots: int = 1) -> Path:
    """A disk with data in cluster 6, and a snapshot's memory in clusters 7, 8 and 10."""
    first = [DISK * CLUSTER, *[0] * 63, MEMORY * CLUSTER]
    clusters = {
        0: b"QFI\xfb" + struct.pack(">16xIQ28xIQ", 9, SIZE, snapshots, CLUSTER),
        1: struct.pack(">QI", TABLES * CLUSTER, len(first)),
        TABLES: struct.pack(f">{len(first)}Q", *first),
        DISK: struct.pack(">Q", 6 * CLUSTER | 1 << 63),
        MEMORY: struct.pack(">4Q", 7 * CLUSTER | 1 << 63, 8 * CLUSTER, 0, 10 * CLUSTER),
        **dict.fromkeys((6, 7, 8, 9, 10), b"x" * CLUSTER),
    }
    with path.open("wb") as file:
        for number, data in clusters.items():
            file.seek(number * CLUSTER)
            file.write(data)
    return path


def test_the_memory_is_found_and_freed_and_nothing_else(tmp_path: Path) -> None:
    disk = qcow2(tmp_path / "disk")
    assert state_in(disk) == [(7 * CLUSTER, 2 * CLUSTER), (10 * CLUSTER, CLUSTER)]
    before = disk.read_bytes()
    free(disk, state_in(disk))
    if disk.read_bytes() == before:
        pytest.skip("this file system has no holes")
    assert disk.read_bytes() == before[: 7 * CLUSTER] + bytes(2 * CLUSTER) + before[9 * CLUSTER : -CLUSTER] + bytes(
        CLUSTER
    )


def test_a_disk_without_a_snapshot_has_none(tmp_path: Path) -> None:
    assert state_in(qcow2(tmp_path / "disk", snapshots=0)) == []
    (tmp_path / "raw").write_bytes(os.urandom(8) + bytes(CLUSTER))
    assert state_in(tmp_path / "raw") == []
