# SPDX-License-Identifier: GPL-2.0-or-later
"""Systems whose throughput is known, for the search: trials take no time but on their own clock."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from fwlab.model.benchmarks import TrialResult


@dataclass
class Simulated:
    """A DUT that forwards `capacity` packets per second, and a generator that sends `ceiling` at most.

    noisy     in this share of the trials the DUT loses `burst` packets more
    overhead  seconds that a trial takes beside its duration
    """

    capacity: float
    ceiling: float = 1_000_000.0
    noisy: float = 0.0
    burst: int = 2000
    overhead: float = 2.0
    now: float = 0.0
    trials: list[TrialResult] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def clock(self) -> float:
        """Seconds, as time.monotonic()."""
        return self.now

    def measure(self, intended_duration: float, intended_load: float) -> TrialResult:
        """One trial. A generator that is too slow sends what it can in the time that it has."""
        sent = round(min(intended_load, self.ceiling) * intended_duration)
        arrived = min(sent, int(self.capacity * intended_duration))
        if self.chance.random() < self.noisy:
            arrived = max(0, arrived - self.burst)
        self.now += intended_duration + self.overhead
        self.trials.append(
            TrialResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                sent=sent,
                duration_s=intended_duration,
                taken=arrived,
                passable=sent,
                arrived=arrived,
            )
        )
        return self.trials[-1]
