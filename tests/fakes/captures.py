# SPDX-License-Identifier: GPL-2.0-or-later
"""Read capture files and frame tables, which the package only writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scapy.utils import RawPcapReader

from fwlab.generator.frame_table import HEADER, MAGIC, RECORD, VERSION


def read_pcap(path: Path) -> tuple[list[bytes], list[int]]:
    """The frames of a capture and their times in nanoseconds."""
    with RawPcapReader(str(path)) as reader:
        unit = 1 if reader.nano else 1000
        packets = [(data, about.sec * 1_000_000_000 + about.usec * unit) for data, about in reader]
    return [data for data, _ in packets], [time for _, time in packets]


@dataclass(frozen=True)
class FrameTable:
    """The contents of a frame table; `times_ns` is None for a table without times."""

    frames: list[bytes]
    streams: list[int]
    times_ns: list[int] | None
    loop_ns: int


def read_table(path: Path) -> FrameTable:
    """The frame table at `path`, which must be complete and of the current version."""
    data = path.read_bytes()
    head = np.frombuffer(data, HEADER, 1)[0]
    count, start = int(head["count"]), HEADER.itemsize + int(head["count"]) * RECORD.itemsize
    assert (head["magic"], head["version"]) == (MAGIC, VERSION)
    assert start + int(head["bytes"]) == len(data)
    records = np.frombuffer(data, RECORD, count, HEADER.itemsize)
    frames = [data[start + int(r["offset"]) : start + int(r["offset"]) + int(r["length"])] for r in records]
    loop = int(head["loop_ns"])
    return FrameTable(frames, records["stream"].tolist(), records["time_ns"].tolist() if loop else None, loop)
