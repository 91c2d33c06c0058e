# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recorder wrote: frames with the time of the DUT's clock, and which frame of the traffic each of them is.

A router changes a frame's MAC addresses, its TTL and the checksum of its IP header. One that puts fragments together to
look at a datagram takes it apart again, and then IPv6 gives it another identification. Without these a frame that left
the DUT is the frame that reached it, byte for byte, and so has its traffic class. A frame is foreign if no frame of the
traffic equals it, if it is addressed to neither end, if its TTL is not what routing leaves, or if it leaves by the link
that does not lead to its destination. What the DUT makes itself is neither: ARP, neighbour discovery, ICMP errors, the
RST of a rule that rejects.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network
from pathlib import Path
from types import MappingProxyType
from typing import Self

import numpy as np

from fwlab.model.declared_traffic import Redirection, Translation
from fwlab.traffic.classes import OTHER
from fwlab.traffic.frames import Frames, cut
from fwlab.traffic.headers import read_headers, within

PCAP_HEADER = 24
RECORD = struct.Struct("<IIII")
#: The third number of a record: how many bytes of the frame follow.
LENGTH, LENGTH_AT = struct.Struct("<I"), 8
_MACS = slice(0, 12)
_ETHERTYPE = 12
_IP, _IPV6_END, _PROTOCOL, _NEXT_HEADER, _TCP_FLAGS = 14, 54, 23, 20, 13
_TTL, _CHECKSUM, _HOP_LIMIT = 22, slice(24, 26), 21
#: The next header that says that a fragment's follows, and the identification there.
_FRAGMENT, _IDENTIFICATION = 44, slice(58, 62)
#: What source NAT replaces, behind an IP header without options: the address, the port, and the checksum behind it.
_SOURCE, _PORT, _UDP_CHECKSUM, _TCP_CHECKSUM = slice(26, 30), slice(34, 36), slice(40, 42), slice(50, 52)
#: What destination NAT replaces, and what the bytes of an address count.
_DESTINATION, _DESTINATION_PORT, _BYTES = slice(30, 34), slice(36, 38), 1 << np.array([24, 16, 8, 0])
_TARGET = (_DESTINATION, _DESTINATION_PORT)
_IPV4, _IPV6, _ARP = 0x0800, 0x86DD, 0x0806
ICMP, IGMP, TCP, UDP, ICMPV6, HOP_BY_HOP, RST = 1, 2, 6, 17, 58, 0, 4
#: Where the packet begins that an ICMP error of IPv4 quotes; at least its IP header and 8 bytes follow.
ICMP_HEADER, QUOTED = 8, 28
_QUOTE = _IP + 20 + ICMP_HEADER
#: Unreachable, source quench, redirect, time exceeded, parameter problem.
ICMP_ERRORS = (3, 4, 5, 11, 12)
#: The type and code of the error that names the largest packet. No rule that rejects sends it.
FRAGMENTATION_NEEDED = (3, 4)
ECHOES_V6 = (128, 129)


@dataclass(frozen=True)
class Recording:
    """n frames in the order in which they passed.

    times_us  by the DUT's clock: int64 array of shape (n,)
    heads     the first bytes of each frame, padded with zeros: uint8 array of shape (n, kept), kept a multiple of 8
    """

    times_us: np.ndarray
    heads: np.ndarray

    def __len__(self) -> int:
        return len(self.times_us)

    def sent_to(self, mac: str) -> np.ndarray:
        """Which frames have this destination MAC address: bool array of shape (n,)."""
        address = np.frombuffer(bytes.fromhex(mac.replace(":", "")), dtype=np.uint8)
        return np.asarray((self.heads[:, : len(address)] == address).all(axis=1))

    @cached_property
    def keys(self) -> np.ndarray:
        """A number for each frame that routing does not change: uint64 array of shape (n,)."""
        return frame_keys(self.heads)

    @cached_property
    def routed_keys(self) -> np.ndarray:
        """The same, but with the TTL: uint64 array of shape (n,)."""
        return frame_keys(self.heads, with_ttl=True)

    @cached_property
    def quoted_keys(self) -> np.ndarray:
        """What each ICMP "fragmentation needed" quotes: a number as `_ip_keys` gives it, else 0. uint64 array (n,)."""
        kind, behind = _kinds(self.heads), self.heads[:, _QUOTE - ICMP_HEADER : _QUOTE - ICMP_HEADER + 2]
        errors = (kind == _IPV4) & (self.heads[:, _PROTOCOL] == ICMP) & (behind == FRAGMENTATION_NEEDED).all(axis=1)
        return np.where(errors, _ip_keys(self.heads[:, _QUOTE:]), np.uint64(0))

    @cached_property
    def of_the_dut(self) -> np.ndarray:
        """Which frames a router makes itself: bool array of shape (n,)."""
        kind, heads = _kinds(self.heads), self.heads
        four, six = kind == _IPV4, kind == _IPV6
        behind = _IP + 4 * (heads[:, _IP].astype(np.intp) & 15)
        rows, last = np.arange(len(heads)), heads.shape[1] - 1
        four_type, four_flags = (heads[rows, np.minimum(behind + at, last)] for at in (0, _TCP_FLAGS))
        six_type, six_flags = heads[:, _IPV6_END], heads[:, _IPV6_END + _TCP_FLAGS]
        found = kind == _ARP
        protocol, following = heads[:, _PROTOCOL], heads[:, _NEXT_HEADER]
        found |= four & ((protocol == IGMP) | ((protocol == ICMP) & np.isin(four_type, ICMP_ERRORS)))
        found |= four & (protocol == TCP) & (four_flags & RST > 0)
        found |= six & ((following == HOP_BY_HOP) | ((following == ICMPV6) & ~np.isin(six_type, ECHOES_V6)))
        found |= six & (following == TCP) & (six_flags & RST > 0)
        return np.asarray(found)


def read_recording(path: Path, kept: int) -> Recording:
    """The frames in a file of QEMU's filter-dump that keeps `kept` bytes of each, without an incomplete last one."""
    data = path.read_bytes() if path.exists() else b""
    at, places = PCAP_HEADER, []
    while at + RECORD.size <= len(data):
        end = at + RECORD.size + LENGTH.unpack_from(data, at + LENGTH_AT)[0]
        if end > len(data):
            break
        places.append(at)
        at = end
    begins, recorded = np.array(places, dtype=np.int64), np.frombuffer(data, dtype=np.uint8)
    headers = cut(recorded, begins, RECORD.size).view("<u4").astype(np.int64)
    heads = np.zeros((len(begins), kept), dtype=np.uint8)
    for size in np.unique(headers[:, 2]):
        rows = np.flatnonzero(headers[:, 2] == size)
        heads[rows, :size] = cut(recorded, begins[rows] + RECORD.size, size)
    return Recording(headers[:, 0] * 1_000_000 + headers[:, 1], heads)


def _kinds(heads: np.ndarray) -> np.ndarray:
    """The Ethertype of each frame: int64 array of shape (n,)."""
    return np.asarray(heads[:, _ETHERTYPE].astype(np.int64) << 8 | heads[:, _ETHERTYPE + 1])


def frame_keys(heads: np.ndarray, *, with_ttl: bool = False) -> np.ndarray:
    """A number for each frame, from its first bytes (shape (n, kept)) without those that a router changes.

    with_ttl  the TTL (hop limit) makes a difference
    """
    fixed, kind = heads.copy(), _kinds(heads)
    fixed[:, _MACS] = 0
    four, six = np.flatnonzero(kind == _IPV4), np.flatnonzero(kind == _IPV6)
    fixed[four, _CHECKSUM] = 0
    fixed[six[fixed[six, _NEXT_HEADER] == _FRAGMENT], _IDENTIFICATION] = 0
    if not with_ttl:
        fixed[four, _TTL] = 0
        fixed[six, _HOP_LIMIT] = 0
    return _mixed(fixed)


def _mixed(fixed: np.ndarray) -> np.ndarray:
    """A number for each row of bytes (shape (n, k), k a multiple of 8): uint64 array of shape (n,)."""
    words = np.ascontiguousarray(fixed).view(np.uint64)
    # Multiply-shift hashing: a chance of 2**-64 for each pair of different frames, for odd random factors.
    drawn = np.asarray(np.random.default_rng(1).integers(1 << 63, size=words.shape[1], dtype=np.uint64))
    factors = drawn << np.uint64(1) | np.uint64(1)
    found = np.zeros(len(words), dtype=np.uint64)
    for place, word in enumerate(words.T):
        mixed = (word ^ (word >> np.uint64(29))) * factors[place]
        found ^= mixed ^ (mixed >> np.uint64(32))
    return found


def _ip_keys(packets: np.ndarray) -> np.ndarray:
    """A number for the first bytes of each IPv4 packet, without TTL and checksum: uint64 array of shape (n,)."""
    fixed = np.zeros((len(packets), -(-QUOTED // 8) * 8), dtype=np.uint8)
    fixed[:, :QUOTED] = packets[:, :QUOTED]
    fixed[:, _TTL - _IP] = 0
    fixed[:, _CHECKSUM.start - _IP : _CHECKSUM.stop - _IP] = 0
    return _mixed(fixed)


def ends_behind(frames: Frames, behind: Sequence[Iterable[str]]) -> np.ndarray:
    """The number of the end that leads to each frame's destination, or ANY_END: int64 array of shape (n,).

    behind  for each end, the networks behind it
    """
    headers, found = read_headers(frames), np.full(len(frames), ANY_END)
    for end, networks in enumerate(behind):
        for network in networks:
            found[within(headers.version, headers.dst, network)] = end
    return found


def _routed(heads: np.ndarray) -> np.ndarray:
    """The frames with the TTL that one router leaves: uint8 array of the same shape."""
    found, kind = heads.copy(), _kinds(heads)
    for version, place in ((_IPV4, _TTL), (_IPV6, _HOP_LIMIT)):
        found[kind == version, place] -= 1
    return found


#: Bytes of each frame that are recorded: the first of these that tells the classes of a traffic apart. Multiples of 8.
KEPT = (96, 384, 1536)

#: Numbers in place of a class's: a frame of the traffic that has none; one that is not of the traffic; of those of the
#: traffic, one with the MAC address of neither end, one that was not routed, one that left by the wrong link, one whose
#: source was to be translated and is another, and one whose destination is another than it was to have; and one that
#: the DUT made.
NO_CLASS, UNKNOWN, ASTRAY, UNROUTED, OF_THE_DUT, MISROUTED, UNTRANSLATED, MISDIRECTED = -1, -2, -3, -4, -5, -6, -7, -8
#: The ends of the DUT's links, and that of a frame whose destination is behind neither.
GENERATOR, SINK, ANY_END = 0, 1, -1
#: Maximum number of packets that the DUT takes from its ring at a time (NAPI_POLL_WEIGHT). So a full ring has room for
#: as many of those that follow. Copies of a frame leave among those that came with it: up to this number of the
#: traffic, and twice as many frames if each has a copy.
MAX_BATCH = 64
#: A short traffic returns too soon to tell copies from its next round. A longer one, of N frames, does so now and then
#: where the ring was full: for some MAX_BATCH / 2 N of the frames. Up to this share may be chance.
MIN_FRAMES, MAX_BY_CHANCE = 8000, 0.02
COPIES = "sent more than once"
#: What is wrong with a foreign frame, by its number.
FOREIGN = MappingProxyType(
    {
        UNKNOWN: "changed or made by the ruleset",
        ASTRAY: "sent to a MAC address that is not the next hop's",
        UNROUTED: "sent on without being routed: their TTL is not one less",
        MISROUTED: "sent by the link that does not lead to their destination",
        UNTRANSLATED: "sent with another source than they had to be given",
        MISDIRECTED: "sent to another destination or port than they had to be",
    }
)


@dataclass(frozen=True)
class Redirected:
    """Frames with the destination that a ruleset has to give them.

    keys, routed  numbers of the frames without checksums, sorted; routed: with the TTL that one router leaves
    classes       the class of each of the keys
    anywhere      numbers of the frames without their destinations
    """

    keys: np.ndarray
    routed: np.ndarray
    classes: np.ndarray
    anywhere: np.ndarray

    @classmethod
    def of(cls, heads: np.ndarray, classes: np.ndarray, given: Redirection) -> Self:
        """Raises ValueError if frames of different classes are the same then."""
        sent = _without(redirected(heads, given))
        keys, of_keys = _told_apart(sent, classes, "destination NAT")
        routed = np.unique(frame_keys(_routed(sent), with_ttl=True))
        return cls(keys, routed, of_keys, np.unique(frame_keys(_without(heads, *_TARGET))))

    def sent(self, heads: np.ndarray) -> np.ndarray:
        """The number of each frame's class, or UNKNOWN, UNROUTED or MISDIRECTED: int64 array of shape (n,)."""
        bare = _without(heads)
        found = _looked_up(frame_keys(bare), self.keys, self.classes)
        elsewhere = np.isin(frame_keys(_without(heads, *_TARGET)), self.anywhere)
        found[(found == UNKNOWN) & elsewhere] = MISDIRECTED
        found[(found >= NO_CLASS) & ~np.isin(frame_keys(bare, with_ttl=True), self.routed)] = UNROUTED
        return found


def redirected(heads: np.ndarray, given: Redirection) -> np.ndarray:
    """The frames (shape (n, kept)) with their services' endpoints for destinations, if they are UDP or TCP over IPv4.

    Their checksums are those of before.
    """
    found, services, endpoints = heads.copy(), IPv4Network(given.services), IPv4Network(given.endpoints)
    plain = (_kinds(heads) == _IPV4) & (heads[:, _IP] == 0x45) & np.isin(heads[:, _PROTOCOL], (UDP, TCP))
    address = heads[:, _DESTINATION].astype(np.int64) @ _BYTES
    plain &= address & int(services.netmask) == int(services.network_address)
    plain &= heads[:, _DESTINATION_PORT].astype(np.int64) @ _BYTES[2:] == given.port
    rows = np.flatnonzero(plain)
    number = (address[rows] - int(services.network_address)) * given.factor % services.num_addresses
    target = number + int(endpoints.network_address)
    found[rows, _DESTINATION] = (target[:, None] >> np.array([24, 16, 8, 0])) & 255
    found[rows, _DESTINATION_PORT] = divmod(given.endpoint_port, 256)
    return found


@dataclass(frozen=True)
class Translated:
    """Frames whose source NAT replaces, to be recognised by what it leaves.

    keys, routed  numbers of the frames without their source, sorted; routed: with the TTL that one router leaves
    classes       the class of each of the keys
    """

    to: IPv4Network
    ports: tuple[int, int]
    keys: np.ndarray
    routed: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, heads: np.ndarray, classes: np.ndarray, given: Translation) -> Self:
        """Raises ValueError if frames of different classes are the same without their source."""
        bare = without_source(heads)
        keys, of_keys = _told_apart(bare, classes, "source NAT")
        routed = np.unique(frame_keys(_routed(bare), with_ttl=True))
        return cls(IPv4Network(given.to), given.port_range, keys, routed, of_keys)

    def sent(self, heads: np.ndarray) -> np.ndarray:
        """The number of each frame's class, or UNKNOWN, UNROUTED or UNTRANSLATED: int64 array of shape (n,)."""
        bare = without_source(heads)
        found = _looked_up(frame_keys(bare), self.keys, self.classes)
        found[(found != UNKNOWN) & ~np.isin(frame_keys(bare, with_ttl=True), self.routed)] = UNROUTED
        source = heads[:, _SOURCE].astype(np.int64) @ _BYTES
        port = heads[:, _PORT].astype(np.int64) @ _BYTES[2:]
        allowed = source & int(self.to.netmask) == int(self.to.network_address)
        allowed &= (port >= self.ports[0]) & (port <= self.ports[1])
        found[(found != UNKNOWN) & ~allowed] = UNTRANSLATED
        return found


def _told_apart(heads: np.ndarray, classes: np.ndarray, nat: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of frames as `nat` leaves them, sorted, and the class of each. Raises ValueError for two classes."""
    keys, first, places = np.unique(frame_keys(heads), return_index=True, return_inverse=True)
    if (classes[first][places] != classes).any():
        raise ValueError(f"frames of different classes differ in nothing that {nat} leaves")
    return keys, classes[first]


def _looked_up(wanted: np.ndarray, keys: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The class of each of the wanted numbers among the keys, which are sorted; UNKNOWN for one that is not there."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, classes[places], UNKNOWN)


def without_source(heads: np.ndarray) -> np.ndarray:
    """The frames without what source NAT replaces, if they are UDP or TCP over IPv4: uint8 array of the same shape."""
    return _without(heads, _SOURCE, _PORT)


def _without(heads: np.ndarray, *parts: slice) -> np.ndarray:
    """The frames without these parts and the checksum of UDP or TCP over IPv4: uint8 array of the same shape."""
    found = heads.copy()
    plain = (_kinds(heads) == _IPV4) & (heads[:, _IP] == 0x45)
    for protocol, checksum in ((UDP, _UDP_CHECKSUM), (TCP, _TCP_CHECKSUM)):
        rows = np.flatnonzero(plain & (heads[:, _PROTOCOL] == protocol))
        for part in (*parts, checksum):
            found[rows, part] = 0
    return found


class KnownFrames:
    """The frames of a traffic, with the class of each, to be recognised."""

    def __init__(
        self,
        heads: np.ndarray,
        classes: np.ndarray,
        names: Sequence[str],
        ends: np.ndarray | None = None,
        nat: Translation | Redirection | None = None,
    ) -> None:
        """heads: as in Recording; classes: the number of each frame's class among the names, int64 array of shape (n,).

        ends  the end that leads to each frame's destination, as `ends_behind` gives it; not checked without it
        nat   the source or the destination that a frame which leaves for the sink has to have

        Raises ValueError if frames of different classes are the same as far as they are kept.
        """
        self.names, self.kept = tuple(names), heads.shape[1]
        self._keys, first, places, times = np.unique(
            frame_keys(heads), return_index=True, return_inverse=True, return_counts=True
        )
        self._classes = classes[first]
        self._ends = np.full(len(first), ANY_END) if ends is None else ends[first]
        self._frames, self._first, self._once = len(heads), first, times == 1
        if (self._classes[places] != classes).any():
            raise ValueError(f"frames of different classes have the same first {heads.shape[1]} bytes")
        self._routed = np.unique(frame_keys(_routed(heads), with_ttl=True))
        self._packets, first = np.unique(_ip_keys(heads[:, _IP:]), return_index=True)
        self._classes_of_packets = classes[first]
        self._behind_nat: Translated | Redirected | None = None
        if isinstance(nat, Translation):
            self._behind_nat = Translated.of(heads, classes, nat)
        elif nat is not None:
            self._behind_nat = Redirected.of(heads, classes, nat)

    def arrived(self, recording: Recording) -> np.ndarray:
        """The number of each frame's class, NO_CLASS or UNKNOWN: int64 array of shape (n,)."""
        places, known = self._found(recording)
        return np.where(known, self._classes[places], UNKNOWN)

    def _found(self, recording: Recording) -> tuple[np.ndarray, np.ndarray]:
        """The place of each frame among the keys, and whether it is there."""
        places = np.minimum(np.searchsorted(self._keys, recording.keys), len(self._keys) - 1)
        return places, self._keys[places] == recording.keys

    def more_than_came(self, came: Recording, *left: Recording) -> int:
        """Frames of the traffic that left more often than they came."""
        counts = [
            np.bincount(places[known], minlength=len(self._keys))
            for places, known in (self._found(some) for some in (came, *left))
        ]
        return int(np.maximum(np.sum(counts[1:], axis=0) - counts[0], 0).sum())

    def copies(self, left: Recording) -> int:
        """Frames that left again at once, where the frames that came were not recorded; 0 if chance may be the reason.

        A frame of the traffic comes again only after all others. So two of a kind that are near each other are copies,
        unless the traffic has started over between them.
        """
        places, known = self._found(left)
        if self._frames < MIN_FRAMES:
            return 0
        at = self._first[places[known & self._once[places]]]
        order = np.argsort(at, kind="stable")
        earlier, gap = order[:-1], np.diff(order)
        near = (at[order[1:]] == at[earlier]) & (gap <= 2 * MAX_BATCH)
        away = np.abs(at[earlier + gap // 2] - at[earlier])[near]
        found = int((np.minimum(away, self._frames - away) <= MAX_BATCH).sum())
        return found if found > MAX_BY_CHANCE * len(at) else 0

    def quoted(self, recording: Recording) -> np.ndarray:
        """The number of the class of what each such error quotes, NO_CLASS, or UNKNOWN: int64 array of shape (n,)."""
        return _looked_up(recording.quoted_keys, self._packets, self._classes_of_packets)

    def sent(self, recording: Recording, mac: str, end: int) -> np.ndarray:
        """The same for frames that the DUT sent to this end, with its MAC address if all is well; or what they are."""
        places, known = self._found(recording)
        found = np.where(known, self._classes[places], UNKNOWN)
        if self._behind_nat is not None and end == SINK:
            found = self._behind_nat.sent(recording.heads)
            found[~recording.sent_to(mac) & (found != UNKNOWN)] = ASTRAY
            found[(found == UNKNOWN) & recording.of_the_dut] = OF_THE_DUT
            return found
        found[known & ~np.isin(self._ends[places], (end, ANY_END))] = MISROUTED
        found[known & ~np.isin(recording.routed_keys, self._routed)] = UNROUTED
        found[known & ~recording.sent_to(mac)] = ASTRAY
        found[~known & recording.of_the_dut] = OF_THE_DUT
        return found

    def counted(self, classes: np.ndarray) -> dict[str, int]:
        """How many frames there are of each class, by its name; those of the traffic that have none are `other`."""
        counts = np.bincount(classes[classes >= 0], minlength=len(self.names))
        by_name = {name: int(counts[place]) for place, name in enumerate(self.names)}
        return {**by_name, OTHER: int((classes == NO_CLASS).sum())}


def foreign(*classes: np.ndarray, copies: int = 0) -> dict[str, int]:
    """How many frames are foreign, by what is wrong with them; without those kinds of which there are none."""
    counts = {words: sum(int((some == number).sum()) for some in classes) for number, words in FOREIGN.items()}
    return {words: count for words, count in {**counts, COPIES: copies}.items() if count}


def what_left(
    known: KnownFrames, forwarded: Recording, returned: Recording, ends: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """The number of each forwarded frame's class, or what else it is, and the same of each returned frame.

    ends  the MAC addresses of generator and sink. What the DUT makes itself and sends back is not foreign
    """
    back, on = (
        known.sent(some, mac, end) for end, (some, mac) in enumerate(zip((returned, forwarded), ends, strict=True))
    )
    return on, np.where(back == UNKNOWN, OF_THE_DUT, back)
