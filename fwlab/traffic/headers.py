# SPDX-License-Identifier: GPL-2.0-or-later
"""Parses addresses, protocol and ports of many frames at once, behind Ethernet and any VLAN tags."""

import ipaddress
import struct
from dataclasses import dataclass

import numpy as np

from fwlab.traffic.frames import Frames

IPV4, IPV6 = 4, 6
_WIDTH = 192  # leading bytes of each frame that are parsed
_VLANS = (0x8100, 0x88A8)
_EXTENSIONS = (0, 43, 60)  # IPv6 extension headers with their length in the second byte
_FRAGMENT = 44
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
    rows = np.arange(count)
    at = np.full(count, 12)
    for _ in range(3):
        tagged = np.isin(_word(table, rows, at), _VLANS)
        at = at + np.where(tagged, 4, 0)
    kind, at = _word(table, rows, at), at + 2
    first = table[rows, at] >> 4
    version = np.where((kind == 0x0800) & (first == 4), IPV4, np.where((kind == 0x86DD) & (first == 6), IPV6, 0))
    four = (version == IPV4)[:, np.newaxis]
    src = np.where(four, _padded(table, rows, at + 12, 4), _padded(table, rows, at + 8, 16))
    dst = np.where(four, _padded(table, rows, at + 16, 4), _padded(table, rows, at + 24, 16))
    protocol, l4, whole = _transport(table, rows, at, version)
    complete = l4 + 4 <= np.minimum(frames.lengths, _WIDTH)
    ported = np.isin(protocol, _WITH_PORTS) & (version != 0) & whole & complete
    l4 = np.where(ported, l4, 0)
    return Headers(
        version=version,
        src=src,
        dst=dst,
        protocol=np.where(version != 0, protocol, -1),
        sport=np.where(ported, _word(table, rows, l4), -1),
        dport=np.where(ported, _word(table, rows, l4 + 2), -1),
        network=at,
        transport=np.where(ported, l4, -1),
        payload=np.where(ported & (protocol == _UDP), l4 + 8, -1),
        group_mac=(table[:, 0] & 1).astype(bool),
    )


def within(version: np.ndarray, addresses: np.ndarray, prefix: str) -> np.ndarray:
    """Which of the addresses (as in Headers) lie within the prefix: bool array of shape (n,)."""
    network = ipaddress.ip_network(prefix, strict=False)
    size = network.max_prefixlen // 8
    base = np.frombuffer(network.network_address.packed, dtype=np.uint8)
    mask = np.frombuffer(network.netmask.packed, dtype=np.uint8)
    same = ((addresses[:, :size] & mask) == base).all(axis=1)
    return np.asarray(same & (version == (IPV4 if network.version == 4 else IPV6)))


def ipv4_numbers(addresses: np.ndarray) -> np.ndarray:
    """IPv4 addresses (as in Headers) as integers: int64 array of shape (n,)."""
    return np.asarray(addresses[:, :4].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1]))


def _word(table: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.asarray((table[rows, at].astype(np.int64) << 8) + table[rows, at + 1])


def _padded(table: np.ndarray, rows: np.ndarray, at: np.ndarray, size: int) -> np.ndarray:
    cut = np.zeros((len(rows), 16), dtype=np.uint8)
    cut[:, :size] = table[rows[:, np.newaxis], at[:, np.newaxis] + np.arange(size)]
    return cut


def _transport(
    table: np.ndarray, rows: np.ndarray, at: np.ndarray, version: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transport protocol, its offset, and whether the packet contains its header (is no later fragment)."""
    four = version == IPV4
    protocol = np.where(four, table[rows, at + 9], table[rows, at + 6]).astype(np.int64)
    l4 = np.where(four, at + (table[rows, at] & 0x0F).astype(np.int64) * 4, at + 40)
    whole = ~(four & ((_word(table, rows, at + 6) & 0x1FFF) != 0))
    for _ in range(4):
        inside = l4 < _WIDTH - 8
        here = np.where(inside, l4, 0)
        extended = (version == IPV6) & inside & np.isin(protocol, _EXTENSIONS)
        fragment = (version == IPV6) & inside & (protocol == _FRAGMENT)
        whole &= ~(fragment & ((_word(table, rows, here + 2) & 0xFFF8) != 0))
        longer = np.where(fragment, 8, (table[rows, here + 1].astype(np.int64) + 1) * 8)
        more = extended | fragment
        protocol = np.where(more, table[rows, here], protocol)
        l4 = np.where(more, l4 + longer, l4)
    return protocol, l4, whole


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
