# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames in the order in which they are sent. Frames made from one packet share what does not differ, so a
table of many long frames stays small until it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fwlab.traffic.field_engine import Frameset

_AT_ONCE = 1 << 21  # bytes that are laid out in one step, which bounds the memory that it takes


@dataclass
class Frames:
    """n frames. `times_ns`, `part`, `row`: int64 arrays of shape (n,); a frame is row `row` of set `part`.

    `part_stream[part]` is the index of the stream in the profile, `labels[stream]` its name for messages, and
    `names[stream]` the name that the profile gives it, if any.
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
        return self.parts[self.part[number]].frame(self.row[number])

    def __iter__(self) -> Iterator[bytes]:
        return (self[number] for number in range(len(self)))

    @property
    def stream(self) -> np.ndarray:
        """Index of each frame's stream in the profile: int64 array of shape (n,)."""
        return self.part_stream[self.part]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Bytes of each frame without its checksum: int64 array of shape (n,)."""
        lengths = np.zeros(len(self), dtype=np.int64)
        for number, rows in self._by_part():
            lengths[rows] = self.parts[number].lengths[self.row[rows]]
        return lengths

    def matrix(self, width: int) -> np.ndarray:
        """The first `width` bytes of each frame, zeros behind its end: uint8 array of shape (n, width)."""
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
        """All frames end to end: (data, offsets, lengths); frame i is data[offsets[i]:offsets[i] +
        lengths[i]]."""
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
    """Cores' frames as one sequence, by microsecond; within one, the lower core comes first."""
    times, part, row = (np.concatenate(column) for column in zip(*per_core, strict=True))
    if len(per_core) > 1:
        order = np.argsort(times // 1000, kind="stable")
        times, part, row = times[order], part[order], row[order]
    return times, part, row
