# SPDX-License-Identifier: GPL-2.0-or-later
"""Tunables that are drawn: lab.yml declares the family, and a seed chooses one traffic of it.

The same seed gives the same traffic on every host and with every version of Python.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from pydantic import Field, model_validator

from fwlab.model.declared import Strict, Value
from fwlab.model.errors import BadInput

#: Seeds are below this number, which is short enough to copy by hand.
SEEDS = 1_000_000


class Drawn(Strict):
    """What a tunable may be.

    from, to  a whole number between these two, both included
    one_of    or one of these values
    """

    low: int | None = Field(default=None, alias="from")
    high: int | None = Field(default=None, alias="to")
    one_of: list[Value] | None = Field(default=None, min_length=2)

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, data: Any) -> Any:
        if isinstance(data, dict) and any(isinstance(data.get(name), bool | float) for name in ("from", "to")):
            raise ValueError("from and to are whole numbers")
        return data

    @model_validator(mode="after")
    def _one_form(self) -> Drawn:
        pair = (self.low, self.high)
        if (self.one_of is None) == (pair == (None, None)) or (None in pair and self.one_of is None):
            raise ValueError("give either from and to, or one_of")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"from {self.low} to {self.high}: nothing can be drawn; from must be less than to")
        return self

    def value(self, seed: int, place: str) -> Value:
        """The value for this seed; each place (a traffic and its tunable) is drawn by itself."""
        number = int.from_bytes(hashlib.sha256(f"{seed} {place}".encode()).digest()[:8], "big")
        if self.one_of is not None:
            return self.one_of[number % len(self.one_of)]
        low, high = self.low or 0, self.high or 0
        return low + number % (high - low + 1)


def seed_or_new(given: int | None) -> int:
    """The given seed, or one that nobody can guess from the last one. Raises BadInput for a seed below 0."""
    if given is None:
        return secrets.randbelow(SEEDS - 1) + 1
    if given < 0:
        raise BadInput(f"a seed of {given} is below 0", "give a whole number from 0 on")
    return given
