# SPDX-License-Identifier: GPL-2.0-or-later
"""Parses addresses, protocol and ports of many frames at once, behind Ethernet and any VLAN tags."""

import ipaddress
import struct
from dataclasses import dataclass

import numpy as np

from fwlab.traffic.frames import Frames, cut

IPV4, IPV6 = 4, 6
_WIDTH = 192  # leading bytes of each frame that are parsed
_VLANS = (0x8100, 0x88A8)
_EXTENSIONS = (0, 43, 60)  # IPv6 extension headers with their length in the second byte
_FRAGMENT = 44
_HEADERS = 8  # extension headers that are walked through
_UDP = 17
_WITH_PORTS = (6, _UDP, 132, 33)


@dataclass
class Headers:
    """Arrays of shape (n,); addresses of shape (n, 16).

    version       4, 6, or 0 without an IP header
    src, dst      IPv4 addresses occupy the first 4 bytes
    protocol      -1 without an IP header
    sport, dport  -1 without ports
    network       where the IP header begins
    transport     where the header with the ports begins, -1 without ports
    payload       where the payload of a UDP datagram begins, -1 without a UDP header
    group_mac     whether the destination MAC address is a multicast address
    """

    version: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    protocol: np.ndarray
    sport: np.ndarray
    dport: np.ndarray
    network: np.ndarray
    transport: np.ndarray
    payload: np.ndarray
    group_mac: np.ndarray


def read_headers(frames: Frames) -> Headers:
    """The headers of all frames, parsed once."""
    if frames.headers is None:
        frames.headers = _parse(frames)
    return frames.headers


def _parse(frames: Frames) -> Headers:
    table, count = frames.matrix(_WIDTH), len(frames)
    data, rows = table.reshape(-1), np.arange(count) * _WIDTH  # one index for each byte is faster than two
    at = np.full(count, 12)
    for _ in range(3):
        tagged = np.isin(_word(data, rows + at), _VLANS)
        if not tagged.any():
            break
        at = at + np.where(tagged, 4, 0)
    kind, at = _word(data, rows + at), at + 2
    first = data[rows + at] >> 4
    version = np.where((kind == 0x0800) & (first == 4), IPV4, np.where((kind == 0x86DD) & (first == 6), IPV6, 0))
    four = version == IPV4
    src, dst = (cut(data, rows + at + np.where(four, *places), 16) for places in ((12, 8), (16, 24)))
    for addresses in (src, dst):
        addresses[four, 4:] = 0
    protocol, l4, whole = _transport(data, rows, at, version)
    complete = l4 + 4 <= np.minimum(frames.lengths, _WIDTH)
    ported = np.isin(protocol, _WITH_PORTS) & (version != 0) & whole & complete
    l4 = np.where(ported, l4, 0)
    return Headers(
        version=version,
        src=src,
        dst=dst,
        protocol=np.where(version != 0, protocol, -1),
        sport=np.where(ported, _word(data, rows + l4), -1),
        dport=np.where(ported, _word(data, rows + l4 + 2), -1),
        network=at,
        transport=np.where(ported, l4, -1),
        payload=np.where(ported & (protocol == _UDP), l4 + 8, -1),
        group_mac=(table[:, 0] & 1).astype(bool),
    )


def within(version: np.ndarray, addresses: np.ndarray, prefix: str) -> np.ndarray:
    """Which of the addresses (as in Headers) lie within the prefix: bool array of shape (n,)."""
    network = ipaddress.ip_network(prefix, strict=False)
    base, mask = (
        np.frombuffer(address.packed.ljust(16, b"\0"), dtype=np.uint64)
        for address in (network.network_address, network.netmask)
    )
    found = version == (IPV4 if network.version == 4 else IPV6)
    for part, words in enumerate(np.ascontiguousarray(addresses).view(np.uint64).T):
        if mask[part]:
            found &= (words & mask[part]) == base[part]
    return np.asarray(found)


def ipv4_numbers(addresses: np.ndarray) -> np.ndarray:
    """IPv4 addresses (as in Headers) as integers: int64 array of shape (n,)."""
    return np.asarray(np.ascontiguousarray(addresses[:, :4]).view(">u4")[:, 0].astype(np.int64))


def _word(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.asarray((data[places].astype(np.int64) << 8) + data[places + 1])


def _transport(
    data: np.ndarray, rows: np.ndarray, at: np.ndarray, version: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transport protocol, its offset, and whether the packet contains its header (is no later fragment)."""
    four = version == IPV4
    protocol = data[rows + at + np.where(four, 9, 6)].astype(np.int64)
    l4 = np.where(four, at + (data[rows + at] & 0x0F).astype(np.int64) * 4, at + 40)
    whole = ~(four & ((_word(data, rows + at + 6) & 0x1FFF) != 0))
    for _ in range(_HEADERS):
        inside = l4 < _WIDTH - 8
        here = np.where(inside, l4, 0)
        extended = (version == IPV6) & inside & np.isin(protocol, _EXTENSIONS)
        fragment = (version == IPV6) & inside & (protocol == _FRAGMENT)
        more = extended | fragment
        if not more.any():
            break
        whole &= ~(fragment & ((_word(data, rows + here + 2) & 0xFFF8) != 0))
        longer = np.where(fragment, 8, (data[rows + here + 1].astype(np.int64) + 1) * 8)
        protocol = np.where(more, data[rows + here], protocol)
        l4 = np.where(more, l4 + longer, l4)
    return protocol, l4, whole


def fragments(table: np.ndarray, headers: Headers) -> tuple[np.ndarray, np.ndarray]:
    """Which frames are fragments: their numbers, and of each what names its datagram between its two addresses.

    table  the first bytes of the frames. An IPv6 packet is a fragment if that header is its first one
    """
    rows, at = np.arange(len(table)), headers.network
    ends = np.where(headers.version == IPV4, at + 20, np.where(headers.version == IPV6, at + 48, 0))
    there = np.flatnonzero((ends > 0) & (ends <= table.shape[1]))
    data, begin = table.reshape(-1), rows * table.shape[1] + at
    four, six = (there[headers.version[there] == version] for version in (IPV4, IPV6))
    four = four[_word(data, begin[four] + 6) & 0x3FFF != 0]  # more follow, or it is not the first
    six = six[data[begin[six] + 6] == _FRAGMENT]
    names = _word(data, begin[four] + 4) << 8 | data[begin[four] + 9], _long(data, begin[six] + 44)
    return np.concatenate([four, six]), np.concatenate(names).astype(np.uint64)


def _long(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.asarray((_word(data, places) << 16) + _word(data, places + 2))


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
