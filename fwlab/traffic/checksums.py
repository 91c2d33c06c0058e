# SPDX-License-Identifier: GPL-2.0-or-later
"""Internet checksums (RFC 1071) of many frames at once.

`frames` is a uint8 array of shape (n, width). Offsets count from the start of the frame.
"""

import numpy as np

TCP, UDP, ICMPV6 = 6, 17, 58
MAX_IPV4_HEADER = 60  # bytes


def fold(sums: np.ndarray) -> np.ndarray:
    """Fold sums of 16-bit words into 16 bits, in one's complement."""
    for _ in range(4):
        sums = (sums & np.uint64(0xFFFF)) + (sums >> np.uint64(16))
    return sums


def add_words(frames: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Sum of the big-endian 16-bit words of frames[:, start:stop]; an odd last byte is padded with zero."""
    block = frames[:, start:stop]
    sums = block[:, 0::2].sum(axis=1, dtype=np.uint64) << np.uint64(8)
    return np.asarray(sums + block[:, 1::2].sum(axis=1, dtype=np.uint64))


def put(frames: np.ndarray, offset: int, values: np.ndarray) -> None:
    """Write one 16-bit big-endian value into each frame."""
    frames[:, offset] = (values >> np.uint64(8)).astype(np.uint8)
    frames[:, offset + 1] = (values & np.uint64(0xFF)).astype(np.uint8)


def word(frames: np.ndarray, offset: int) -> np.ndarray:
    """The 16-bit big-endian value at `offset` of each frame: uint64 array of shape (n,)."""
    return np.asarray((frames[:, offset].astype(np.uint64) << np.uint64(8)) + frames[:, offset + 1])


def inverted(sums: np.ndarray) -> np.ndarray:
    """The checksum that belongs to unfolded sums."""
    return ~fold(sums) & np.uint64(0xFFFF)


def amend(frames: np.ndarray, at: int, before: np.ndarray, after: np.ndarray) -> None:
    """Update checksums for words whose sum was `before` and is `after` (RFC 1624): a wrong checksum remains wrong."""
    put(frames, at, inverted((~word(frames, at) & np.uint64(0xFFFF)) + (~fold(before) & np.uint64(0xFFFF)) + after))


def fix_ipv4(frames: np.ndarray, offset: int) -> None:
    """Recompute the IPv4 header checksum. Each frame states the length of its own header."""
    put(frames, offset + 10, np.zeros(len(frames), dtype=np.uint64))
    lengths = (frames[:, offset] & 0x0F).astype(np.int64) * 4
    for length in np.unique(lengths):
        rows, header = lengths == length, slice(offset, offset + MAX_IPV4_HEADER)
        part = frames[rows, header]
        put(part, 10, inverted(add_words(part, 0, length)))
        frames[rows, header] = part


def pseudo_ipv4(frames: np.ndarray, l3: int) -> np.ndarray:
    """Folded sum of the IPv4 pseudo-header: addresses, protocol, payload length."""
    payload = word(frames, l3 + 2) - (frames[:, l3] & 0x0F).astype(np.uint64) * np.uint64(4)
    return fold(add_words(frames, l3 + 12, l3 + 20) + frames[:, l3 + 9] + (payload & np.uint64(0xFFFF)))


def pseudo_ipv6(frames: np.ndarray, l3: int) -> np.ndarray:
    """Folded sum of the IPv6 pseudo-header."""
    return fold(add_words(frames, l3 + 8, l3 + 40) + word(frames, l3 + 4) + frames[:, l3 + 6])


def prepare_hw(frames: np.ndarray, l3: int, l4: int, protocol: int) -> None:
    """Prepare frames for checksum offload: zero in the IPv4 header, the pseudo-header's sum in the transport header."""
    version = int(frames[0, l3]) >> 4
    if version == 4:
        put(frames, l3 + 10, np.zeros(len(frames), dtype=np.uint64))
    at = l4 + (16 if protocol == TCP else 6)
    put(frames, at, pseudo_ipv4(frames, l3) if version == 4 else pseudo_ipv6(frames, l3))


def complete_hw(frames: np.ndarray, lengths: np.ndarray, l3: int, l4: int, protocol: int) -> None:
    """Do what the network card then does: complete the transport checksum and the IPv4 header checksum."""
    version = int(frames[0, l3]) >> 4
    if protocol in (TCP, UDP):
        if version == 4:
            end = l3 + word(frames, l3 + 2).astype(np.int64)
        else:
            end = l3 + 40 + word(frames, l3 + 4).astype(np.int64)
        sums = inverted(sum_between(frames, l4, np.minimum(end, lengths)))
        if protocol == UDP:
            sums[sums == 0] = 0xFFFF  # RFC 768: zero means that there is no checksum
        put(frames, l4 + (16 if protocol == TCP else 6), sums)
    if version == 4:
        fix_ipv4(frames, l3)


def fix_icmpv6(frames: np.ndarray, l3: int, l4: int) -> None:
    """Recompute the ICMPv6 checksum over the pseudo-header and the payload length that the IPv6 header states."""
    put(frames, l4 + 2, np.zeros(len(frames), dtype=np.uint64))
    end = l4 + word(frames, l3 + 4).astype(np.int64)
    put(frames, l4 + 2, inverted(pseudo_ipv6(frames, l3) + sum_between(frames, l4, np.minimum(end, frames.shape[1]))))


def sum_between(frames: np.ndarray, start: int, ends: np.ndarray) -> np.ndarray:
    """Folded sum of the 16-bit words from `start` to the end of each frame."""
    sums = np.zeros(len(frames), dtype=np.uint64)
    for end in np.unique(ends):
        rows = ends == end
        sums[rows] = fold(add_words(frames[rows, start:end], 0, end - start))
    return sums
