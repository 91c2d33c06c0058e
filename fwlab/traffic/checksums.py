# SPDX-License-Identifier: GPL-2.0-or-later
"""Internet checksums (RFC 1071) over many frames at once.

`heads` is a uint8 array of shape (frames, width) with the bytes that may change; `tail` is what follows them
in every frame. Offsets count from the start of the frame."""

from __future__ import annotations

import numpy as np

TCP, UDP, ICMPV6 = 6, 17, 58


def fold(sums: np.ndarray) -> np.ndarray:
    """One's complement sum in 16 bits of sums of 16-bit words."""
    for _ in range(4):
        sums = (sums & np.uint64(0xFFFF)) + (sums >> np.uint64(16))
    return sums


def add_words(heads: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Sum of the big-endian 16-bit words of heads[:, start:stop], an odd last byte padded with zero."""
    block = heads[:, start:stop]
    sums = block[:, 0::2].sum(axis=1, dtype=np.uint64) << np.uint64(8)
    return sums + block[:, 1::2].sum(axis=1, dtype=np.uint64)


def put(heads: np.ndarray, offset: int, values: np.ndarray) -> None:
    """Write 16-bit values, big-endian."""
    heads[:, offset] = (values >> np.uint64(8)).astype(np.uint8)
    heads[:, offset + 1] = (values & np.uint64(0xFF)).astype(np.uint8)


def word(heads: np.ndarray, offset: int) -> np.ndarray:
    return (heads[:, offset].astype(np.uint64) << np.uint64(8)) + heads[:, offset + 1]


def inverted(sums: np.ndarray) -> np.ndarray:
    return ~fold(sums) & np.uint64(0xFFFF)


def fix_ipv4(heads: np.ndarray, offset: int) -> None:
    """Recompute the IPv4 header checksum; the header's length is read from each frame."""
    put(heads, offset + 10, np.zeros(len(heads), dtype=np.uint64))
    lengths = (heads[:, offset] & 0x0F).astype(np.int64) * 4
    for length in np.unique(lengths):
        rows = lengths == length
        if rows.all():
            put(heads, offset + 10, inverted(add_words(heads, offset, offset + length)))
        else:
            part = heads[rows]
            put(part, offset + 10, inverted(add_words(part, offset, offset + length)))
            heads[rows] = part


def pseudo_ipv4(heads: np.ndarray, l3: int) -> np.ndarray:
    """Sum over IPv4's pseudo header: addresses, protocol, length of what follows the header."""
    payload = word(heads, l3 + 2) - (heads[:, l3] & 0x0F).astype(np.uint64) * np.uint64(4)
    return fold(add_words(heads, l3 + 12, l3 + 20) + heads[:, l3 + 9] + (payload & np.uint64(0xFFFF)))


def pseudo_ipv6(heads: np.ndarray, l3: int) -> np.ndarray:
    return fold(add_words(heads, l3 + 8, l3 + 40) + word(heads, l3 + 4) + heads[:, l3 + 6])


def prepare_hw(heads: np.ndarray, l3: int, l4: int, protocol: int) -> None:
    """What a card that completes checksums is given: zero for IPv4's own, the pseudo header's for the
    transport's."""
    version = int(heads[0, l3]) >> 4
    if version == 4:
        put(heads, l3 + 10, np.zeros(len(heads), dtype=np.uint64))
    at = l4 + (16 if protocol == TCP else 6)
    put(heads, at, pseudo_ipv4(heads, l3) if version == 4 else pseudo_ipv6(heads, l3))


def complete_hw(heads: np.ndarray, tail: bytes, lengths: np.ndarray, l3: int, l4: int, protocol: int) -> None:
    """What such a card does: finish the transport's checksum over the payload, then IPv4's own."""
    version = int(heads[0, l3]) >> 4
    if protocol in (TCP, UDP):
        if version == 4:
            end = l3 + word(heads, l3 + 2).astype(np.int64)
        else:
            end = l3 + 40 + word(heads, l3 + 4).astype(np.int64)
        sums = inverted(sum_between(heads, tail, l4, np.minimum(end, lengths)))
        if protocol == UDP:
            sums[sums == 0] = 0xFFFF  # RFC 768: zero would mean that there is none
        put(heads, l4 + (16 if protocol == TCP else 6), sums)
    if version == 4:
        fix_ipv4(heads, l3)


def fix_icmpv6(heads: np.ndarray, tail: bytes, l3: int, l4: int) -> None:
    """Recompute ICMPv6's checksum over pseudo header and as many bytes as the header says."""
    put(heads, l4 + 2, np.zeros(len(heads), dtype=np.uint64))
    end = l4 + word(heads, l3 + 4).astype(np.int64)
    whole = np.full(len(heads), heads.shape[1] + len(tail), dtype=np.int64)
    put(heads, l4 + 2, inverted(pseudo_ipv6(heads, l3) + sum_between(heads, tail, l4, np.minimum(end, whole))))


def sum_between(heads: np.ndarray, tail: bytes, start: int, ends: np.ndarray) -> np.ndarray:
    """Folded sum of the words from `start` to each frame's own end."""
    width = heads.shape[1]
    sums = np.zeros(len(heads), dtype=np.uint64)
    for end in np.unique(ends):
        rows = ends == end
        part = add_words(heads[rows], start, min(int(end), width))
        rest = np.frombuffer(tail, dtype=np.uint8)[: max(int(end) - width, 0)]
        if len(rest):
            # the tail's first byte is the low half of a word where the head ends in the middle of one
            odd = (width - start) & 1
            high, low = rest[odd::2], rest[1 - odd :: 2]
            part = part + (np.uint64(high.sum(dtype=np.uint64)) << np.uint64(8)) + low.sum(dtype=np.uint64)
        sums[rows] = fold(part)
    return sums
