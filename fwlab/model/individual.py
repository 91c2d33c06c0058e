# SPDX-License-Identifier: GPL-2.0-or-later
"""Individual tasks: what of a lab differs from student to student."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fwlab.model.declared import Strict

#: A place in lab.yml: names with dots between them; an item of a list by its id, or by its index from 0. `*`
#: stands for every item that has what follows.
Place = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.([A-Za-z0-9_-]+|\*))*\.[A-Za-z0-9_-]+$")]


class IndividualNumber(Strict):
    """A number that is drawn for each student, and added to what stands at some places of lab.yml.

    title    what it changes, in words for the student
    from, to the smallest and the largest number
    step     the drawn numbers are so far apart
    adds_to  the places. An integer grows by the number, an IPv4 address or prefix begins so many addresses later.
             Traffic, classes, parameters and limits move together if all of them are named here
    """

    title: str
    first: int = Field(alias="from")
    last: int = Field(alias="to")
    step: int = Field(default=1, ge=1)
    adds_to: Annotated[list[Place], Field(min_length=1)]

    @model_validator(mode="after")
    def _something_to_draw(self) -> IndividualNumber:
        if self.last < self.first + self.step:
            raise ValueError(f"from {self.first} to {self.last} there is nothing to draw")
        return self

    @property
    def numbers(self) -> range:
        """Every number that may be drawn."""
        return range(self.first, self.last + 1, self.step)
