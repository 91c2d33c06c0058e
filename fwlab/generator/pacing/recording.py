# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recorder wrote: frames with the time of the DUT's clock, and which frame of the traffic each of them is.

A router changes a frame's MAC addresses, its TTL and the checksum of its IP header. Without these a frame that left the
DUT is the frame that reached it, byte for byte, and so has its traffic class. What no frame of the traffic equals was
changed on the way or made by the DUT itself.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

PCAP_HEADER = 24
RECORD = struct.Struct("<IIII")
_MACS = slice(0, 12)
_ETHERTYPE = 12
_TTL, _CHECKSUM, _HOP_LIMIT = 22, slice(24, 26), 21
_IPV4, _IPV6 = 0x0800, 0x86DD


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


def read_recording(path: Path, kept: int) -> Recording:
    """The frames in a file of QEMU's filter-dump that keeps `kept` bytes of each, without an incomplete last one."""
    data = path.read_bytes() if path.exists() else b""
    at, times, places, lengths = PCAP_HEADER, [], [], []
    while at + RECORD.size <= len(data):
        seconds, us, length, _ = RECORD.unpack_from(data, at)
        at += RECORD.size
        if at + length > len(data):
            break
        times.append(seconds * 1_000_000 + us)
        places.append(at)
        lengths.append(length)
        at += length
    heads = np.zeros((len(times), kept), dtype=np.uint8)
    flat, begins, sizes = np.frombuffer(data, dtype=np.uint8), np.array(places, int), np.array(lengths, int)
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        heads[rows, :size] = flat[begins[rows][:, np.newaxis] + np.arange(size)]
    return Recording(np.array(times, dtype=np.int64), heads)


def frame_keys(heads: np.ndarray) -> np.ndarray:
    """A number for each frame, from its first bytes (shape (n, kept)) without those that a router changes."""
    fixed = heads.copy()
    kind = heads[:, _ETHERTYPE].astype(np.int64) << 8 | heads[:, _ETHERTYPE + 1]
    fixed[:, _MACS] = 0
    four = np.flatnonzero(kind == _IPV4)
    fixed[four, _TTL] = 0
    fixed[four, _CHECKSUM] = 0
    fixed[np.flatnonzero(kind == _IPV6), _HOP_LIMIT] = 0
    words = np.ascontiguousarray(fixed).view(np.uint64)
    # Multiply-shift hashing: a chance of 2**-64 for each pair of different frames, for odd random factors.
    factors = np.random.default_rng(1).integers(1 << 63, size=words.shape[1], dtype=np.uint64) << np.uint64(1)
    mixed = (words ^ (words >> np.uint64(29))) * (factors | np.uint64(1))
    return np.asarray(np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(32)), axis=1))


#: Numbers in place of a class's: a frame of the traffic that has none, and a frame that is not of the traffic.
NO_CLASS, FOREIGN = -1, -2


class KnownFrames:
    """The frames of a traffic, with the class of each, to be recognised."""

    def __init__(self, heads: np.ndarray, classes: np.ndarray) -> None:
        """heads: as in Recording; classes: the number of each frame's class, int64 array of shape (n,).

        Raises ValueError if frames of different classes are the same as far as they are kept.
        """
        self._keys, first, places = np.unique(frame_keys(heads), return_index=True, return_inverse=True)
        self._classes = classes[first]
        if (self._classes[places] != classes).any():
            raise ValueError(f"frames of different classes have the same first {heads.shape[1]} bytes")

    def classes_of(self, recording: Recording) -> np.ndarray:
        """The number of each recorded frame's class, NO_CLASS or FOREIGN: int64 array of shape (n,)."""
        places = np.minimum(np.searchsorted(self._keys, recording.keys), len(self._keys) - 1)
        return np.where(self._keys[places] == recording.keys, self._classes[places], FOREIGN)


def counted(classes: np.ndarray, names: list[str], other: str) -> Mapping[str, int]:
    """How many frames there are of each class, by its name; those of no class are `other`."""
    counts = np.bincount(classes[classes >= 0], minlength=len(names))
    return {**{name: int(counts[place]) for place, name in enumerate(names)}, other: int((classes < 0).sum())}
