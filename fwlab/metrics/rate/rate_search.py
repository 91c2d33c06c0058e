# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for throughput: MLRsearch finds the rates of all goals in one search.

All that it sees of the world is `measure(intended_duration, intended_load) -> TrialResult`. MLRsearch is described in
the draft of the IETF's BMWG (draft-ietf-bmwg-mlrsearch).
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from MLRsearch import AbstractMeasurer, Config, GoalResult, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from fwlab.metrics.offered_load import BUDGET_S, BY_HOST_CLOCK, COARSER, GOALS, MAY_EXCEED, Bounds, SearchTerms
from fwlab.model.benchmarks import GoalBounds, RateSearch, TrialResult


class LoadMeasurer(Protocol):
    """What makes one trial."""

    def measure(self, intended_duration: float, intended_load: float) -> TrialResult:
        """One trial: `intended_load` packets per second for `intended_duration` s. Raises CannotMeasure."""


class _BudgetSpentError(Exception):
    """The search's time is up."""


def search(
    measurer: LoadMeasurer,
    *,
    lowest: float,
    highest: float,
    terms: SearchTerms = BY_HOST_CLOCK,
    budget_s: float = BUDGET_S,
    tell: Callable[[Bounds, int, float], None] = lambda _bounds, _trials, _spent: None,
    clock: Callable[[], float] = time.monotonic,
) -> RateSearch:
    """NDR and PDR between these loads (pps). `tell` hears the bounds, the trials and the seconds so far.

    No trial begins after `budget_s`; the bounds found by then are returned. Raises ValueError unless lowest < highest.
    """
    if not 0 < lowest < highest:
        raise ValueError(f"nothing to search between {lowest:g} and {highest:g} pps")
    goals = [_goal(ratio, terms) for ratio in GOALS]
    config = Config(goals=goals, min_load=lowest, max_load=highest, search_duration_max=2 * budget_s + terms.trial_s)
    controller = MultipleLossRatioSearch(config=config)
    trials: list[TrialResult] = []
    began = clock()

    def trial(duration: float, load: float) -> MeasurementResult:
        tell({goal.loss_ratio: _bounds(controller, goal) for goal in goals}, len(trials), clock() - began)
        if clock() - began > budget_s:
            raise _BudgetSpentError
        trials.append(measurer.measure(duration, load))
        return _as_mlrsearch(trials[-1])

    try:
        controller.search(measurer=_Adapter(trial), debug=lambda _line: None)
        ended = True
    except _BudgetSpentError:
        ended = False
    found = [_found(controller, goal) for goal in goals]
    return RateSearch(
        lowest=lowest, highest=highest, goals=found, trials=trials, spent_s=round(clock() - began, 1), ended=ended
    )


class _Adapter(AbstractMeasurer):  # type: ignore[misc] # without types
    """A trial as MLRsearch asks for it."""

    def __init__(self, trial: Callable[[float, float], MeasurementResult]) -> None:
        self._trial = trial

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        return self._trial(intended_duration, intended_load)


def _goal(loss_ratio: float, terms: SearchTerms) -> SearchGoal:
    return SearchGoal(
        loss_ratio=loss_ratio,
        exceed_ratio=MAY_EXCEED,
        relative_width=terms.width,
        initial_trial_duration=terms.trial_s,
        final_trial_duration=terms.trial_s,
        duration_sum=terms.decided_s,
        preceding_targets=COARSER,
        expansion_coefficient=2,
        fail_fast=False,
    )


def _as_mlrsearch(trial: TrialResult) -> MeasurementResult:
    return MeasurementResult(
        intended_duration=trial.intended_duration,
        intended_load=trial.intended_load,
        intended_count=trial.intended_count,
        offered_count=trial.offered,
        loss_count=trial.lost,
    )


def _bounds(controller: Any, goal: SearchGoal) -> tuple[float | None, float | None]:
    found = _found(controller, goal)
    return found.lower, found.upper


def _found(controller: Any, goal: SearchGoal) -> GoalBounds:
    """What is known of this goal by now."""
    target = controller.scaling.goal_to_final_target[goal]
    result = GoalResult.from_bounds(bounds=controller.database.get_relevant_bounds(target=target))
    return GoalBounds(
        loss_ratio=goal.loss_ratio,
        lower=_load(result.relevant_lower_bound),
        upper=_load(result.relevant_upper_bound),
        throughput=_load(result.conditional_throughput),
    )


def _load(bound: Any) -> float | None:
    return None if bound is None else float(bound)
