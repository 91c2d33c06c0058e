# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames in sending order."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fwlab.traffic.headers import Headers


@dataclass
class Frameset:
    """Frames made from one packet, without frame check sequence.

    data     the bytes of each frame: uint8 array of shape (rows, width)
    lengths  how many of them each frame has: int64 array of shape (rows,)
    """

    data: np.ndarray
    lengths: np.ndarray


@dataclass
class Frames:
    """n frames.

    times_ns     time of each frame in ns: int64 array of shape (n,)
    part, row    each frame's frameset and its row in there: int64 arrays of shape (n,)
    parts        the framesets
    part_stream  index in the profile of each frameset's stream: int64 array of shape (parts,)
    labels       each stream's name for messages
    names        each stream's name in the profile, if it has one
    headers      what `read_headers` found
    """

    times_ns: np.ndarray
    part: np.ndarray
    row: np.ndarray
    parts: list[Frameset]
    part_stream: np.ndarray
    labels: list[str]
    names: list[str | int | None]
    headers: "Headers | None" = field(default=None, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.times_ns)

    def __getitem__(self, number: int) -> bytes:
        made, row = self.parts[int(self.part[number])], int(self.row[number])
        frame: bytes = made.data[row, : int(made.lengths[row])].tobytes()
        return frame

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
            made, lengths = self.parts[number].data[self.row[rows], :width], self.lengths[rows]
            if (lengths < made.shape[1]).any():
                made[np.arange(made.shape[1]) >= lengths[:, np.newaxis]] = 0
            table[rows, : made.shape[1]] = made
        return table

    def pieces(self, numbers: np.ndarray, begins: np.ndarray, size: int) -> np.ndarray:
        """`size` bytes of each of these frames, within it from this place on: uint8 array of shape (numbers, size)."""
        found = np.zeros((len(numbers), size), dtype=np.uint8)
        for number in np.unique(self.part[numbers]):
            mine, data = np.flatnonzero(self.part[numbers] == number), self.parts[number].data
            found[mine] = cut(data.reshape(-1), self.row[numbers[mine]] * data.shape[1] + begins[mine], size)
        return found

    def _by_part(self) -> Iterator[tuple[int, np.ndarray]]:
        for number in range(len(self.parts)):
            rows = np.flatnonzero(self.part == number)
            if len(rows):
                yield number, rows


def cut(data: np.ndarray, begins: np.ndarray, size: int) -> np.ndarray:
    """The `size` bytes from each of these places on: uint8 array of shape (n, size)."""
    if not (len(begins) and size):
        return np.zeros((len(begins), size), dtype=np.uint8)
    # A view, so that whole rows are copied: an index for each byte takes eight times as much memory as the bytes.
    return np.asarray(np.lib.stride_tricks.sliding_window_view(data, size)[begins])
