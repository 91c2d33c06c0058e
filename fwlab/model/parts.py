# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of a lab that is longer than one session of work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pydantic import Field

from fwlab.model.declared import Identifier, Strict


class Part(Strict):
    """A part of a lab, done in one go: its own question, cases and exercises.

    id         the name that `fwlab run LAB --part` takes
    title      the part's question
    minutes    time that a student needs for it; all parts together need the lab's `minutes`
    cases      its cases; the name of a sweep stands for all its cases. Two parts may have a case in common
    exercises  its exercises, each of which belongs to one part
    """

    id: Identifier
    title: str
    minutes: int = Field(ge=5, le=120)
    cases: list[Identifier] = []
    exercises: list[Identifier] = []

    def only(self, cases: Collection[str], exercises: Collection[str]) -> Part:
        """This part without the cases, sweeps and exercises that are not among these."""
        kept = {
            "cases": [name for name in self.cases if name in cases],
            "exercises": [name for name in self.exercises if name in exercises],
        }
        return self.model_copy(update=kept)


def refuse_wrong_parts(
    parts: Sequence[Part], minutes: int, cases: Collection[str], sweeps: Mapping[str, list[str]], own: Collection[str]
) -> None:
    """Raise ValueError unless the parts make up the lab: all its cases, exercises (`own`) and minutes."""
    if not parts:
        return
    if len({part.id for part in parts}) != len(parts):
        raise ValueError("parts: an id is used twice")
    covered = set()
    for part in parts:
        for name in part.cases:
            if name not in cases and name not in sweeps:
                raise ValueError(f"part {part.id}: unknown case {name}")
            covered |= {name, *sweeps.get(name, [])}
        for name in part.exercises:
            if name not in own:
                raise ValueError(f"part {part.id}: unknown exercise {name}")
    listed = [name for part in parts for name in part.exercises]
    for name in own:
        if listed.count(name) != 1:
            raise ValueError(f"exercise {name} belongs to {listed.count(name)} parts, not to one")
    left = [name for name in cases if name not in covered]
    if left:
        raise ValueError(f"case {left[0]} belongs to no part")
    total = sum(part.minutes for part in parts)
    if total != minutes:
        raise ValueError(f"the parts take {total} minutes, the lab says {minutes}")
