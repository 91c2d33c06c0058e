# SPDX-License-Identifier: GPL-2.0-or-later
"""Sets MAC addresses and flow statistics marks in a stream's packet, as TRex does before it runs the field engine."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from fwlab.model.errors import BadInput
from fwlab.traffic.streams import Stream


def simulator_macs(direction: int) -> tuple[bytes, bytes]:
    """The MAC addresses (destination, source) of a port of TRex's simulator."""
    high = (direction % 2 + 1) << 4
    return bytes([high]) * 6, bytes([high + 8]) * 6


SIMULATOR_MACS = simulator_macs(0)

_FIRST_MARK = 0xFF00  # first IPv4 identification (IPv6 flow label) that marks flow statistics
_LATENCY_MARK = 0xFFFF
_TO_CPU = 0x01  # bit in the TOS field or traffic class
_VLANS = (0x8100, 0x88A8)
_UDP = 17
_ETHERNET_HEADER, _UDP_HEADER, _VXLAN_HEADER = 14, 8, 8
_KEEP_SOURCE, _PACKET_DESTINATION = 1, 1


@dataclass(frozen=True)
class Prepared:
    """The field engine's input. A latency stream's `trailer` overwrites the last bytes of each frame."""

    packet: bytes
    trailer: bytes = b""


def prepare(streams: Sequence[Stream], macs: tuple[bytes, bytes]) -> dict[int, Prepared]:
    """The prepared packets by stream index.

    streams  in the order in which TRex starts them, which is the order of the flow statistics counters
    """
    prepared: dict[int, Prepared] = {}
    counters: dict[str, dict[int, int]] = {"stats": {}, "latency": {}}
    for stream in streams:
        data = bytearray(stream.data)
        stats, trailer = stream.flow_stats, b""
        if stats.enabled and not stream.silent:
            kind = stats.rule_type or "stats"
            counter = counters[kind].setdefault(stats.stream_id or 0, len(counters[kind]))
            marked = _tunnelled(data, stream.label) if stats.vxlan else 0
            _mark(data, marked, _LATENCY_MARK if kind == "latency" else _FIRST_MARK + counter)
            if kind == "latency":
                trailer = _latency_trailer(counter)
        else:
            _unmark(data)
        _set_macs(data, stream.flags, macs)
        prepared[stream.index] = Prepared(bytes(data), trailer)
    return prepared


def _set_macs(data: bytearray, flags: int, macs: tuple[bytes, bytes]) -> None:
    keep_source, destination = bool(flags & _KEEP_SOURCE), (flags >> 1) & 3
    if destination != _PACKET_DESTINATION:
        data[0:6] = macs[0]
    if not keep_source or destination not in (0, _PACKET_DESTINATION):
        data[6:12] = macs[1]


def ip_header(data: bytes | bytearray, frame: int = 0) -> tuple[int, int]:
    """Version and offset of the IP header behind Ethernet, which begins at `frame`, and any VLAN tags; or (0, 0)."""
    at = frame + 12
    while at + 2 <= len(data):
        kind = struct.unpack_from(">H", data, at)[0]
        if kind in _VLANS:
            at += 4
        elif kind == 0x0800 and at + 22 <= len(data):
            return 4, at + 2
        elif kind == 0x86DD and at + 42 <= len(data):
            return 6, at + 2
        else:
            break
    return 0, 0


def _unmark(data: bytearray) -> None:
    """Remove the mark from the packet of a stream without statistics."""
    version, at = ip_header(data)
    if version == 4:
        number = struct.unpack_from(">H", data, at + 4)[0]
        if number >= _FIRST_MARK:
            _replace_word(data, at, at + 4, number & 0xEFFF)
    elif version == 6:
        first = struct.unpack_from(">I", data, at)[0]
        if first & 0xFFFFF >= _FIRST_MARK:
            struct.pack_into(">I", data, at, (first & 0xFFF00000) | (first & 0xEFFF))


def _tunnelled(data: bytearray, label: str) -> int:
    """Offset of the frame within a VXLAN tunnel, which then has the mark. Raises BadInput if there is none."""
    version, at = ip_header(data)
    length, protocol = ((data[at] & 0x0F) * 4, data[at + 9]) if version == 4 else (40, data[at + 6])
    inner = at + length + _UDP_HEADER + _VXLAN_HEADER
    if not version or protocol != _UDP or inner + _ETHERNET_HEADER > len(data):
        raise BadInput(f"{label}: the packet has no VXLAN tunnel", "omit vxlan, or give a packet with UDP and VXLAN")
    return inner


def _mark(data: bytearray, frame: int, number: int) -> None:
    version, at = ip_header(data, frame)
    if version == 4:
        _replace_word(data, at, at + 4, number)
        _replace_word(data, at, at, struct.unpack_from(">H", data, at)[0] | _TO_CPU)
    elif version == 6:
        first = struct.unpack_from(">I", data, at)[0]
        struct.pack_into(">I", data, at, (first & 0xFFF00000) | _TO_CPU << 20 | number)


def _replace_word(data: bytearray, header: int, at: int, new: int) -> None:
    """Replace a word of an IPv4 header and update its checksum (RFC 1624): a wrong checksum remains wrong."""
    old = struct.unpack_from(">H", data, at)[0]
    checksum = struct.unpack_from(">H", data, header + 10)[0]
    total = (~checksum & 0xFFFF) + (~old & 0xFFFF) + new
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", data, at, new)
    struct.pack_into(">H", data, header + 10, ~total & 0xFFFF)


def _latency_trailer(counter: int) -> bytes:
    """Magic, generation, counter, sequence number and time stamp, the last two with the simulator's constants."""
    return struct.pack("<BBHIQ", 0xAB, 0x01, counter, 0x12345678, 0x8899AABBCCDDEEFF)
