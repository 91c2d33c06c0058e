# SPDX-License-Identifier: GPL-2.0-or-later
"""A limit of capacity keeps its distance from every ruleset that was graded.

Otherwise it judges the tool, or a counter more, and not the idea.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from fwlab.grading.lab_rulesets import load_variants
from fwlab.judge.checks import judge_exercise
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Exercise, Lab
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict
from tests.checkout import PROJECT
from tests.fakes.published import NAMES, graded

#: The least distance of a limit from what passes it, and from what fails by it alone, as a share of the limit.
MARGIN = 0.03


@pytest.mark.parametrize("name", NAMES)
def test_limits_of_capacity_keep_their_distance(name: str) -> None:
    lab, rulesets = graded(name)
    near = [line for ruleset, (measured, run) in rulesets.items() for line in too_near(lab, ruleset, measured, run)]
    assert not near, "\n".join(["", *near])


def too_near(lab: Lab, ruleset: str, measured: Measured, run: Run) -> Iterator[str]:
    """A sentence about each limit of capacity that this ruleset passes or fails by too little."""
    exercise = lab.exercise(measured.id)
    if exercise is None or measured.refused is not None:
        return
    verdicts = judge_exercise(exercise, measured, run, METRICS)
    passes, fails_by = expected(lab, exercise, ruleset, verdicts)
    for verdict in verdicts:
        if verdict.metric != "capacity" or verdict.value is None or not (passes or verdict.check in fails_by):
            continue
        right = [(verdict.value / verdict.low - 1, "at least", verdict.low)] if verdict.low > 0 else []
        right += [(1 - verdict.value / verdict.high, "at most", verdict.high)] if verdict.high < math.inf else []
        # What passes is inside by the nearest bound, what fails is outside by one of them.
        inside, how, bound = min(right)
        room = inside if passes else -inside
        if room < MARGIN:
            yield (
                f"{lab.id} {exercise.id}: {'right' if passes else 'wrong'} {ruleset.rpartition('/')[2]} has "
                f"{shown(verdict.value)}; {verdict.check} must be {how} {shown(bound)}: {100 * room:.1f} % away"
            )


def shown(figure: float) -> str:
    """A capacity; a ratio has no unit."""
    return f"{figure / 1000:.4g} kpps" if figure >= 1000 else f"{figure:.3g}"


def expected(lab: Lab, exercise: Exercise, ruleset: str, verdicts: list[Verdict]) -> tuple[bool, set[str]]:
    """Whether this ruleset is to pass; if not, the checks that it is to fail, if all of them are of capacity."""
    part = ruleset.rpartition("/")[2]
    if "/variants/" not in ruleset:
        fails = {verdict.check for verdict in verdicts if verdict.outcome is not Outcome.PASS}
    else:
        wrong = load_variants(PROJECT, lab, exercise).wrong.get(part)
        fails = set(wrong.fails) if wrong else set()
    of_capacity = {check.id for check in exercise.checks if check.metric == "capacity"}
    return part == "reference" or not fails, fails if fails <= of_capacity else set()
