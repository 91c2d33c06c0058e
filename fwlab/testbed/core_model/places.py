# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what the model counted by place (model/places.h): by the address at which a block of code begins."""

import struct
from pathlib import Path

from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Spent

MAGIC = 0x314C50424D414C46
NAMES = tuple(Spent.model_fields)
_HEAD = struct.Struct("<4Q")
_PLACE = struct.Struct(f"<{1 + len(NAMES)}Q")

Counts = tuple[int, ...]


class CorePlaces:
    """The file. Like that of the counters, QEMU starts it anew whenever the DUT is restored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before: dict[int, Counts] = {}

    def begin(self) -> None:
        """Windows count from here on."""
        self._before = self._read()

    def since(self) -> dict[int, Spent]:
        """What was counted in the windows since `begin`, by address. At 0: all programs, and code without a place."""
        nothing = (0,) * len(NAMES)
        found = {}
        for address, counts in self._read().items():
            grown = [now - then for now, then in zip(counts, self._before.get(address, nothing), strict=True)]
            if any(grown):
                found[address] = Spent(**dict(zip(NAMES, grown, strict=True)))
        return found

    def _read(self) -> dict[int, Counts]:
        try:
            data = self._path.read_bytes()
            magic, counters, kept, _ = _HEAD.unpack_from(data)
        except (OSError, struct.error) as error:
            raise CannotMeasure(f"the model's counts by place cannot be read: {error}", "fwlab doctor") from error
        if magic != MAGIC or counters != len(NAMES):
            raise CannotMeasure(f"{self._path} has no places of this model", "run it again")
        places = _PLACE.iter_unpack(data[_HEAD.size : _HEAD.size + kept * _PLACE.size])
        return {address: tuple(counts) for address, *counts in places if any(counts)}
