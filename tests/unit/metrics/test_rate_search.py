# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for throughput on simulated systems: its answer is the known one, and it ends within its budget."""

from typing import Any

import pytest

from fwlab.metrics.offered_load import BUDGET_S, BY_HOST_CLOCK, NDR, PDR, Bounds
from fwlab.model.benchmarks import GoalBounds, RateSearch, TrialResult
from fwlab.model.errors import CannotMeasure
from tests.fakes.simulated import Simulated

LINE_RATE = 1_000_000.0
LOWEST = 200.0


def search(*words: Any, **options: Any) -> RateSearch:
    from fwlab.metrics.rate import rate_search  # imports MLRsearch, which takes a second

    return rate_search.search(*words, **{"terms": BY_HOST_CLOCK, "report": lambda *_: None, **options})


def searched(system: Simulated, budget_s: float = BUDGET_S, highest: float = LINE_RATE) -> RateSearch:
    done = search(system.measure, lowest=LOWEST, highest=highest, budget_s=budget_s, clock=system.clock)
    assert done.trials == system.trials
    assert done.spent_s == pytest.approx(system.now)
    return done


def close(goal: GoalBounds, capacity: float) -> None:
    """The bounds lie on either side of the rate at which the loss becomes too large, and close together."""
    truth = capacity / (1 - goal.loss_ratio)
    assert goal.lower <= truth * (1 + 1e-4)
    assert goal.upper >= truth * (1 - 1e-4)
    assert goal.upper - goal.lower <= BY_HOST_CLOCK.width * goal.upper * (1 + 1e-6)
    assert goal.throughput == pytest.approx(min(goal.lower, capacity), rel=1e-3)


@pytest.mark.parametrize("capacity", [0.5 * LINE_RATE, 0.97 * LINE_RATE, 123_456, 3000, 800])
def test_a_dut_below_line_rate(capacity: float) -> None:
    done = searched(Simulated(capacity))
    assert done.ended
    close(done.goal(NDR), capacity)
    close(done.goal(PDR), capacity)


def test_a_dut_at_line_rate_has_no_upper_bound() -> None:
    done = searched(Simulated(2 * LINE_RATE))
    for goal in done.goals:
        assert (goal.lower, goal.upper) == (pytest.approx(LINE_RATE), None)


def test_a_weak_generator_is_not_taken_for_the_duts_limit() -> None:
    done = searched(Simulated(capacity=800_000, ceiling=400_000))
    for goal in done.goals:
        assert goal.upper == pytest.approx(400_000, rel=2 * BY_HOST_CLOCK.width)
        assert done.generator_limited(goal)
    assert not any(searched(Simulated(300_000, ceiling=400_000)).generator_limited(goal) for goal in done.goals)


@pytest.mark.parametrize(("noisy", "least"), [(0.1, 0.97), (0.3, 0.9)])
@pytest.mark.parametrize("seed", range(5))
def test_noise_in_some_trials_lowers_the_answer_a_little(noisy: float, least: float, seed: int) -> None:
    system = Simulated(500_000, noisy=noisy)
    system.chance.seed(seed)
    done = searched(system)
    assert done.ended
    assert least * 500_000 <= done.goal(NDR).throughput <= 500_000
    assert done.goal(NDR).throughput <= done.goal(PDR).throughput <= 500_000 * 1.001


def test_a_dut_that_forwards_nothing_has_no_lower_bound() -> None:
    done = searched(Simulated(0))
    for goal in done.goals:
        assert (goal.lower, goal.throughput) == (None, None)
        assert goal.upper == pytest.approx(LOWEST)


@pytest.mark.parametrize("budget_s", [0.5, 10, 20])
def test_a_search_ends_with_its_budget(budget_s: float) -> None:
    """No trial begins later, and what is known by then is kept."""
    system = Simulated(500_000, noisy=0.3)
    done = searched(system, budget_s=budget_s)
    assert not done.ended
    assert system.now - (BY_HOST_CLOCK.trial_s + system.overhead) <= budget_s
    for goal in done.goals:
        assert goal.lower is None or goal.lower <= 500_000
        assert goal.upper is None or goal.upper > goal.lower


@pytest.mark.parametrize("capacity", [0, 800, 500_000, 2 * LINE_RATE])
def test_the_budget_suffices_with_two_seconds_beside_each_trial(capacity: float) -> None:
    assert searched(Simulated(capacity, noisy=0.1)).ended


def test_progress_has_the_bounds_so_far() -> None:
    system, told = Simulated(500_000), []

    def report(bounds: Bounds, trials: int, spent: float) -> None:
        told.append((bounds[NDR], trials, spent))

    done = search(system.measure, lowest=LOWEST, highest=LINE_RATE, report=report, clock=system.clock)
    assert told[0] == ((None, None), 0, 0.0)
    assert [trials for _, trials, _ in told] == list(range(len(done.trials)))
    assert all(
        (lower is None or lower <= 500_000) and (upper is None or upper > 500_000) for (lower, upper), _, _ in told
    )
    assert told[-1][0] != (None, None)


def test_a_failed_trial_ends_the_search_without_an_answer() -> None:
    class Broken(Simulated):
        def measure(self, intended_duration: float, intended_load: float) -> TrialResult:
            if len(self.trials) == 3:
                raise CannotMeasure("the sink does not answer")
            return super().measure(intended_duration, intended_load)

    with pytest.raises(CannotMeasure, match="sink"):
        search(Broken(500_000).measure, lowest=LOWEST, highest=LINE_RATE)
