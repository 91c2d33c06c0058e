# SPDX-License-Identifier: GPL-2.0-or-later
"""Why the DUT is sampled at many rates at once: a model of a deterministic DUT and its sampler.

The DUT processes packets in batches of equal length, each with three consecutive parts. A sample interrupts the work,
longer in parts with deeper stacks. A timer that expires meanwhile fires right after it. The numbers are invented, but
plausible for a DUT on the virtual testbed. The errors are those of the three parts' shares.
"""

import heapq
import itertools
import math

import pytest

from fwlab.metrics.call_stacks import RATES, SECONDS

#: The parts of a batch, such as receiving, routing and sending: where each ends, and what a sample costs there (us).
ENDS, COSTS = (0.30, 0.65, 1.0), (10.0, 15.0, 22.0)
SHARES = (0.30, 0.35, 0.35)
#: Lengths of a batch (us), 2 % apart: from one cheap packet to eight expensive ones.
BATCHES = [20 * 1.02**step for step in range(150)]


def ticks(rates: tuple[int, ...]) -> list[float]:
    """Times at which the timers expire, in us."""
    timers = [[second * 1e6 / rate for second in range(1, int(SECONDS * rate) + 1)] for rate in rates]
    return list(heapq.merge(*timers))


def sampled(times: list[float], batch: float) -> list[float]:
    """The shares of the three parts, as the sampler sees them."""
    work = now = 0.0
    seen = [0, 0, 0]
    for time in times:
        if time > now:
            work += time - now
            now = time
        place = math.fmod(work, batch) / batch
        part = 0 if place < ENDS[0] else 1 if place < ENDS[1] else 2
        seen[part] += 1
        now += COSTS[part]
    return [count / len(times) for count in seen]


def errors(rates: tuple[int, ...]) -> list[float]:
    """For each length of a batch, the largest error of the three shares."""
    times = ticks(rates)
    return [max(abs(s - t) for s, t in zip(sampled(times, b), SHARES, strict=True)) for b in BATCHES]


def test_many_rates_stay_close_to_the_true_shares() -> None:
    together = errors(RATES)
    assert max(together) < 0.06
    assert math.hypot(*together) < math.hypot(*errors((4999,))) / 5


def test_rates_drift_past_each_other_within_a_window() -> None:
    assert all(math.gcd(one, other) == 1 for one, other in itertools.combinations(RATES, 2))
    apart = [after - before for before, after in itertools.pairwise(RATES)]
    assert min(apart) * SECONDS > 3, "so often each pair meets and parts again"
    assert len(ticks(RATES)) == pytest.approx(3000, rel=0.01)
