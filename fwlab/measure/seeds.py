# SPDX-License-Identifier: GPL-2.0-or-later
"""The seed of a session: whoever checks gets another traffic each time, and a class gets one for all."""

from collections.abc import Iterable

from fwlab.model.drawn import new_seed
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab

#: The seed of all traffic that is not drawn.
USUAL = 1


def draws(lab: Lab, exercises: Iterable[Exercise] | None = None) -> bool:
    """Whether the traffic of any of these exercises (all by default) is drawn."""
    chosen = lab.exercises if exercises is None else exercises
    return any(lab.traffic[exercise.traffic].drawn for exercise in chosen)


def seed_for(lab: Lab, given: int | None) -> int:
    """The given seed, or else a new one where the lab draws traffic. Raises BadInput for a seed below 0."""
    if given is None:
        return new_seed() if draws(lab) else USUAL
    if given < 0:
        raise BadInput(f"a seed of {given} is below 0", "give a whole number from 0 on")
    return given
