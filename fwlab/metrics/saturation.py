# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for a throttle level at which the DUT is saturated: never idle in a trial.

All trials are made at one level. If the DUT was idle in any, all of them are made again at the next. At each further
level the DUT gets less real time, which its own clock cannot see. On the host's clock there is one level.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from fwlab.model.metric import TimedTrial
from fwlab.model.results import Measured, Overload

T = TypeVar("T", bound=TimedTrial)

#: A DUT that is busy for less than this share of every trial is not saturated at the last level either, where it gets a
#: twentieth of the real time at most.
HOPELESS = 0.02
#: A message names this many of the programs that took CPU time.
NAMED = 3


@dataclass(frozen=True)
class Attempt(Generic[T]):
    """The trials made at one level.

    valid        the DUT was saturated, by packets alone
    unsaturated  the DUT was idle at times
    perturbed    non-packet work took CPU time
    ran          nanoseconds that each program and each [kernel thread] ran around the perturbed trials
    """

    valid: list[T]
    unsaturated: list[T]
    perturbed: list[T]
    ran: dict[str, int] = field(default_factory=dict)

    def shares(self) -> dict[str, float]:
        """Share of each of the largest few in the CPU time that packets did not take."""
        total = sum(self.ran.values())
        largest = sorted(self.ran, key=lambda name: self.ran[name], reverse=True)[:NAMED]
        return {name: round(self.ran[name] / total, 3) for name in largest} if total else {}

    @property
    def crowded(self) -> bool:
        """Whether programs kept the DUT from its packets: throttling it further would not help."""
        programs = sum(took for name, took in self.ran.items() if not name.startswith("["))
        return len(self.perturbed) > len(self.valid) + len(self.unsaturated) and programs * 2 > sum(self.ran.values())

    @property
    def hopeless(self) -> bool:
        """Whether the DUT was idle almost all the time: what it is offered is limited, and not by its speed."""
        idle = [trial.busy_share < HOPELESS for trial in self.unsaturated]
        return bool(idle) and all(idle) and not self.valid and not self.perturbed


A = TypeVar("A", bound=Attempt[Any])


@dataclass(frozen=True)
class Search(Generic[A]):
    """The last attempt, its level, and why its trials are too few, if they are."""

    attempt: A
    level: int
    problems: Sequence[str] = ()

    def added_to(self, measured: Measured, *, throttled: bool = True) -> Measured:
        """The result with the level of the trials, which of them were left out, and the problems.

        Where the DUT cannot be throttled, nothing helps if the generator is too slow for it. That says nothing against
        figures that need no overload, such as a share that was delivered.
        """
        return measured.hindered(self.problems if throttled else []).plus(
            Overload(
                throttle_level=self.level,
                idle_trials=len(self.attempt.unsaturated),
                perturbed_trials=len(self.attempt.perturbed),
                perturbed_by=self.attempt.shares(),
                unsaturated=[] if throttled else list(self.problems),
            )
        )


class Saturation:
    """Throttle levels from 0. It remembers which one the last case needed: the next case starts just below it."""

    def __init__(self, levels: int) -> None:
        self._levels = levels
        self._level = 0

    def search(self, attempt_at: Callable[[int], A], wanted: int) -> Search[A]:
        """Call `attempt_at(level)` level by level until an attempt has `wanted` valid trials."""
        first = self._level
        for level in range(first, self._levels):
            attempt = attempt_at(level)
            if len(attempt.valid) == wanted:
                # An attempt that finds the DUT idle ends within a second, and one at a level that is not needed takes
                # several seconds more. So the next case tries one level lower, unless that is known to be too low.
                self._level = max(0, level - (not attempt.unsaturated))
                return Search(attempt, level)
            if attempt.crowded or attempt.hopeless:
                break
        else:
            self._level = self._levels - 1
        return Search(attempt, level, [unsaturated(attempt, wanted)])


def unsaturated(attempt: Attempt[Any], wanted: int) -> str:
    """Why this attempt has too few valid trials, and what to do about it if that is known."""
    ran = " and ".join(f"{name} ({share:.0%})" for name, share in attempt.shares().items())
    valid = f"{len(attempt.valid)} of {wanted} valid trials"
    if attempt.crowded:
        return f"other programs ran on the DUT: {ran}; {valid}. Log out of the DUT, stop them, and measure again"
    other = f"{len(attempt.perturbed)} with other CPU load" + (f": {ran}" if ran else "")
    busy = min((trial.busy_share for trial in attempt.unsaturated), default=None)
    lowest = f" (idlest trial: {busy:.1%} busy)" if busy is not None else ""
    return f"DUT not saturated: {valid}, {len(attempt.unsaturated)} idle{lowest}, {other}"
