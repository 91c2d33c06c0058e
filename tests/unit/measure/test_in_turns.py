# SPDX-License-Identifier: GPL-2.0-or-later
"""On the host's clock a case and its baseline are measured in turns, and the median's confidence interval decides."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.judge.clocks import MAX_INTERVAL
from fwlab.judge.statistics import Figure, median_interval, min_values, paired_ratio
from fwlab.judge.verdicts import all_doubts, judge_cases
from fwlab.measure.measurer import interleave_trials
from fwlab.measure.plan import case_spec
from fwlab.measure.session import Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Trials
from fwlab.model.errors import DeadlineExceeded
from fwlab.model.results import Measured
from fwlab.model.verdict import Outcome, Verdict
from fwlab.report.files import RENDERERS
from fwlab.report.model import build_model
from fwlab.report.renderers.terminal import plain_text
from tests.checkout import PROJECT, TOPOLOGY, lab_named
from tests.fakes.factories import a_lab, a_run, attempt, check, expectation, measured, real, testbed, trials

LAB = a_lab([expectation(id="relative", ratio_to="raw-drop", ratio={"set-1000": [0.88, 0.94]})])
BASE = MeasurementSpec("raw-drop", "Raw drop", "raw-drop", [], ["capacity"], traffic="flood")
CASE = MeasurementSpec("set-1000", "Set", "set", [], ["capacity", "load_time"], traffic="flood", interleaved=BASE)
#: A host that slows down by a third in six rounds.
DRIFT = [1.0, 0.95, 0.88, 0.8, 0.73, 0.67]


# ---- the interval
@pytest.mark.parametrize(
    ("count", "ranks"),
    [(6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (11, (2, 10)), (12, (3, 10)), (15, (4, 12)), (20, (6, 15))],
)
def test_ranks_of_the_interval_are_those_of_the_tables(count: int, ranks: tuple[int, int]) -> None:
    """The usual table of the sign test, for 95 %."""
    values = [float(n) for n in range(count, 0, -1)]
    assert median_interval(values) == ranks


def test_five_values_give_no_interval() -> None:
    assert min_values() == 6
    assert (median_interval([]), Figure([1.0] * 5).uncertainty) == (None, None)


def test_the_interval_holds_the_median_as_often_as_it_promises() -> None:
    chance, hits, tries = random.Random(7), 0, 2000
    for _ in range(tries):
        low, high = median_interval([chance.expovariate(1) for _ in range(10)])
        hits += low <= math.log(2) <= high
    assert hits / tries >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / tries)


# ---- the rounds
class Host:
    """A measurer on a host whose speed changes with each round; it records what it is asked for."""

    def __init__(self, speeds: list[float], problem_at: int | None = None) -> None:
        self.speeds, self.problem_at, self.asked = speeds, problem_at, []

    def __call__(self, spec: MeasurementSpec, limit_s: float | None) -> Measured:
        rounds = sum(1 for one in self.asked if one.id == spec.id)
        self.asked.append(spec)
        pps = self.speeds[rounds] * (300_000 if spec.id.startswith("raw-drop") else 273_000)
        problems = ["the DUT was idle"] if len(self.asked) - 1 == self.problem_at else []
        return measured(
            LAB,
            spec.id.split()[0],
            trials=trials(*[pps] * spec.trial.count, scale=1),
            loads=[0.1],
            problems=problems,
            wall_s=2.0,
        )


def test_case_and_baseline_alternate() -> None:
    host = Host(DRIFT)
    found = interleave_trials(host, CASE)
    assert [spec.id.split()[0] for spec in host.asked] == ["set-1000", "raw-drop"] * 6
    assert {spec.trial.count for spec in host.asked} == {1}
    assert [spec.metrics for spec in host.asked[:3:2]] == [["capacity", "load_time"], ["capacity"]]
    assert (found.id, found.interleaved.id) == ("set-1000", "raw-drop")
    assert (len(found.trials), len(found.interleaved.trials)) == (6, 6)
    assert (found.loads, found.wall_s) == ([0.1], 12.0)


@pytest.mark.parametrize(("spec", "trials"), [(replace(CASE, trial=Trials(count=9)), 9), (CASE, 6), (BASE, 6)])
def test_there_are_enough_trials_for_an_interval(spec: MeasurementSpec, trials: int) -> None:
    """More trials are more rounds. A case without a baseline has no rounds."""
    assert len(interleave_trials(Host([1.0] * 9), spec).trials) == trials


def test_after_a_problem_there_is_no_further_round() -> None:
    host = Host(DRIFT, problem_at=3)
    found = interleave_trials(host, CASE)
    assert len(host.asked) == 4
    assert found.interleaved.problems == ["the DUT was idle"]


def test_the_time_limit_is_for_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("fwlab.measure.measurer.time", SimpleNamespace(monotonic=lambda: next(clock)))
    host = Host(DRIFT)
    with pytest.raises(DeadlineExceeded, match="set-1000"):
        interleave_trials(host, CASE, 35)
    assert len(host.asked) == 3


@pytest.mark.parametrize(("bed", "rounds"), [(testbed(), 1), (real(), 12)])
def test_only_the_hosts_clock_needs_it(bed: object, rounds: int) -> None:
    host = Host([1.0] * 6)
    measurer = SimpleNamespace(measure=lambda spec, limit_s=None: host(spec, limit_s))
    session = Session(None, measurer, None, a_run([], testbed=bed), Path(), lambda _: None)
    session.measure_cases([replace(CASE, metrics=["capacity"])])
    assert len(host.asked) == rounds


def test_a_labs_cases_are_measured_beside_what_their_ratio_is_to() -> None:
    lab = lab_named("lab03-ipset")
    context = SimpleNamespace(lab=lab, topology=TOPOLOGY, project=PROJECT)
    loads = [case.id for case in lab.cases.values() if case.metric == "load_time"][:2]
    assert loads
    chosen = [lab.cases[name] for name in (lab.baseline, "ipset-1000", *loads)]
    found = {case.id: case_spec(context, case, None).interleaved for case in chosen}
    assert found[lab.baseline] is None
    assert found["ipset-1000"].id == lab.baseline
    assert found["ipset-1000"].metrics == ["capacity"]
    assert {found[name] for name in loads} == {None}


# ---- judging
def judged(found: Measured, *others: Measured) -> Verdict:
    [verdict] = judge_cases(LAB, a_run([*others, found], testbed=real()), METRICS)
    return verdict


def test_the_ratio_of_rounds_is_judged_although_the_host_drifts() -> None:
    found = interleave_trials(Host(DRIFT), CASE)
    own_session = measured(LAB, "raw-drop", trials=trials(*[330_000] * 6, scale=1))
    verdict = judged(found, own_session)
    assert (verdict.outcome, verdict.value) == (Outcome.PASS, pytest.approx(0.91, abs=1e-3))
    run = a_run([found], testbed=real())
    assert all_doubts(found, run, METRICS) == []
    assert paired_ratio(found, METRICS["capacity"], run.testbed, "another") is None


def test_the_median_of_the_ratios_counts_and_not_the_ratio_of_the_medians() -> None:
    speeds, ratios = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], [0.93, 0.91, 0.90, 0.91, 0.91, 0.91]
    own = [300_000 * speed * ratio for speed, ratio in zip(speeds, ratios, strict=True)]
    interleaved = measured(LAB, "raw-drop", trials=trials(*[300_000 * speed for speed in speeds], scale=1))
    found = measured(LAB, "set-1000", trials=trials(*own, scale=1), interleaved=interleaved)
    assert judged(found).value == pytest.approx(0.91, abs=1e-4)


WIDE = [0.95, 0.97, 1.0, 1.0, 1.03, 1.05]


@pytest.mark.parametrize(
    ("factors", "outcome", "said"),
    [
        (WIDE, Outcome.INCONCLUSIVE, f"95% confidence interval is 10.0% wide; at most {MAX_INTERVAL:.0%}"),
        ([*WIDE, *[0.99, 1.0, 1.01] * 8], Outcome.PASS, ""),
        ([0.5 * factor for factor in WIDE], Outcome.FAIL, ""),
        ([1.0] * 3, Outcome.INCONCLUSIVE, "6 do"),
    ],
    ids=["too wide", "more trials of the same scatter", "far from the range", "too few trials"],
)
def test_an_interval_that_is_too_wide_is_inconclusive(factors: list[float], outcome: Outcome, said: str) -> None:
    own = measured(LAB, "set-1000", trials=trials(*[273_000 * factor for factor in factors], scale=1))
    other = measured(LAB, "raw-drop", trials=trials(*[300_000] * len(factors), scale=1))
    verdict = judged(own.model_copy(update={"interleaved": other}))
    assert verdict.outcome is outcome
    assert said in verdict.text


def test_a_check_is_judged_by_the_case_beside_it() -> None:
    lab = a_lab(checks=[check(ratio_to="raw-drop", between=[0.8, 1.2])])
    interleaved = measured(LAB, "raw-drop", trials=trials(*[300_000] * 6, scale=1))
    found = attempt(trials=trials(*[290_000] * 6, scale=1), interleaved=interleaved)
    [verdict] = judge_exercise(lab.exercises[0], found, a_run([], testbed=real()), METRICS)
    assert (verdict.outcome, verdict.relative_to) == (Outcome.PASS, "raw-drop")


# ---- results and reports
def test_results_keep_what_was_measured_beside_them() -> None:
    found = interleave_trials(Host(DRIFT), CASE)
    assert Measured.model_validate_json(found.model_dump_json()) == found
    assert "interleaved" not in found.interleaved.model_dump()


def test_reports_show_the_interval_in_place_of_the_spread() -> None:
    own = measured(LAB, "raw-drop", trials=trials(*[300_000] * 6, scale=1))
    run = a_run([own, interleave_trials(Host(DRIFT), CASE)], testbed=real())
    model = build_model(LAB, run)
    text = plain_text(model)
    assert "95% CI" in text
    assert "spread" not in text
    document = json.loads(RENDERERS["json"].render(model))
    figure = next(case for case in document["cases"] if case["id"] == "set-1000")
    assert figure["ratio"]["value"] == pytest.approx(0.91, abs=1e-3)
    assert figure["ratio"]["interval"] == pytest.approx([0.91, 0.91], abs=1e-3)
    assert figure["interval"] == pytest.approx([0.67 * 273_000, 273_000], rel=1e-3)
