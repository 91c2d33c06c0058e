# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the files in which the plugin counts: by window (plugin/marks.h) and by place (plugin/places.h)."""

import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from fwlab.model.errors import CannotMeasure
from fwlab_coresim.counts import CycleCounts, Modelled

MAGIC, MAGIC_PLACES = 0x314C444D42414C46, 0x314C50424D414C46
#: The marks of a trial's begin and end, as the DUT's agent names them.
BEGIN, END = 0x4D574601, 0x4D574602
#: What is counted, in the files' order.
NAMES, NAMES_OF_PLACES = tuple(Modelled.model_fields), tuple(CycleCounts.model_fields)
_HEAD = struct.Struct("<4Q")
_RECORD = struct.Struct(f"<{1 + len(NAMES)}Q")
_AFTER_HEAD = _HEAD.size + 8 * len(NAMES)
_PLACE = struct.Struct(f"<{1 + len(NAMES_OF_PLACES)}Q")

Counts = tuple[int, ...]


class CoreCounters:
    """The file, and that of the counts by place. QEMU resets both whenever the DUT is restored."""

    def __init__(self, path: Path, places: Path) -> None:
        self._path = path
        self._places = CorePlaces(places)
        self._seen = 0

    def begin(self) -> None:
        """Windows count from here on."""
        self._seen = self._head()[0]
        self._places.begin()

    def places(self) -> dict[int, dict[str, int]]:
        """What was counted in these windows by the address of each block of code (CycleCounts); 0: all programs."""
        return {address: found.model_dump() for address, found in self._places.since().items()}

    def windows(self) -> list[dict[str, int]]:
        """What was counted in each window since `begin` (Modelled). Raises CannotMeasure if marks are not in pairs."""
        marks, kept = self._head()
        new = marks - self._seen
        if not 0 <= new <= kept:
            raise CannotMeasure(f"the model counted {new} marks, and keeps {kept}", "run it again with fewer trials")
        data = self._path.read_bytes()
        records = [
            _RECORD.unpack_from(data, _AFTER_HEAD + number % kept * _RECORD.size) for number in range(self._seen, marks)
        ]
        return [window.model_dump() for window in windows_in(records)]

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


def windows_in(records: Sequence[Counts]) -> list[Modelled]:
    """The differences between each begin and its end. Raises CannotMeasure if something else is there."""
    kinds = [record[0] for record in records]
    if kinds != [BEGIN, END] * (len(kinds) // 2):
        raise CannotMeasure("the model's marks are not in pairs: another program marked, too", "run it again")
    return [
        Modelled(**{name: last - first for name, first, last in zip(NAMES, before[1:], after[1:], strict=True)})
        for number, (before, after) in enumerate(pairwise(records))
        if number % 2 == 0
    ]


class CorePlaces:
    """The file. Like that of the counters, QEMU resets it whenever the DUT is restored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before: dict[int, Counts] = {}

    def begin(self) -> None:
        """Windows count from here on."""
        self._before = self._read()

    def since(self) -> dict[int, CycleCounts]:
        """What was counted in the windows since `begin`, by address. At 0: all programs, and code without a place."""
        nothing = (0,) * len(NAMES_OF_PLACES)
        found = {}
        for address, counts in self._read().items():
            grown = [now - then for now, then in zip(counts, self._before.get(address, nothing), strict=True)]
            if any(grown):
                found[address] = CycleCounts(**dict(zip(NAMES_OF_PLACES, grown, strict=True)))
        return found

    def _read(self) -> dict[int, Counts]:
        try:
            data = self._path.read_bytes()
            magic, counters, kept, _ = _HEAD.unpack_from(data)
        except (OSError, struct.error) as error:
            raise CannotMeasure(f"the model's counts by place cannot be read: {error}", "fwlab doctor") from error
        if magic != MAGIC_PLACES or counters != len(NAMES_OF_PLACES):
            raise CannotMeasure(f"{self._path} has no places of this model", "run it again")
        places = _PLACE.iter_unpack(data[_HEAD.size : _HEAD.size + kept * _PLACE.size])
        return {address: tuple(counts) for address, *counts in places if any(counts)}
