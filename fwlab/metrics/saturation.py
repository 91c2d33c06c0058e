# SPDX-License-Identifier: GPL-2.0-or-later
"""The ladder of slowing: all trials at one step; where the DUT was idle, all of them anew one step further.

On each further step the DUT gets less of real time, which its own clock cannot see. On the host's clock the ladder
has one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from fwlab.model.results import Measured


class Timed(Protocol):
    """A trial that knows for which share of its time the DUT was busy."""

    @property
    def busy_share(self) -> float: ...


T = TypeVar("T", bound=Timed)


#: So many names say who disturbed.
NAMED = 3


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """The trials of one step: those under overload; those in which the DUT was idle at times; disturbed ones.

    ran  nanoseconds that each program and each [kernel thread] ran around the disturbed trials
    """

    kept: list[T]
    idle: list[T]
    disturbed: list[T]
    ran: dict[str, int] = field(default_factory=dict)

    def shares(self) -> dict[str, float]:
        """Of all that ran beside the packets, the share of each; the largest few."""
        total = sum(self.ran.values())
        largest = sorted(self.ran, key=self.ran.get, reverse=True)[:NAMED]
        return {name: round(self.ran[name] / total, 3) for name in largest} if total else {}

    @property
    def crowded(self) -> bool:
        """Whether programs kept the DUT from its packets: a slower DUT would not help."""
        programs = sum(took for name, took in self.ran.items() if not name.startswith("["))
        return len(self.disturbed) > len(self.kept) + len(self.idle) and programs * 2 > sum(self.ran.values())


A = TypeVar("A", bound=Attempt[Any])


class Ladder:
    """`steps` steps. It remembers which one the last case needed: the next case starts from there."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._step = 0

    def climb(self, attempt: Callable[[int], A], wanted: int, found: Measured) -> A:
        """`attempt(step)` from step to step, until it has kept `wanted` trials; returns the last one.

        Notes in `found` the step and what was left out there, and as a problem if even the last step did not do.
        """
        first = self._step
        for step in range(first, self._steps):
            tried = attempt(step)
            found.slowed, found.idle_trials, found.disturbed_trials = step, len(tried.idle), len(tried.disturbed)
            found.disturbed_by = tried.shares()
            if len(tried.kept) == wanted:
                # Gently down again: a case with more rules needs less of it, and runs faster with less.
                self._step = max(0, step - (not tried.idle and step == first))
                return tried
            if tried.crowded:
                break
        else:
            self._step = self._steps - 1
        found.problems.append(unsaturated(tried, wanted))
        return tried


def unsaturated(tried: Attempt[Any], wanted: int) -> str:
    """Why the trials of this attempt are too few, and what to do where that is known."""
    ran = " and ".join(f"{name} ({share:.0%})" for name, share in tried.shares().items())
    if tried.crowded:
        return (
            f"programs ran on the DUT beside the packets: {ran}; is somebody logged in? "
            f"{len(tried.kept)} of {wanted} trials were undisturbed. End them, and measure again"
        )
    busy = min((trial.busy_share for trial in tried.idle), default=0.0)
    return (
        f"the DUT was not saturated: {len(tried.kept)} of {wanted} trials were an overload and nothing else; "
        f"in {len(tried.idle)} it was idle at times (busy {busy:.1%}), in {len(tried.disturbed)} something else ran"
        + (f": {ran}" if ran else "")
    )
