# SPDX-License-Identifier: GPL-2.0-or-later
"""Expands streams into the frames that TRex sends with one core. Pure: no I/O."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from fwlab.model.errors import BadInput
from fwlab.traffic import checksums, field_engine
from fwlab.traffic.frames import Frames, Frameset
from fwlab.traffic.headers import IPV4, ip_header
from fwlab.traffic.schedule import schedule
from fwlab.traffic.streams import Stream, parse_streams

#: The default packet limit of TRex's simulator.
DEFAULT_LIMIT = 5000
_SEED_FACTOR = 514229
#: TRex lists streams last first; the list is reversed when it grows beyond these lengths (those of a hash table in the
#: GNU C++ library). It decides between streams that are due at the same instant, as in four tables of the labs.
_REVERSED_AT = (13, 29, 59, 127, 257, 541, 1109, 2357)

_FIRST_MARK = 0xFF00  # first IPv4 identification (IPv6 flow label) that marks flow statistics
_LATENCY_MARK = 0xFFFF
_TO_CPU = 0x01  # bit in the TOS field or traffic class
_ETHERNET_HEADER, _UDP_HEADER, _VXLAN_HEADER = 14, 8, 8


def simulator_macs(direction: int) -> tuple[bytes, bytes]:
    """The MAC addresses (destination, source) of a port of TRex's simulator."""
    high = (direction % 2 + 1) << 4
    return bytes([high]) * 6, bytes([high + 8]) * 6


SIMULATOR_MACS = simulator_macs(0)


def expand(
    streams: Sequence[Any],
    *,
    limit: int,
    macs: tuple[bytes, bytes] = SIMULATOR_MACS,
    complete: bool = False,
    seed: int = 1,
) -> Frames:
    """The first `limit` frames of a profile's streams (each as returned by `stream.to_json()`), in sending order.

    macs      destination and source MAC address of streams without their own
    complete  also do what TRex leaves to the network card (fix_checksum_hw), for other engines
    seed      seed of random variables in streams without a random_seed

    Raises BadInput naming the stream and the instruction.
    """
    return play(parse_streams(streams), limit=limit, macs=macs, complete=complete, seed=seed)


def play(
    streams: Sequence[Stream], *, limit: int, macs: tuple[bytes, bytes], complete: bool = False, seed: int = 1
) -> Frames:
    """The first `limit` frames of a profile's parsed streams; see `expand`."""
    if limit < 1:
        raise BadInput(f"invalid limit {limit}: must be at least 1", "give --limit a number above zero")
    listed = _listed(streams)
    counters: dict[bool, dict[int | None, int]] = {False: {}, True: {}}
    prepared = {stream.index: _prepare(stream, macs, counters) for stream in listed}
    playing = sorted((s for s in listed if s.enabled), key=lambda stream: stream.marks_latency)
    seconds, part = schedule(playing, limit)
    row, parts = np.zeros(len(part), dtype=np.int64), []
    for place, stream in enumerate(playing):
        turns = np.flatnonzero(part == place)
        if stream.instructions:
            row[turns] = np.arange(len(turns)) % ((not stream.marks_latency and stream.vm.cache) or len(turns) or 1)
        count = int(row[turns].max()) + 1 if len(turns) and stream.sends else 0
        packet, trailer = prepared[stream.index]
        own_seed = (stream.random_seed or seed + stream.index) * _SEED_FACTOR & 0xFFFFFFFF
        made = field_engine.run(packet, stream.instructions, count, seed=own_seed, complete=complete)
        _stamp(made, trailer)
        parts.append(made)
    sent = np.array([stream.sends for stream in playing], dtype=bool)[part]
    whole_seconds = np.floor(seconds[sent])
    below = np.floor((seconds[sent] - whole_seconds) * 1e9).astype(np.int64)
    return Frames(
        times_ns=whole_seconds.astype(np.int64) * 1_000_000_000 + below,
        part=part[sent],
        row=row[sent],
        parts=parts,
        part_stream=np.array([stream.index for stream in playing], dtype=np.int64),
        labels=[stream.label for stream in streams],
        names=[stream.name for stream in streams],
    )


def _listed(streams: Sequence[Stream]) -> list[Stream]:
    """The streams in the order in which TRex starts them, which is also that of the flow statistics counters."""
    listed: list[Stream] = []
    for stream in streams:
        if len(listed) in _REVERSED_AT:
            listed.reverse()
        listed.insert(0, stream)
    return listed


def _prepare(
    stream: Stream, macs: tuple[bytes, bytes], counters: dict[bool, dict[int | None, int]]
) -> tuple[bytes, bytes]:
    """The packet before the field engine, and what then overwrites the end of each frame of a latency stream."""
    data, stats, latency = bytearray(stream.data), stream.flow_stats, stream.marks_latency
    trailer = b""
    if stats.enabled and not stream.silent:
        counter = counters[latency].setdefault(stats.stream_id, len(counters[latency]))
        frame = _tunnelled(data, stream.label) if stats.vxlan else 0
        _mark(data, frame, _LATENCY_MARK if latency else _FIRST_MARK + counter)
        if latency:  # magic, generation, counter; number and time with the simulator's constants
            trailer = struct.pack("<BBHIQ", 0xAB, 0x01, counter, 0x12345678, 0x8899AABBCCDDEEFF)
    else:
        _unmark(data)
    to_packets, from_packets = stream.flags & 6 == 2, stream.flags & 5 == 1
    if not to_packets:
        data[0:6] = macs[0]
    if not from_packets:
        data[6:12] = macs[1]
    return bytes(data), trailer


def _stamp(made: Frameset, trailer: bytes) -> None:
    """Overwrite the last bytes of each frame."""
    if trailer:
        columns = made.lengths[:, np.newaxis] - len(trailer) + np.arange(len(trailer))
        made.data[np.arange(len(made.data))[:, np.newaxis], columns] = np.frombuffer(trailer, dtype=np.uint8)


def _unmark(data: bytearray) -> None:
    """Remove the mark from the packet of a stream without statistics."""
    version, at = ip_header(data)
    if version == IPV4:
        number = struct.unpack_from(">H", data, at + 4)[0]
        if number >= _FIRST_MARK:
            _replace_word(data, at, at + 4, number & 0xEFFF)
    elif version:
        first = struct.unpack_from(">I", data, at)[0]
        if first & 0xFFFFF >= _FIRST_MARK:
            struct.pack_into(">I", data, at, (first & 0xFFF00000) | (first & 0xEFFF))


def _tunnelled(data: bytearray, label: str) -> int:
    """Offset of the frame within a VXLAN tunnel, which then has the mark. Raises BadInput if there is none."""
    version, at = ip_header(data)
    length, protocol = ((data[at] & 0x0F) * 4, data[at + 9]) if version == IPV4 else (40, data[at + 6])
    inner = at + length + _UDP_HEADER + _VXLAN_HEADER
    if not version or protocol != checksums.UDP or inner + _ETHERNET_HEADER > len(data):
        raise BadInput(f"{label}: the packet has no VXLAN tunnel", "omit vxlan, or give a packet with UDP and VXLAN")
    return inner


def _mark(data: bytearray, frame: int, number: int) -> None:
    version, at = ip_header(data, frame)
    if version == IPV4:
        _replace_word(data, at, at + 4, number)
        _replace_word(data, at, at, struct.unpack_from(">H", data, at)[0] | _TO_CPU)
    elif version:
        first = struct.unpack_from(">I", data, at)[0]
        struct.pack_into(">I", data, at, (first & 0xFFF00000) | _TO_CPU << 20 | number)


def _replace_word(data: bytearray, header: int, at: int, new: int) -> None:
    """Replace a word of an IPv4 header and update its checksum: a wrong one remains wrong."""
    heads, words = np.frombuffer(data, dtype=np.uint8)[np.newaxis], np.array([new], dtype=np.uint64)
    before = checksums.word(heads, at)
    checksums.put(heads, at, words)
    checksums.amend(heads, header + 10, before, words)
