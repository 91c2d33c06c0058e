# SPDX-License-Identifier: GPL-2.0-or-later
"""Header fields that no exercise is about, drawn for every frame.

A stream has the same values in all of its packets. Then the checksum of the IPv4 header is a function of the
addresses, and a few checksums can replace a list of hosts. Here a seed draws the identification and the TTL, in IPv6
the flow label and the hop limit, and the sequence number with which each end of a TCP connection begins.

Fragments of one datagram have the same values. In IPv4 the identification is what they belong together by.

Segments that continue one another, as those of a download do, share a TTL and have consecutive identifications, as
those of one sender have. Otherwise nothing could merge them.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fwlab.traffic import checksums
from fwlab.traffic.frames import Frames, Frameset
from fwlab.traffic.headers import IPV4, IPV6, Headers, fragments, read_headers

#: The lowest TTL, and how many there are from there on.
MIN_TTL, TTLS = 33, 96
_TCP_HEADER = 20
_FRAGMENT_ENDS = 72  # bytes up to the end of an IPv6 fragment header, behind two VLAN tags
_LOW, _TOP = np.uint64(32), np.uint64(0xFFFFFFFF)


def varied(frames: Frames, seed: int, *, hops: bool = True) -> Frames:
    """The same frames with these fields drawn by the seed. Checksums follow; a wrong one remains wrong.

    hops  TTL and hop limit are among these fields
    """
    headers = read_headers(frames)
    segments = np.flatnonzero((headers.protocol == checksums.TCP) & (headers.transport > 0))
    segments = segments[headers.transport[segments] + _TCP_HEADER <= frames.lengths[segments]]
    ends = np.where(headers.version != 0, headers.network + 12, 0)
    ends[segments] = headers.transport[segments] + _TCP_HEADER
    table = frames.matrix(int(ends.max(initial=0)))
    # NumPy promises that this generator's raw output stays the same in every version.
    drawn, turns = np.random.PCG64(seed).random_raw(len(frames)), np.zeros(len(frames), dtype=np.uint64)
    leaders, turns[segments] = _trains(table, headers, segments, frames.lengths)
    drawn[segments] = drawn[leaders]
    pieces, names = fragments(frames.matrix(_FRAGMENT_ENDS), headers)
    if len(pieces):
        addresses = [ends[pieces].copy().view(">u8").astype(np.uint64) for ends in (headers.src, headers.dst)]
        drawn[pieces], turns[pieces] = _mixed(seed, np.column_stack([*addresses, names])), 0
    _vary_ipv4(table, headers, drawn + turns, drawn >> _LOW if hops else None)
    _vary_ipv6(table, headers, drawn, drawn >> _LOW if hops else None)
    _vary_tcp(table, headers, segments, seed)
    return _with_heads(frames, table)


def _vary_ipv4(table: np.ndarray, headers: Headers, numbers: np.ndarray, hops: np.ndarray | None) -> None:
    for at, rows in _by_place(headers.network, np.flatnonzero(headers.version == IPV4)):
        block = table[rows]
        before = checksums.add_words(block, at, at + 10)
        checksums.put(block, at + 4, numbers[rows] & np.uint64(0xFFFF))
        if hops is not None:
            block[:, at + 8] = _ttl(hops[rows])
        checksums.amend(block, at + 10, before, checksums.add_words(block, at, at + 10))
        table[rows] = block


def _vary_ipv6(table: np.ndarray, headers: Headers, labels: np.ndarray, hops: np.ndarray | None) -> None:
    for at, rows in _by_place(headers.network, np.flatnonzero(headers.version == IPV6)):
        block = table[rows]
        top = (labels[rows] >> np.uint64(16) & np.uint64(0x0F)).astype(np.uint8)
        block[:, at + 1] = block[:, at + 1] & 0xF0 | top
        checksums.put(block, at + 2, labels[rows] & np.uint64(0xFFFF))
        if hops is not None:
            block[:, at + 7] = _ttl(hops[rows])
        table[rows] = block


def _ttl(drawn: np.ndarray) -> np.ndarray:
    return np.asarray(drawn % np.uint64(TTLS) + np.uint64(MIN_TTL)).astype(np.uint8)


def _vary_tcp(table: np.ndarray, headers: Headers, segments: np.ndarray, seed: int) -> None:
    """Begin both ends' numbers elsewhere. What acknowledges what stays as it is."""
    there, back = _connections(headers, segments, seed)
    for at, rows in _by_place(headers.transport, segments):
        block, places = table[rows], np.searchsorted(segments, rows)
        before = checksums.add_words(block, at + 4, at + 12)
        for field, first in ((at + 4, there[places]), (at + 8, back[places])):
            _put_number(block, field, _number(block, field) + first)
        checksums.amend(block, at + 16, before, checksums.add_words(block, at + 4, at + 12))
        table[rows] = block


def _connections(headers: Headers, segments: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A number for the direction of each segment, and one for the other direction: uint64 arrays."""
    src, dst = (ends[segments].copy().view(">u8").astype(np.uint64) for ends in (headers.src, headers.dst))
    sport, dport = (ports[segments].astype(np.uint64) for ports in (headers.sport, headers.dport))
    one, other = np.column_stack([src, sport]), np.column_stack([dst, dport])
    return _mixed(seed, np.hstack([one, other])), _mixed(seed, np.hstack([other, one]))


def _mixed(seed: int, words: np.ndarray) -> np.ndarray:
    """A pseudo-random number for each row of words (after the finaliser of SplitMix64): uint64 array."""
    found = np.full(len(words), seed, dtype=np.uint64)
    for word in words.T:
        found = (found ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found ^= found >> np.uint64(31)
    return found


def _trains(
    table: np.ndarray, headers: Headers, segments: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each segment the first one of its train, and how many come between: of no train, itself and 0."""
    order = np.argsort(_connections(headers, segments, 0)[0], kind="stable")
    rows = segments[order]
    flows = _connections(headers, rows, 0)[0]
    numbers, lengths = np.zeros((2, len(rows)), dtype=np.uint64)
    for at, some in _by_place(headers.transport, rows):
        places = np.isin(rows, some)
        block = table[rows[places]]
        numbers[places] = _number(block, at + 4)
        # Ethernet's padding counts as payload here; no segment continues it.
        lengths[places] = sizes[rows[places]] - at - (block[:, at + 12] >> 4).astype(np.int64) * 4
    follows = np.zeros(len(rows), dtype=bool)
    follows[1:] = (flows[1:] == flows[:-1]) & (lengths[:-1] > 0) & (numbers[1:] == (numbers[:-1] + lengths[:-1] & _TOP))
    first = np.maximum.accumulate(np.where(follows, 0, np.arange(len(rows))))
    leaders, turns = np.empty_like(rows), np.empty(len(rows), dtype=np.uint64)
    leaders[order], turns[order] = rows[first], np.arange(len(rows)) - first
    return leaders, turns


def _number(block: np.ndarray, at: int) -> np.ndarray:
    return np.asarray((checksums.word(block, at) << np.uint64(16)) + checksums.word(block, at + 2))


def _put_number(block: np.ndarray, at: int, values: np.ndarray) -> None:
    checksums.put(block, at, values >> np.uint64(16) & np.uint64(0xFFFF))
    checksums.put(block, at + 2, values & np.uint64(0xFFFF))


def _by_place(places: np.ndarray, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The rows by where their header begins."""
    for at in np.unique(places[rows]):
        yield int(at), rows[places[rows] == at]


def _with_heads(frames: Frames, table: np.ndarray) -> Frames:
    """The frames with these first bytes. Each then has its own row."""
    parts, row = [], np.zeros(len(frames), dtype=np.int64)
    for number, made in enumerate(frames.parts):
        mine = np.flatnonzero(frames.part == number)
        row[mine] = np.arange(len(mine))
        data = made.data[frames.row[mine]]
        data[:, : table.shape[1]] = table[mine, : data.shape[1]]
        parts.append(Frameset(data, made.lengths[frames.row[mine]]))
    found = replace(frames, row=row, parts=parts)
    found.headers = frames.headers  # they hold no field that is drawn here
    return found
