# SPDX-License-Identifier: GPL-2.0-or-later
"""The kinds of checks, and judging an exercise by its checks.

A built-in kind is a module of this package that declares CHECK; others are entry points of the group `fwlab.checks`.
"""

from typing import Protocol

from fwlab.judge import conduct
from fwlab.judge.verdicts import verdict_of
from fwlab.model.check import Check
from fwlab.model.lab import Exercise
from fwlab.model.metric import Metric, Metrics
from fwlab.model.registry import Registry, discover
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict


class CheckKind(Protocol):
    """One way to judge the measurement of a ruleset.

    name   what a check in lab.yml names as its `kind`
    check  its fields: Check, or a class that extends it, whose `metrics` and `cases` say what must be measured
    """

    name: str
    check: type[Check]

    def judge(self, check: Check, measured: Measured, run: Run, metrics: Metrics) -> Verdict:
        """The verdict on a ruleset that treats packets as it must. `check`: of this kind's class."""


CHECKS: Registry[CheckKind] = discover("check kind", "fwlab.judge", "CHECK", "fwlab.checks", CheckKind)


def judge_exercise(exercise: Exercise, measured: Measured, run: Run, metrics: Metrics) -> list[Verdict]:
    """Every check of an exercise on one ruleset's measurement."""
    found = conduct.foreign(measured) or conduct.logged(measured)
    if exercise.load_dependent:
        limits = [check for check in exercise.checks if metrics[check.metric].of_baseline]
        changed = conduct.changes_of_limits(limits, measured)
    else:
        changed = conduct.changes(measured, stateful=exercise.stateful)
    verdicts = []
    for check in exercise.checks:
        reason = found
        if reason is None and not measured.problems:
            reason = _load_dependent(check, metrics[check.metric], changed, measured)
        if reason is not None:
            verdicts.append(verdict_of(check, measured, check.between, None, Outcome.FAIL, reason))
        else:
            verdicts.append(CHECKS[check.kind].judge(check, measured, run, metrics))
    return verdicts


def judge_refused(exercise: Exercise, measured: Measured) -> list[Verdict]:
    """Every check of an exercise on a ruleset that no tool has seen, because it was refused as it was read."""
    reason = f"not loaded: {measured.refused}"
    return [verdict_of(check, measured, check.between, None, Outcome.FAIL, reason) for check in exercise.checks]


def _load_dependent(check: Check, metric: Metric, changed: dict[str, str], measured: Measured) -> str | None:
    """Why this check fails for a ruleset that treats a packet differently at different times; None if it does not."""
    if how := metric.changed_in_flood(measured, check.between):
        return f"the ruleset behaves differently at different times: {how}"
    if metric.invalidated_by == "own class" and check.traffic_class in changed:
        return f"the ruleset behaves differently at different times: {changed[check.traffic_class]}"
    if metric.invalidated_by == "any class" and changed:
        how = "; ".join(changed.values())
        return f"a figure counts only for a ruleset that treats a packet the same at all times: {how}"
    return None
