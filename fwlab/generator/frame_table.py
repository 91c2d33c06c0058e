# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes frames to files: the frame table that the replay engine plays (format: engine/README.md), and captures."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fwlab.checkout.atomic_write import write_atomically
from fwlab.model.errors import BadInput, CannotMeasure

MAGIC = b"FWLFRAME"
VERSION = 1
MAX_FRAMES = 1_048_576
#: The generator holds the table twice: as a file in memory and as the engine's copy.
MAX_BYTES = 160 << 20
MIN_LENGTH = 60  # bytes: Ethernet's minimum of 64, less the frame check sequence
MAX_LENGTH = 9_018
MAX_STREAM = 65_535

HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("count", "<u4"), ("loop_ns", "<u8"), ("bytes", "<u8")])
RECORD = np.dtype([("time_ns", "<u8"), ("offset", "<u4"), ("length", "<u2"), ("stream", "<u2")])


def write_table(
    path: Path | str,
    frames: Sequence[bytes],
    times_ns: Sequence[int] | np.ndarray | None = None,
    streams: Sequence[int] | np.ndarray | None = None,
    *,
    loop_ns: int | None = None,
) -> None:
    """Write a frame table to `path`.

    frames    without frame check sequence; shorter ones are padded with zeros to 60 bytes
    times_ns  when each frame is due, from the start of a loop; must not decrease
    streams   a stream id from 0 to 65535 for each frame, counted separately by the engine (default 0)
    loop_ns   duration of a loop, greater than the last time (default: the last time plus the mean gap)

    Raises BadInput naming the frame, CannotMeasure if the file cannot be written; then nothing is written.
    """
    count = len(frames)
    if not 1 <= count <= MAX_FRAMES:
        raise BadInput(f"{path}: {count} frames; a frame table holds 1 to {MAX_FRAMES}", "shorten the profile's cycle")
    records = np.zeros(count, RECORD)
    padded, records["length"], records["offset"] = _pack(path, frames)
    records["stream"] = _column(path, "stream", streams, count, MAX_STREAM)
    records["time_ns"] = _column(path, "time", times_ns, count, 2**63)
    loop = 0
    if times_ns is not None:
        loop = _loop(path, records["time_ns"].astype(np.int64), loop_ns)
    elif loop_ns:
        raise BadInput(f"{path}: loop_ns of {loop_ns}, but frames without times", "give times_ns as well")
    header = np.array([(MAGIC, VERSION, count, loop, len(padded))], HEADER)
    write_atomically(Path(path), header.tobytes() + records.tobytes() + padded, error=CannotMeasure)


def _pack(path: Path | str, frames: Sequence[bytes]) -> tuple[bytes, list[int], list[int]]:
    """The frames' bytes, each distinct frame once, with the length and offset of every frame."""
    places: dict[bytes, int] = {}
    lengths: list[int] = []
    offsets: list[int] = []
    end = 0
    for number, frame in enumerate(frames):
        if len(frame) > MAX_LENGTH:
            raise BadInput(f"{path}: frame {number}: {len(frame)} bytes, more than {MAX_LENGTH}", "shorten it")
        data = bytes(frame).ljust(MIN_LENGTH, b"\0")
        if data not in places:
            places[data] = end
            end += len(data)
        lengths.append(len(data))
        offsets.append(places[data])
    if end > MAX_BYTES:
        raise BadInput(
            f"{path}: {end >> 20} MiB of frames, more than {MAX_BYTES >> 20}", "play shorter or fewer frames"
        )
    return b"".join(places), lengths, offsets


def _column(
    path: Path | str, name: str, values: Sequence[int] | np.ndarray | None, count: int, highest: int
) -> np.ndarray:
    if values is None:
        return np.zeros(count, np.int64)
    if len(values) != count:
        raise BadInput(f"{path}: {len(values)} {name}s for {count} frames", f"give one {name} per frame")
    column = np.asarray(values, dtype=np.int64)
    wrong = np.flatnonzero((column < 0) | (column > highest))
    if wrong.size:
        first = int(wrong[0])
        raise BadInput(f"{path}: frame {first}: {name} {column[first]} is outside 0..{highest}", f"correct the {name}")
    return column


def _loop(path: Path | str, times: np.ndarray, loop_ns: int | None) -> int:
    decreasing = np.flatnonzero(np.diff(times) < 0)
    if decreasing.size:
        raise BadInput(
            f"{path}: frame {int(decreasing[0]) + 1} is due before its predecessor", "sort the frames by time"
        )
    last = int(times[-1])
    if loop_ns is None:
        gap = (last - int(times[0])) // max(len(times) - 1, 1)
        loop_ns = last + max(gap, 1)
    if loop_ns <= last:
        raise BadInput(f"{path}: the loop ends at {loop_ns} ns, before its last frame at {last} ns", "increase loop_ns")
    return loop_ns


_ETHERNET = 1  # LINKTYPE_ETHERNET


def write_pcap(path: Path, frames: Iterable[bytes], times_ns: Iterable[int]) -> None:
    """Write frames and their times (ns) to `path`. Raises BadInput if that fails; then no file is left behind."""
    from scapy.utils import RawPcapWriter  # takes half a second to import, which other commands need not pay

    capture = io.BytesIO()
    writer = RawPcapWriter(capture, linktype=_ETHERNET)
    writer.write_header(None)
    for frame, time_ns in zip(frames, times_ns, strict=True):
        seconds, rest = divmod(int(time_ns), 1_000_000_000)
        writer.write_packet(frame, sec=seconds, usec=rest // 1000)
    write_atomically(path, capture.getvalue(), make_folder=False)
