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
    loop_ns: int = 0,
) -> None:
    """Write a frame table to `path`.

    frames    without frame check sequence; shorter ones are padded with zeros to 60 bytes
    times_ns  when each frame is due, from the start of a loop; must not decrease
    streams   a stream id for each frame, counted separately by the engine (default 0)
    loop_ns   duration of a loop, greater than the last time; 0 for frames without times

    Raises BadInput naming the frame, CannotMeasure if the file cannot be written; then nothing is written.
    """
    count = len(frames)
    if not 1 <= count <= MAX_FRAMES:
        raise BadInput(f"{path}: {count} frames; a frame table holds 1 to {MAX_FRAMES}", "shorten the profile's cycle")
    if streams is not None and np.max(streams) > MAX_STREAM:
        raise BadInput(f"{path}: stream {np.max(streams)} is outside 0..{MAX_STREAM}", "declare fewer streams")
    records = np.zeros(count, RECORD)
    padded, records["length"], records["offset"] = _pack(path, frames)
    records["stream"] = 0 if streams is None else streams
    records["time_ns"] = 0 if times_ns is None else times_ns
    header = np.array([(MAGIC, VERSION, count, loop_ns, len(padded))], HEADER)
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


_ETHERNET = 1  # LINKTYPE_ETHERNET


def write_pcap(path: Path, frames: Iterable[bytes], times_ns: Iterable[int]) -> None:
    """Write frames and their times (ns) to `path`. Raises BadInput if that fails; then no file is left behind."""
    from scapy.utils import RawPcapWriter  # takes half a second to import, which other commands avoid

    capture = io.BytesIO()
    writer = RawPcapWriter(capture, linktype=_ETHERNET)
    writer.write_header(None)
    for frame, time_ns in zip(frames, times_ns, strict=True):
        seconds, rest = divmod(int(time_ns), 1_000_000_000)
        writer.write_packet(frame, sec=seconds, usec=rest // 1000)
    write_atomically(path, capture.getvalue(), make_folder=False)
