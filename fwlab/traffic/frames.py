# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames in sending order. Frames made from one packet share their common bytes, so large tables need little memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fwlab.traffic.field_engine import Frameset

_AT_ONCE = 1 << 21  # bytes packed in one step, which limits the memory needed


@dataclass
class Frames:
    """n frames.

    times_ns     time of each frame in ns: int64 array of shape (n,)
    part, row    each frame's frameset and its row in there: int64 arrays of shape (n,)
    parts        the framesets
    part_stream  index in the profile of each frameset's stream: int64 array of shape (parts,)
    labels       each stream's name for messages
    names        each stream's name in the profile, if it has one
    """

    times_ns: np.ndarray
    part: np.ndarray
    row: np.ndarray
    parts: list[Frameset]
    part_stream: np.ndarray
    labels: list[str]
    names: list[str | int | None]

    def __len__(self) -> int:
        return len(self.times_ns)

    def __getitem__(self, number: int) -> bytes:
        return self.parts[int(self.part[number])].frame(int(self.row[number]))

    def __iter__(self) -> Iterator[bytes]:
        return (self[number] for number in range(len(self)))

    @property
    def stream(self) -> np.ndarray:
        """Index of each frame's stream in the profile: int64 array of shape (n,)."""
        return np.asarray(self.part_stream[self.part])

    @cached_property
    def lengths(self) -> np.ndarray:
        """Bytes of each frame without frame check sequence: int64 array of shape (n,)."""
        lengths = np.zeros(len(self), dtype=np.int64)
        for number, rows in self._by_part():
            lengths[rows] = self.parts[number].lengths[self.row[rows]]
        return lengths

    def matrix(self, width: int) -> np.ndarray:
        """The first `width` bytes of each frame, padded with zeros: uint8 array of shape (n, width)."""
        table = np.zeros((len(self), width), dtype=np.uint8)
        for number, rows in self._by_part():
            made = self.parts[number]
            head = made.heads[self.row[rows], :width]
            block = np.zeros((len(rows), width), dtype=np.uint8)
            block[:, : head.shape[1]] = head
            rest = np.frombuffer(made.tail, dtype=np.uint8)[: max(width - head.shape[1], 0)]
            block[:, head.shape[1] : head.shape[1] + len(rest)] = rest
            lengths = made.lengths[self.row[rows]]
            if (lengths < width).any():
                block[np.arange(width) >= lengths[:, np.newaxis]] = 0
            table[rows] = block
        return table

    def packed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All frames concatenated: (data, offsets, lengths). Frame i is data[offsets[i] : offsets[i] + lengths[i]]."""
        lengths = self.lengths
        offsets = np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(self) else lengths
        data = np.empty(int(lengths.sum()), dtype=np.uint8)
        for number, rows in self._by_part():
            self._pack(data, self.parts[number], rows, offsets, lengths)
        return data, offsets, lengths

    def _pack(
        self, data: np.ndarray, made: Frameset, rows: np.ndarray, offsets: np.ndarray, lengths: np.ndarray
    ) -> None:
        size = int(lengths[rows[0]])
        if not (lengths[rows] == size).all():
            for number in rows:
                at = int(offsets[number])
                data[at : at + int(lengths[number])] = np.frombuffer(self[number], dtype=np.uint8)
            return
        width = min(made.heads.shape[1], size)
        tail = np.frombuffer(made.tail, dtype=np.uint8)[: size - width]
        for start in range(0, len(rows), max(_AT_ONCE // size, 1)):
            some = rows[start : start + max(_AT_ONCE // size, 1)]
            places = offsets[some][:, np.newaxis] + np.arange(size)
            data[places[:, :width]] = made.heads[self.row[some], :width]
            data[places[:, width:]] = tail

    def _by_part(self) -> Iterator[tuple[int, np.ndarray]]:
        for number in range(len(self.parts)):
            rows = np.flatnonzero(self.part == number)
            if len(rows):
                yield number, rows


Sent = tuple[np.ndarray, np.ndarray, np.ndarray]  # times_ns, part, row


def merge(per_core: Sequence[Sent]) -> Sent:
    """Merge the cores' frames, ordered by microsecond; within one, the lower core comes first."""
    times, part, row = (np.concatenate(column) for column in zip(*per_core, strict=True))
    if len(per_core) > 1:
        order = np.argsort(times // 1000, kind="stable")
        times, part, row = times[order], part[order], row[order]
    return times, part, row
