# SPDX-License-Identifier: GPL-2.0-or-later
"""A kind of check is one object: its fields and how it judges. Nothing else in the project knows it."""

import math
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from fwlab.judge import checks
from fwlab.judge.checks import CHECKS, judge_exercise
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import verdict_of
from fwlab.metrics.registry import METRICS
from fwlab.model.check import Check
from fwlab.model.lab import Exercise
from fwlab.model.metric import Metrics
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict
from tests.fakes.factories import a_run, attempt, check

STEADY = {**check(kind="steady", metric="capacity", most=0.02), "source": ["S1"]}
del STEADY["between"]


class SteadyCheck(Check):
    """Trials lie no further apart than a share of their median."""

    between: tuple[float, float] = (-math.inf, math.inf)
    most: float

    @property
    def metrics(self) -> list[str]:
        return [self.metric, "load_time"]


class Steady:
    name = "steady"
    check = SteadyCheck

    def judge(self, check: Check, measured: Measured, run: Run, metrics: Metrics) -> Verdict:
        assert isinstance(check, SteadyCheck)
        found = figure(measured, metrics[check.metric], run.testbed)
        steady = found is not None and found.spread <= check.most
        outcome, text = (Outcome.PASS, check.passed) if steady else (Outcome.FAIL, check.failed)
        return verdict_of(check, measured, check.between, None, outcome, text, found and found.spread)


KINDS = {**CHECKS, "steady": Steady()}


def exercise(entry: dict, kinds: object = KINDS) -> Exercise:
    fields = {"id": "ex1", "title": "T", "traffic": "flood", "predict": "How many?", "checks": [entry]}
    return Exercise.model_validate(fields, context={"check_kinds": kinds})


@pytest.mark.parametrize(("pps", "outcome"), [((250_000, 251_000), Outcome.PASS), ((250_000, 290_000), Outcome.FAIL)])
def test_a_kind_judges_by_its_own_fields(
    pps: tuple[float, ...], outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "CHECKS", KINDS)
    made = attempt(*pps)
    [verdict] = judge_exercise(exercise(STEADY), made, a_run([], [made]), METRICS)
    assert (verdict.outcome, verdict.check) == (outcome, "capacity")


def test_its_fields_are_validated_and_kept() -> None:
    [found] = exercise(STEADY).checks
    assert found.metrics == ["capacity", "load_time"]
    assert exercise(STEADY).model_dump(by_alias=True)["checks"][0]["most"] == 0.02
    with pytest.raises(ValidationError, match="most"):
        exercise({key: value for key, value in STEADY.items() if key != "most"})


def test_an_unknown_kind_is_rejected_with_those_that_there_are() -> None:
    with pytest.raises(ValidationError, match="unknown kind of check 'steady'; known kinds: range"):
        exercise(STEADY, CHECKS)


def test_a_foreign_packet_fails_a_check_of_any_kind() -> None:
    made = attempt(250_000)
    flood = SimpleNamespace(foreign={"foreign": 5}, returned={}, intended_load=None)
    made = made.model_copy(update={"flood": flood})
    [verdict] = judge_exercise(exercise(STEADY), made, a_run([], []), METRICS)
    assert verdict.outcome is Outcome.FAIL
