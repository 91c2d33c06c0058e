# SPDX-License-Identifier: GPL-2.0-or-later
"""Trials at an offered load, and what the tests of RFC 2544 and RFC 2285 find with them."""

import math
from typing import Annotated

from pydantic import Field

from fwlab.model.declared import Frozen
from fwlab.model.trial import Delivery

#: A trial whose packets took longer than intended by more than this share had a smaller load than intended.
LATE = 0.01


class TrialResult(Frozen):
    """Counts of one trial at one intended load (RFC 2544, section 23).

    intended_duration  seconds
    intended_load      packets per second asked of the generator; None: flat out
    sent       packets that left the generator
    duration_s how long that took, in seconds of the generator's clock; of a load in the DUT's own time, of the
               reference CPU
    taken      packets that the DUT took from its receive ring
    passable   how many of those sent the ruleset lets through, by what it does at a light load
    arrived    packets that reached the sink
    busy_share share of the trial in which the DUT's CPU was busy; None where that was not looked at
    """

    intended_duration: float = Field(gt=0)
    intended_load: float | None = Field(default=None, gt=0)
    sent: int = Field(ge=0)
    duration_s: float = Field(ge=0)
    taken: int = Field(ge=0)
    passable: int = Field(ge=0)
    arrived: int = Field(ge=0)
    busy_share: float | None = Field(default=None, ge=0, le=1)

    @property
    def intended_count(self) -> int:
        """Packets that should have been sent; flat out those that were."""
        return self.sent if self.intended_load is None else round(self.intended_load * self.intended_duration)

    @property
    def offered(self) -> int:
        """Packets that were sent in time: what a generator sends later than intended was not part of the load."""
        if self.intended_load is None or self.duration_s <= self.intended_duration * (1 + LATE):
            return min(self.sent, self.intended_count)
        return min(self.intended_count, round(self.sent * self.intended_duration / self.duration_s))

    @property
    def offered_load(self) -> float:
        """Packets per second that were sent (RFC 2285, 3.5.2)."""
        return self.sent / self.duration_s if self.duration_s else 0.0

    @property
    def lost(self) -> int:
        """Packets lost, before the DUT or behind it. A packet that the ruleset drops is not lost.

        Where some classes are dropped, the larger share counts: that of all packets that the DUT did not take, or that
        of the passable ones that did not arrive.
        """
        before = max(0, self.sent - self.taken)
        missing = max(0, self.passable - self.arrived) / self.passable if self.passable else 0.0
        return min(self.offered, max(before, math.ceil(missing * self.offered - 1e-9)))

    @property
    def loss_ratio(self) -> float:
        """Share of the intended packets that were lost or not sent in time, 0 to 1."""
        wanted = self.intended_count
        return (self.lost + wanted - self.offered) / wanted if wanted else 0.0

    @property
    def loss_of_sent(self) -> float:
        """Share of the sent packets that were lost, whatever was intended."""
        return self.lost / self.offered if self.offered else 0.0


class GoalBounds(Frozen):
    """What a search found for one goal, in packets per second.

    loss_ratio   largest share of lost packets that a trial may have
    lower, upper the highest load that satisfies the goal and the lowest above it that does not; None: not found
    throughput   what was forwarded at the lower bound (MLRsearch: conditional throughput)
    """

    loss_ratio: float = Field(ge=0, lt=1)
    lower: float | None = None
    upper: float | None = None
    throughput: float | None = None


class RateSearch(Frozen):
    """One search for throughput, trial by trial.

    lowest, highest  the loads between which it searched (pps)
    goals    one for each loss ratio
    trials   in the order in which they were made
    spent_s  seconds that it took
    ended    false: its time was up before the bounds were close enough
    """

    lowest: float = Field(gt=0)
    highest: float = Field(gt=0)
    goals: list[GoalBounds]
    trials: list[TrialResult]
    spent_s: float = Field(ge=0)
    ended: bool = True

    def goal(self, loss_ratio: float) -> GoalBounds | None:
        """The bounds of the goal with this loss ratio."""
        return next((goal for goal in self.goals if goal.loss_ratio == loss_ratio), None)

    def generator_limited(self, goal: GoalBounds) -> bool:
        """Whether the generator, not the DUT, failed the goal: what it sent at the upper bound was not lost."""
        if goal.upper is None:
            return False
        missed = [trial for trial in self.trials if _same(trial.intended_load, goal.upper)]
        failed = [trial for trial in missed if trial.loss_ratio > goal.loss_ratio]
        return bool(failed) and all(trial.loss_of_sent <= goal.loss_ratio for trial in failed)


class LatencyTrial(Frozen):
    """Times at one constant load (compare RFC 2544, section 26.2): round trips of probes during it, or, for a load in
    the DUT's own time, the frames' way from the DUT's first NIC to its last, in seconds of the reference CPU.

    of_pdr        the load as a share of the throughput with 0.5 % loss (PDR); 0: only the probes were sent
    offered_load  packets per second that were sent in addition to the probes
    probes        how many were sent
    round_trips_s  of each answered probe: seconds from the generator through the DUT to the sink and back
    """

    of_pdr: float = Field(ge=0, le=1)
    offered_load: float = Field(ge=0)
    probes: int = Field(gt=0)
    round_trips_s: list[Annotated[float, Field(ge=0)]]

    @property
    def unanswered(self) -> int:
        """Probes that were lost on their way or came back too late."""
        return max(0, self.probes - len(self.round_trips_s))

    def percentile(self, percentile: float) -> float | None:
        """The time that this percentage of the answers did not exceed (s), the nearest rank; None without an answer."""
        ordered = sorted(self.round_trips_s)
        return ordered[max(0, math.ceil(percentile / 100 * len(ordered)) - 1)] if ordered else None


class Benchmarks(Frozen):
    """Everything that was measured at offered loads.

    light      what the ruleset does with a few packets at a light load, by class
    flat_out   trials at the maximum offered load
    searches   for throughput
    curve      trials at falling loads (RFC 2544, section 26.3)
    latency    round trips without load and at shares of PDR
    """

    light: Delivery | None = None
    flat_out: list[TrialResult] = []
    searches: list[RateSearch] = []
    curve: list[TrialResult] = []
    latency: list[LatencyTrial] = []


def _same(load: float | None, bound: float) -> bool:
    return load is not None and math.isclose(load, bound, rel_tol=1e-9)
