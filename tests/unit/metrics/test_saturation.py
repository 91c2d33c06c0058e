# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for a throttle level: where a case begins, when the level rises, and the problem if none suffices."""

import pytest

from fwlab.metrics.saturation import Attempt, Saturation
from fwlab.model.results import Measured, Overload
from fwlab.model.trial import Trial

STEPS, WANTED = 4, 5
FULL, STARVED = Trial(duration_s=2, busy_s=2, processed=9), Trial(duration_s=2, busy_s=1.5, processed=9)


class Dut:
    """Never idle from level `enough` on. At level `nearly` it is idle in one trial, and all others are valid."""

    def __init__(self, enough: int, nearly: int | None = None, disturbed: int = 0) -> None:
        self.enough, self.nearly, self.disturbed = enough, nearly, disturbed
        self.tried: list[int] = []

    def attempt(self, step: int) -> Attempt[Trial]:
        self.tried.append(step)
        left_out = [FULL] * self.disturbed
        if step == self.nearly:
            return Attempt([FULL] * WANTED, [STARVED], left_out)
        if step >= self.enough:
            return Attempt([FULL] * WANTED, [], left_out)
        return Attempt([FULL], [STARVED] * 6, left_out)


def a_case() -> Measured:
    return Measured(id="one", title="", ruleset="", ruleset_hash="")


def searched(saturation: Saturation, dut: Dut) -> Measured:
    """Run the search for the next case of a session."""
    search = saturation.search(dut.attempt, WANTED)
    return search.added_to(a_case()).plus(Overload(trials=search.attempt.valid))


@pytest.mark.parametrize("enough", range(STEPS))
def test_the_level_rises_until_the_dut_is_never_idle(enough: int) -> None:
    dut = Dut(enough, disturbed=2)
    found = searched(Saturation(STEPS), dut)
    assert dut.tried == list(range(enough + 1))
    assert (found.throttle_level, found.trials, found.problems) == (enough, [FULL] * WANTED, [])
    assert (found.idle_trials, found.perturbed_trials) == (0, 2), "those of the last level, not of all"


@pytest.mark.parametrize(
    ("first", "then", "tried"),
    [(2, 2, [1, 2]), (3, 0, [2, 1, 0, 0])],
    ids=["one level lower", "and by one more from case to case"],
)
def test_where_the_next_cases_begin(first: int, then: int, tried: list[int]) -> None:
    saturation, dut = Saturation(STEPS), Dut(enough=then)
    searched(saturation, Dut(enough=first))
    while len(dut.tried) < len(tried):
        assert searched(saturation, dut).throttle_level == dut.tried[-1]
    assert dut.tried == tried


def test_a_level_that_is_just_enough_is_kept() -> None:
    """The DUT was idle in a trial, but enough others are valid: one level lower would be too low."""
    saturation, dut = Saturation(STEPS), Dut(enough=3, nearly=2)
    searched(saturation, Dut(enough=3))
    first, second = searched(saturation, dut), searched(saturation, dut)
    assert dut.tried == [2, 2]
    assert (
        (first.throttle_level, first.idle_trials, first.problems)
        == (2, 1, [])
        == (second.throttle_level, 1, second.problems)
    )


def test_a_dut_that_is_idle_even_at_the_last_level_is_a_problem() -> None:
    saturation, dut = Saturation(STEPS), Dut(enough=STEPS, disturbed=3)
    found = searched(saturation, dut)
    assert dut.tried == [0, 1, 2, 3]
    assert (found.throttle_level, found.trials) == (3, [FULL])
    assert found.problems == [
        ("DUT not saturated: 1 of 5 valid trials, 6 idle (idlest trial: 75.0% busy), 3 with other CPU load")
    ]
    searched(saturation, dut)
    assert dut.tried[4:] == [3], "the next case does not begin at level 0 again"


def test_on_the_hosts_clock_there_is_one_level() -> None:
    saturation, dut = Saturation(1), Dut(enough=1)
    assert len(searched(saturation, dut).problems) == 1
    assert not searched(saturation, Dut(enough=0)).problems
    assert dut.tried == [0]


def test_on_the_hosts_clock_idle_trials_concern_only_figures_that_need_overload() -> None:
    search = Saturation(1).search(Dut(enough=1).attempt, WANTED)
    found = search.added_to(a_case(), throttled=False)
    assert (found.unsaturated, found.problems) == (search.problems, [])


def test_a_dut_that_is_idle_almost_all_the_time_is_not_throttled_in_vain() -> None:
    """A ruleset that lets two connections a second begin keeps it idle at every level, for minutes."""
    tried: list[int] = []
    idle = Trial(duration_s=2, busy_s=0.03, processed=9)

    def attempt(level: int) -> Attempt[Trial]:
        tried.append(level)
        return Attempt([], [idle] * 11, [])

    saturation = Saturation(5)
    found = saturation.search(attempt, WANTED)
    assert (tried, found.level, found.attempt.hopeless) == ([0], 0, True)
    assert "idlest trial: 1.5% busy" in found.problems[0]
    assert saturation.search(lambda _level: Attempt([FULL] * WANTED, [], []), WANTED).level == 0
    assert not Attempt([], [idle, STARVED], []).hopeless
