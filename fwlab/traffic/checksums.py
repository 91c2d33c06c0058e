# SPDX-License-Identifier: GPL-2.0-or-later
"""Internet checksums (RFC 1071) of many frames at once.

`heads` is a uint8 array of shape (frames, width) with the bytes that differ between frames; `tail` is the bytes that
follow them in every frame. Offsets count from the start of the frame.
"""

import numpy as np

TCP, UDP, ICMPV6 = 6, 17, 58


def fold(sums: np.ndarray) -> np.ndarray:
    """Fold sums of 16-bit words into 16 bits, in one's complement."""
    for _ in range(4):
        sums = (sums & np.uint64(0xFFFF)) + (sums >> np.uint64(16))
    return sums


def add_words(heads: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Sum of the big-endian 16-bit words of heads[:, start:stop]; an odd last byte is padded with zero."""
    block = heads[:, start:stop]
    sums = block[:, 0::2].sum(axis=1, dtype=np.uint64) << np.uint64(8)
    return np.asarray(sums + block[:, 1::2].sum(axis=1, dtype=np.uint64))


def put(heads: np.ndarray, offset: int, values: np.ndarray) -> None:
    """Write one 16-bit big-endian value into each frame."""
    heads[:, offset] = (values >> np.uint64(8)).astype(np.uint8)
    heads[:, offset + 1] = (values & np.uint64(0xFF)).astype(np.uint8)


def word(heads: np.ndarray, offset: int) -> np.ndarray:
    """The 16-bit big-endian value at `offset` of each frame: uint64 array of shape (frames,)."""
    return np.asarray((heads[:, offset].astype(np.uint64) << np.uint64(8)) + heads[:, offset + 1])


def inverted(sums: np.ndarray) -> np.ndarray:
    """The checksum that belongs to unfolded sums."""
    return ~fold(sums) & np.uint64(0xFFFF)


def amend(heads: np.ndarray, at: int, before: np.ndarray, after: np.ndarray) -> None:
    """Update checksums for words whose sum was `before` and is `after` (RFC 1624): a wrong checksum remains wrong."""
    put(heads, at, inverted((~word(heads, at) & np.uint64(0xFFFF)) + (~fold(before) & np.uint64(0xFFFF)) + after))


def fix_ipv4(heads: np.ndarray, offset: int) -> None:
    """Recompute the IPv4 header checksum. Each frame states the length of its own header."""
    put(heads, offset + 10, np.zeros(len(heads), dtype=np.uint64))
    lengths = (heads[:, offset] & 0x0F).astype(np.int64) * 4
    for length in np.unique(lengths):
        rows = lengths == length
        part = heads[rows]
        put(part, offset + 10, inverted(add_words(part, offset, offset + length)))
        heads[rows] = part


def pseudo_ipv4(heads: np.ndarray, l3: int) -> np.ndarray:
    """Folded sum of the IPv4 pseudo-header: addresses, protocol, payload length."""
    payload = word(heads, l3 + 2) - (heads[:, l3] & 0x0F).astype(np.uint64) * np.uint64(4)
    return fold(add_words(heads, l3 + 12, l3 + 20) + heads[:, l3 + 9] + (payload & np.uint64(0xFFFF)))


def pseudo_ipv6(heads: np.ndarray, l3: int) -> np.ndarray:
    """Folded sum of the IPv6 pseudo-header."""
    return fold(add_words(heads, l3 + 8, l3 + 40) + word(heads, l3 + 4) + heads[:, l3 + 6])


def prepare_hw(heads: np.ndarray, l3: int, l4: int, protocol: int) -> None:
    """Prepare frames for checksum offload: zero in the IPv4 header, the pseudo-header's sum in the transport header."""
    version = int(heads[0, l3]) >> 4
    if version == 4:
        put(heads, l3 + 10, np.zeros(len(heads), dtype=np.uint64))
    at = l4 + (16 if protocol == TCP else 6)
    put(heads, at, pseudo_ipv4(heads, l3) if version == 4 else pseudo_ipv6(heads, l3))


def complete_hw(heads: np.ndarray, tail: bytes, lengths: np.ndarray, l3: int, l4: int, protocol: int) -> None:
    """Do what the network card then does: complete the transport checksum and the IPv4 header checksum."""
    version = int(heads[0, l3]) >> 4
    if protocol in (TCP, UDP):
        if version == 4:
            end = l3 + word(heads, l3 + 2).astype(np.int64)
        else:
            end = l3 + 40 + word(heads, l3 + 4).astype(np.int64)
        sums = inverted(sum_between(heads, tail, l4, np.minimum(end, lengths)))
        if protocol == UDP:
            sums[sums == 0] = 0xFFFF  # RFC 768: zero means that there is no checksum
        put(heads, l4 + (16 if protocol == TCP else 6), sums)
    if version == 4:
        fix_ipv4(heads, l3)


def fix_icmpv6(heads: np.ndarray, tail: bytes, l3: int, l4: int) -> None:
    """Recompute the ICMPv6 checksum over the pseudo-header and the payload length that the IPv6 header states."""
    put(heads, l4 + 2, np.zeros(len(heads), dtype=np.uint64))
    end = l4 + word(heads, l3 + 4).astype(np.int64)
    whole = np.full(len(heads), heads.shape[1] + len(tail), dtype=np.int64)
    put(heads, l4 + 2, inverted(pseudo_ipv6(heads, l3) + sum_between(heads, tail, l4, np.minimum(end, whole))))


def sum_between(heads: np.ndarray, tail: bytes, start: int, ends: np.ndarray) -> np.ndarray:
    """Folded sum of the 16-bit words from `start` to the end of each frame."""
    width = heads.shape[1]
    sums = np.zeros(len(heads), dtype=np.uint64)
    for end in np.unique(ends):
        rows = ends == end
        part = add_words(heads[rows], start, min(int(end), width))
        rest = np.frombuffer(tail, dtype=np.uint8)[: max(int(end) - width, 0)]
        if len(rest):
            # if the head ends in the middle of a word, the tail's first byte is that word's low half
            odd = (width - start) & 1
            high, low = rest[odd::2], rest[1 - odd :: 2]
            part = part + (np.uint64(high.sum(dtype=np.uint64)) << np.uint64(8)) + low.sum(dtype=np.uint64)
        sums[rows] = fold(part)
    return sums
