# SPDX-License-Identifier: GPL-2.0-or-later
"""Situations in which a verdict is pass, fail, or neither."""

import statistics
from types import MappingProxyType

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.judge.verdicts import judge_cases
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.model.results import HostFacts, Measured
from fwlab.model.trial import Trial
from fwlab.model.verdict import Outcome, Verdict, exit_code, overall
from tests.fakes.factories import (
    BASELINE_PPS,
    a_lab,
    a_run,
    attempt,
    check,
    expectation,
    measured,
    real,
    trials,
)

ABSOLUTE = expectation(virtual={"raw-drop": [291_000, 309_000]})
RATIO = expectation(ratio_to="raw-drop", ratio={"set-1000": [0.88, 0.94]})
HOSTS = expectation(hosts={"made-up-host": {"raw-drop": [900_000, 1_100_000]}})


def one(verdicts: list[Verdict]) -> Verdict:
    assert len(verdicts) == 1, verdicts
    return verdicts[0]


def judged(lab: Lab, *cases: Measured, **fields: object) -> list[Verdict]:
    return judge_cases(lab, a_run(list(cases), **fields), METRICS)


def attempted(
    exercise: Measured, *checks: dict, cases: list[Measured] | None = None, **fields: object
) -> list[Verdict]:
    lab = a_lab(checks=list(checks))
    run = a_run(cases or [], [exercise], **fields)
    return judge_exercise(lab.exercises[0], exercise, run, METRICS)


PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
MANY_APART = [285_000, 306_000, *range(296_000, 304_000, 1_000), 292_000, 308_000]


@pytest.mark.parametrize(
    ("pps", "fields", "outcome", "text"),
    [
        # inside the range, or on its bound; the median decides, not the worst trial
        ([291_000], {}, PASS, "Well done."),
        ([300_000], {}, PASS, "Well done."),
        ([309_000], {}, PASS, "Well done."),
        ([290_000, 300_000, 300_000], {}, PASS, ""),
        ([290_999], {}, FAIL, "Look again."),
        ([309_001], {}, FAIL, "Look again."),
        # a DUT that is not saturated decides nothing, wherever the figure lies; negligible idle time is none
        ([], {"trials": trials(300_000, 300_000, busy_share=0.7)}, INCONCLUSIVE, "not saturated: busy 70.0%"),
        ([], {"trials": trials(300_000, busy_share=0.9996)}, PASS, ""),
        ([], {"trials": trials(300_000, busy_share=0.999)}, INCONCLUSIVE, "not saturated"),
        ([], {"trials": [*trials(300_000, 300_000), *trials(300_000, busy_share=0.9)]}, INCONCLUSIVE, "not saturated"),
        ([], {"trials": trials(100_000, busy_share=0.7)}, INCONCLUSIVE, "not saturated"),
        ([], {"trials": [Trial(duration_s=0.25, busy_s=0, processed=0)]}, INCONCLUSIVE, "not saturated"),
        ([], {"trials": []}, INCONCLUSIVE, "no trial was completed"),
        # a known problem decides nothing either
        ([1_000], {"problems": ["the generator died"]}, INCONCLUSIVE, "the generator died"),
        # a large spread decides where no bound is near, or where many trials have a short interval
        ([292_000, 300_000, 308_000], {}, INCONCLUSIVE, "5.3% apart"),
        ([92_000, 100_000, 108_000], {}, FAIL, ""),
        (MANY_APART, {}, PASS, ""),
        (list(range(285_000, 315_001, 2_000)), {}, INCONCLUSIVE, "interval is 6.0% wide"),
    ],
)
def test_a_figure_in_an_absolute_range(pps: list[float], fields: dict, outcome: Outcome, text: str) -> None:
    lab = a_lab([ABSOLUTE])
    verdict = one(judged(lab, measured(lab, "raw-drop", *pps, **fields)))
    assert verdict.outcome is outcome
    assert text in verdict.text
    assert (verdict.low, verdict.high, verdict.why, verdict.source) == (291_000, 309_000, "Invented reason.", ["S1"])
    assert (verdict.value is None) == (outcome is INCONCLUSIVE)
    if pps and outcome is not INCONCLUSIVE:
        assert verdict.value == statistics.median(pps)


@pytest.mark.parametrize(
    ("between", "pps", "outcome"),
    [
        # a bound is near within twice the spread: 20 900 apart, the bound 40 100 away
        ([287_000, 309_000], (226_000, 240_000, 246_900), INCONCLUSIVE),
        ([287_000, 309_000], (226_000, 240_000, 246_300), FAIL),
        ([200_000, float("inf")], (285_000, 300_000, 305_000), PASS),
    ],
)
def test_a_large_spread_decides_far_from_every_bound(between: list[float], pps: tuple, outcome: Outcome) -> None:
    lab = a_lab([expectation(virtual={"raw-drop": between})])
    assert one(judged(lab, measured(lab, "raw-drop", *pps))).outcome is outcome


class TestRatio:
    LAB = a_lab([RATIO])

    @pytest.mark.parametrize(
        ("pps", "base", "outcome", "text"),
        [
            (273_000, {}, PASS, ""),
            (297_000, {}, FAIL, ""),
            (273_000, {"problems": ["the generator fell short"]}, INCONCLUSIVE, "raw-drop: the generator fell short"),
            (273_000, {"trials": trials(0.0)}, INCONCLUSIVE, "raw-drop: capacity is zero"),
        ],
    )
    def test_to_its_base_of_the_same_session(self, pps: float, base: dict, outcome: Outcome, text: str) -> None:
        cases = measured(self.LAB, "raw-drop", BASELINE_PPS, **base), measured(self.LAB, "set-1000", pps)
        verdict = one(judged(self.LAB, *cases))
        assert (verdict.outcome, verdict.relative_to) == (outcome, "raw-drop")
        assert text in verdict.text
        if outcome is not INCONCLUSIVE:
            assert verdict.value == pytest.approx(pps / BASELINE_PPS)

    def test_holds_on_a_host_twice_as_fast(self) -> None:
        cases = measured(self.LAB, "raw-drop", *[600_000] * 6), measured(self.LAB, "set-1000", *[546_000] * 6)
        assert one(judged(self.LAB, *cases, testbed=real())).outcome is PASS

    def test_what_was_not_measured_is_not_judged(self) -> None:
        assert judged(self.LAB, measured(self.LAB, "set-1000", 273_000)) == []
        assert judged(a_lab([ABSOLUTE]), measured(self.LAB, "set-1", 270_000)) == []


@pytest.mark.parametrize(
    ("accelerator", "host_class", "pps", "outcomes"),
    [
        ("kvm", "made-up-host", 1_000_000, [("hosts", PASS)]),
        ("kvm", "made-up-host", 500_000, [("hosts", FAIL)]),
        ("kvm", None, 1_000_000, []),
        ("kvm", "another-host", 1_000_000, []),
        ("tcg", "made-up-host", 1_000_000, []),
    ],
)
def test_on_the_real_testbed_the_range_is_that_of_the_host_class(
    accelerator: str, host_class: str | None, pps: float, outcomes: list[tuple[str, Outcome]]
) -> None:
    lab = a_lab([ABSOLUTE, {**HOSTS, "id": "hosts"}])
    host = HostFacts(**{**a_run([]).host.model_dump(), "host_class": host_class})
    case = measured(lab, "raw-drop", trials=trials(*[pps] * 6, scale=1))
    found = judged(lab, case, testbed=real(accelerator), host=host)
    assert [(verdict.check, verdict.outcome) for verdict in found] == outcomes


class TestExercise:
    BLOCKED = check(metric="delivered", between=[0, 0], **{"class": "attacker"})
    UNTOUCHED = check(metric="delivered", between=[0.9995, 1.0005], **{"class": "others"})
    RELATIVE = check(between=[0.8, 1.0], ratio_to="raw-drop")
    IDLE = MappingProxyType({"trials": [], "unsaturated": ["DUT not saturated: 0 of 6 valid trials"]})

    @pytest.mark.parametrize(
        ("made", "checks", "verdicts"),
        [
            (attempt(200_000), [check()], [(PASS, 200_000)]),
            (attempt(199_999), [check()], [(FAIL, 199_999)]),
            (attempt(250_000), [BLOCKED, UNTOUCHED], [(PASS, 0.0), (PASS, 1.0)]),
            (attempt(250_000, arrived=1), [BLOCKED], [(FAIL, 1 / 900)]),
            # a doubt about one figure is none about another
            (attempt(200_000, 250_000), [check(), BLOCKED], [(INCONCLUSIVE, None), (PASS, 0.0)]),
            (attempt(**IDLE), [check(), BLOCKED], [(INCONCLUSIVE, None), (PASS, 0.0)]),
            (attempt(arrived=1, **IDLE), [BLOCKED], [(FAIL, 1 / 900)]),
            (attempt(250_000, deliveries=[]), [BLOCKED], [(INCONCLUSIVE, None)]),
        ],
    )
    def test_checks_decide_one_by_one(self, made: Measured, checks: list[dict], verdicts: list) -> None:
        found = attempted(made, *checks)
        assert [(verdict.outcome, verdict.value) for verdict in found] == verdicts

    def test_the_reason_for_no_verdict_is_given(self) -> None:
        assert one(attempted(attempt(**self.IDLE), check())).text == self.IDLE["unsaturated"][0]
        verdict = one(attempted(attempt(250_000, deliveries=[]), self.BLOCKED))
        assert (verdict.text, verdict.check) == ("delivered was not measured", "delivered-attacker")
        assert one(attempted(attempt(250_000), self.RELATIVE)).text == "case raw-drop was not measured in the same run"

    @pytest.mark.parametrize("base", [{}, {"problems": ["a node died"]}, None])
    def test_a_refused_ruleset_fails_every_check_with_the_tools_message(self, base: dict | None) -> None:
        refused = attempt(trials=[], deliveries=[], refused="iptables-restore: line 3 failed")
        cases = [] if base is None else [measured(a_lab(), "raw-drop", BASELINE_PPS, **base)]
        verdicts = attempted(refused, check(), self.BLOCKED, self.RELATIVE, cases=cases)
        assert [v.outcome for v in verdicts] == [FAIL] * 3
        assert all(v.text == "not loaded: iptables-restore: line 3 failed" for v in verdicts)

    def test_a_ratio_to_its_base(self) -> None:
        base = measured(a_lab(), "raw-drop", BASELINE_PPS)
        verdict = one(attempted(attempt(240_000), self.RELATIVE, cases=[base]))
        assert (verdict.outcome, verdict.value) == (PASS, pytest.approx(0.8))

    def test_an_absolute_check_needs_the_virtual_testbed(self) -> None:
        verdict = one(attempted(attempt(trials=trials(250_000, scale=1)), check(), testbed=real()))
        assert verdict.outcome is INCONCLUSIVE
        assert "virtual testbed only" in verdict.text


@pytest.mark.parametrize(
    ("outcomes", "worst", "code"),
    [
        ([], Outcome.PASS, 0),
        ([Outcome.PASS, Outcome.PASS], Outcome.PASS, 0),
        ([Outcome.PASS, Outcome.INCONCLUSIVE], Outcome.INCONCLUSIVE, 3),
        ([Outcome.INCONCLUSIVE, Outcome.FAIL, Outcome.PASS], Outcome.FAIL, 1),
    ],
)
def test_the_worst_outcome_decides(outcomes: list[Outcome], worst: Outcome, code: int) -> None:
    assert overall(outcomes) is worst
    assert exit_code(outcomes) == code
