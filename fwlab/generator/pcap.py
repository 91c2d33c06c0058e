# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture files in the classic pcap format, Ethernet, with time stamps in micro- or nanoseconds."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from fwlab.host.atomic_write import write_atomically
from fwlab.model.errors import BadInput

_MICRO, _NANO = 0xA1B2C3D4, 0xA1B23C4D
_ETHERNET = 1
_LONGEST = 65_535


def write_pcap(path: Path, frames: Iterable[bytes], times_ns: Iterable[int], *, nanoseconds: bool = False) -> int:
    """Write frames with their times; returns how many. A file that could not be written whole is removed."""
    unit = 1 if nanoseconds else 1000
    magic = _NANO if nanoseconds else _MICRO
    out, count = bytearray(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, _LONGEST, _ETHERNET)), 0
    for frame, time in zip(frames, times_ns, strict=True):
        seconds, rest = divmod(int(time), 1_000_000_000)
        out += struct.pack("<IIII", seconds, rest // unit, len(frame), len(frame)) + frame
        count += 1
    write_atomically(path, bytes(out), make_folder=False)
    return count


def read_pcap(path: Path) -> tuple[list[bytes], list[int]]:
    """Frames and their times in nanoseconds. Raises BadInput if the file is not such a capture."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot read it: {error.strerror}", f"ls -l {path}") from error
    magics = {struct.pack(f"{order}I", magic): order for order in "<>" for magic in (_MICRO, _NANO)}
    order = magics.get(data[:4])
    if order is None or len(data) < 24:
        raise BadInput(f"{path}: not a pcap file", "give a capture in the classic pcap format")
    unit = 1 if struct.unpack_from(f"{order}I", data)[0] == _NANO else 1000
    frames, times, at = [], [], 24
    while at < len(data):
        if at + 16 > len(data):
            raise BadInput(f"{path}: ends in the middle of frame {len(frames) + 1}", "capture it again")
        seconds, rest, length, _ = struct.unpack_from(f"{order}IIII", data, at)
        if at + 16 + length > len(data):
            raise BadInput(f"{path}: ends in the middle of frame {len(frames) + 1}", "capture it again")
        frames.append(data[at + 16 : at + 16 + length])
        times.append(seconds * 1_000_000_000 + rest * unit)
        at += 16 + length
    return frames, times
