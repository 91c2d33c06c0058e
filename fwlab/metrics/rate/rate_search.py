# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for throughput: MLRsearch finds the rates of all goals in one search.

All that it sees of the world is `measure(intended_duration, intended_load) -> TrialResult`. MLRsearch is described in
the draft of the IETF's BMWG (draft-ietf-bmwg-mlrsearch).
"""

import time
from collections.abc import Callable
from typing import Any

from MLRsearch import AbstractMeasurer, Config, GoalResult, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from fwlab.metrics.offered_load import BUDGET_S, COARSER, GOALS, MAY_EXCEED, Bounds, SearchTerms
from fwlab.model.benchmarks import GoalBounds, RateSearch, TrialResult


class _BudgetSpentError(Exception):
    """The search's time is up."""


def search(
    measure: Callable[[float, float], TrialResult],
    *,
    lowest: float,
    highest: float,
    terms: SearchTerms,
    report: Callable[[Bounds, int, float], None],
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.monotonic,
) -> RateSearch:
    """NDR and PDR between these loads (pps). `report` hears the bounds, the trials and the seconds so far.

    No trial begins after `budget_s`; the bounds found by then are returned.
    """
    goals = [_goal(ratio, terms) for ratio in GOALS]
    config = Config(goals=goals, min_load=lowest, max_load=highest, search_duration_max=2 * budget_s + terms.trial_s)
    controller = MultipleLossRatioSearch(config=config)
    trials: list[TrialResult] = []
    began = clock()

    def trial(duration: float, load: float) -> MeasurementResult:
        found = [_found(controller, goal) for goal in goals]
        report({goal.loss_ratio: (goal.lower, goal.upper) for goal in found}, len(trials), clock() - began)
        if clock() - began > budget_s:
            raise _BudgetSpentError
        trials.append(measure(duration, load))
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
