# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers that are drawn: lab.yml declares what they may be and where they belong, and a seed chooses.

The same seed gives the same numbers on every host and with every version of Python.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from fwlab.model.declared import Strict, Value, together
from fwlab.model.errors import BadInput

#: Seeds are below this number, which is short enough to copy by hand.
SEEDS = 1_000_000
#: A place in lab.yml: names with dots between them; an item of a list by its id, or by its index from 0. `*`
#: means every item that has what follows.
Place = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.([A-Za-z0-9_-]+|\*))*\.[A-Za-z0-9_-]+$")]


def _one_form_in_schema(schema: dict[str, Any]) -> None:
    together("from", "to")(schema)
    schema["oneOf"] = [{"required": ["from"]}, {"required": ["one_of"]}]


class Drawn(Strict):
    """A number that is drawn, and added to what stands at some places of lab.yml.

    of         whose it is:
               class    one for all, by the seed of a check or of a grading; only tunables, and `clients` of connections
               play     by the same seed, again for each play of the traffic; only tunables. For packets that must pass
                        during an attack. Not where what the DUT remembers of one play matters in the next
               student  by the secret of the course, where there is one; any place
    from, to   a whole number between these two, both included
    step       the distance between such numbers
    one_of     instead: one of these values, which replaces what stands there
    adds_to    the places. An integer grows by the number, an IPv4 address or prefix moves up by that many addresses.
               What moves together (traffic, classes, parameters, limits) is named here together
    """

    model_config = ConfigDict(json_schema_extra=_one_form_in_schema)
    of: Literal["class", "play", "student"] = "class"
    low: int | None = Field(default=None, alias="from")
    high: int | None = Field(default=None, alias="to")
    step: int = Field(default=1, ge=1)
    one_of: list[Value] | None = Field(default=None, min_length=2)
    adds_to: Annotated[list[Place], Field(min_length=1)]

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
        if self.low is not None and self.high is not None and self.high < self.low + self.step:
            raise ValueError(f"from {self.low} to {self.high} there is nothing to draw")
        return self

    @property
    def values(self) -> Sequence[Value]:
        """Everything that may be drawn."""
        return self.one_of or range(self.low or 0, (self.high or 0) + 1, self.step)

    def value(self, key: str, lab: str, name: str, whom: str = "") -> Value:
        """What is drawn with this key, a seed or a secret, for the number of this name in this lab.

        whom  the student or the play. Without the key, another's numbers cannot be derived
        """
        digest = hmac.new(key.encode(), f"{lab}\0{name}\0{whom}".encode(), hashlib.sha256).digest()
        return self.values[int.from_bytes(digest) % len(self.values)]

    def put(self, data: Any, value: Value) -> None:
        """Add the value at its places in a lab.yml. Raises ValueError naming the place that does not have one."""
        for place in self.adds_to:
            found = holders(data, place)
            if not found:
                raise ValueError(f"there is no {place}")
            for holder, key in found:
                holder[key] = value if self.one_of is not None else _sum(holder[key], value, place)


def holders(data: Any, place: str) -> list[tuple[Any, Any]]:
    """What holds the values at a place, each with its key or index; empty if there is no such place."""
    *path, last = place.split(".")
    inside = [data]
    for part in path:
        inside = [found for holder in inside for found in _inside(holder, part)]
    return [(holder, key) for holder in inside if (key := _key(holder, last)) is not None]


def _inside(holder: Any, part: str) -> list[Any]:
    if part == "*":
        return list(holder.values()) if isinstance(holder, dict) else holder if isinstance(holder, list) else []
    key = _key(holder, part)
    return [] if key is None else [holder[key]]


def _key(holder: Any, part: str) -> Any:
    """The key or index of this part; None if there is none."""
    if isinstance(holder, dict) and part in holder:
        return part
    if isinstance(holder, list):
        for index, item in enumerate(holder):
            if str(index) == part or (isinstance(item, dict) and item.get("id") == part):
                return index
    return None


def _sum(value: Any, number: Any, place: str) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value + number
    try:
        address, slash, length = str(value).partition("/")
        return f"{ipaddress.IPv4Address(address) + number}{slash}{length}"
    except (ValueError, OverflowError) as error:
        what = f"{place}: a number cannot be added to {str(value)[:40]}"
        raise ValueError(f"{what}; name an integer, an IPv4 address or a prefix") from error


def seed_or_new(given: int | None) -> int:
    """The given seed, or a new one that cannot be guessed from the last. Raises BadInput for a seed below 0."""
    if given is None:
        return secrets.randbelow(SEEDS - 1) + 1
    if given < 0:
        raise BadInput(f"the seed must be non-negative (got {given})", "give a whole number from 0 on")
    return given
