# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the counters that the model keeps in a file (model/marks.h)."""

import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Modelled, Spent
from fwlab.testbed.core_model.places import CorePlaces

MAGIC = 0x314C444D42414C46
BEGIN, END = 0x4D574601, 0x4D574602
NAMES = tuple(Modelled.model_fields)
_HEAD = struct.Struct("<4Q")
_RECORD = struct.Struct(f"<{1 + len(NAMES)}Q")
_AFTER_HEAD = _HEAD.size + 8 * len(NAMES)

Record = tuple[int, ...]


class CoreCounters:
    """The file, and that of the counts by place. QEMU starts both anew whenever the DUT is restored."""

    def __init__(self, path: Path, places: Path) -> None:
        self._path = path
        self._places = CorePlaces(places)
        self._seen = 0

    def begin(self) -> None:
        """Windows count from here on."""
        self._seen = self._head()[0]
        self._places.begin()

    def places(self) -> dict[int, Spent]:
        """What was counted in these windows by the address of each block of code; 0 stands for programs."""
        return self._places.since()

    def windows(self) -> list[Modelled]:
        """What was counted in each window since `begin`. Raises CannotMeasure if their marks are not in pairs."""
        marks, kept = self._head()
        new = marks - self._seen
        if not 0 <= new <= kept:
            raise CannotMeasure(f"the model counted {new} marks, and keeps {kept}", "run it again with fewer trials")
        data = self._path.read_bytes()
        records = [
            _RECORD.unpack_from(data, _AFTER_HEAD + number % kept * _RECORD.size) for number in range(self._seen, marks)
        ]
        return windows_in(records)

    def _head(self) -> tuple[int, int]:
        """How many marks there have been, and how many are kept."""
        try:
            with self._path.open("rb") as file:
                magic, counters, kept, marks = _HEAD.unpack(file.read(_HEAD.size))
        except (OSError, struct.error) as error:
            raise CannotMeasure(f"the model's counters cannot be read: {error}", "fwlab doctor") from error
        if magic != MAGIC or counters != len(NAMES):
            raise CannotMeasure(f"{self._path} has no counters of this model", "run it again")
        return marks, kept


def windows_in(records: Sequence[Record]) -> list[Modelled]:
    """The differences between each begin and its end. Raises CannotMeasure if something else is there."""
    kinds = [record[0] for record in records]
    if kinds != [BEGIN, END] * (len(kinds) // 2):
        raise CannotMeasure("the model's marks are not in pairs: another program marked, too", "run it again")
    return [
        Modelled(**{name: last - first for name, first, last in zip(NAMES, before[1:], after[1:], strict=True)})
        for number, (before, after) in enumerate(pairwise(records))
        if number % 2 == 0
    ]
