# SPDX-License-Identifier: GPL-2.0-or-later
"""Situations in which a verdict is pass, fail, or neither."""

from __future__ import annotations

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.judge.verdicts import judge_cases
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.model.results import HostFacts, Measured, Run
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
    testbed,
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


class TestAbsoluteRange:
    LAB = a_lab([ABSOLUTE])

    @pytest.mark.parametrize("pps", [291_000, 300_000, 309_000])
    def test_inside_the_range_or_on_its_bound_passes(self, pps: float) -> None:
        verdict = one(judged(self.LAB, measured(self.LAB, "raw-drop", pps)))
        assert verdict.outcome is Outcome.PASS
        assert verdict.text == "Well done."
        assert verdict.value == pps

    @pytest.mark.parametrize("pps", [290_999, 309_001])
    def test_just_outside_fails_with_a_reason(self, pps: float) -> None:
        verdict = one(judged(self.LAB, measured(self.LAB, "raw-drop", pps)))
        assert verdict.outcome is Outcome.FAIL
        assert (verdict.text, verdict.why, verdict.source) == ("Look again.", "Invented reason.", ["S1"])
        assert (verdict.low, verdict.high) == (291_000, 309_000)

    def test_the_median_decides_not_the_worst_trial(self) -> None:
        verdict = one(judged(self.LAB, measured(self.LAB, "raw-drop", 290_000, 300_000, 300_000)))
        assert verdict.outcome is Outcome.PASS

    def test_a_case_that_was_not_measured_is_not_judged(self) -> None:
        assert judged(self.LAB, measured(self.LAB, "set-1", 270_000)) == []


class TestDoubts:
    LAB = a_lab([ABSOLUTE])

    def judge(self, **fields: object) -> Verdict:
        return one(judged(self.LAB, measured(self.LAB, "raw-drop", **fields)))

    def test_an_unsaturated_dut_is_inconclusive_even_inside_the_range(self) -> None:
        verdict = self.judge(trials=trials(300_000, 300_000, busy_share=0.7))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.value is None
        assert "not saturated: busy 70.0%" in verdict.text

    def test_a_negligible_idle_time_is_still_saturated(self) -> None:
        assert self.judge(trials=trials(300_000, busy_share=0.9996)).outcome is Outcome.PASS

    def test_a_thousandth_of_idle_time_is_not_saturated(self) -> None:
        assert self.judge(trials=trials(300_000, busy_share=0.999)).outcome is Outcome.INCONCLUSIVE

    def test_one_idle_trial_makes_the_verdict_inconclusive(self) -> None:
        mixed = [*trials(300_000, 300_000), *trials(300_000, busy_share=0.9)]
        assert self.judge(trials=mixed).outcome is Outcome.INCONCLUSIVE

    def test_a_large_spread_is_inconclusive(self) -> None:
        verdict = self.judge(trials=trials(292_000, 300_000, 308_000))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "5.3% apart" in verdict.text

    def test_a_large_spread_decides_if_no_bound_is_near(self) -> None:
        verdict = self.judge(trials=trials(92_000, 100_000, 108_000))
        assert (verdict.outcome, verdict.value) == (Outcome.FAIL, 100_000)

    def test_many_trials_with_a_large_spread_are_judged_by_their_interval(self) -> None:
        many = [285_000, 306_000, *range(296_000, 304_000, 1_000), 292_000, 308_000]
        verdict = self.judge(trials=trials(*many))
        assert (verdict.outcome, verdict.value) == (Outcome.PASS, 299_500)

    def test_the_interval_of_many_trials_must_be_short(self) -> None:
        verdict = self.judge(trials=trials(*range(285_000, 315_001, 2_000)))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "interval is 6.0% wide" in verdict.text

    @pytest.mark.parametrize(
        ("capacities", "outcome"),
        [
            ((226_000, 240_000, 246_900), Outcome.INCONCLUSIVE),  # 20 900 apart, the bound 40 100 away
            ((226_000, 240_000, 246_300), Outcome.FAIL),
        ],
    )
    def test_a_bound_is_near_within_twice_the_spread(self, capacities: tuple, outcome: Outcome) -> None:
        low = a_lab([expectation(virtual={"raw-drop": [287_000, 309_000]})])
        assert one(judged(low, measured(low, "raw-drop", *capacities))).outcome is outcome

    def test_a_large_spread_passes_an_open_range_that_begins_far_below(self) -> None:
        open_above = a_lab([expectation(virtual={"raw-drop": [200_000, float("inf")]})])
        verdict = one(judged(open_above, measured(open_above, "raw-drop", 285_000, 300_000, 305_000)))
        assert verdict.outcome is Outcome.PASS

    def test_an_unsaturated_dut_decides_nothing_however_far_the_bound(self) -> None:
        assert self.judge(trials=trials(100_000, busy_share=0.7)).outcome is Outcome.INCONCLUSIVE

    def test_a_known_problem_is_inconclusive_even_outside_the_range(self) -> None:
        verdict = self.judge(trials=trials(1_000), problems=["the generator died"])
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.text == "the generator died"

    def test_no_trial_at_all_is_inconclusive(self) -> None:
        assert self.judge(trials=[]).outcome is Outcome.INCONCLUSIVE

    def test_a_dut_that_was_never_busy_is_inconclusive(self) -> None:
        verdict = self.judge(trials=[Trial(duration_s=0.25, busy_s=0, processed=0)])
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "not saturated" in verdict.text


class TestRatio:
    LAB = a_lab([RATIO])

    def base(self, *capacities: float, **fields: object) -> Measured:
        return measured(self.LAB, "raw-drop", *(capacities or (BASELINE_PPS,)), **fields)

    def test_the_base_is_of_the_same_session(self) -> None:
        verdict = one(judged(self.LAB, self.base(), measured(self.LAB, "set-1000", 273_000)))
        assert verdict.outcome is Outcome.PASS
        assert verdict.value == pytest.approx(0.91)
        assert verdict.relative_to == "raw-drop"

    def test_holds_on_a_host_twice_as_fast(self) -> None:
        fast = measured(self.LAB, "set-1000", *[546_000] * 6)
        verdict = one(judged(self.LAB, self.base(*[600_000] * 6), fast, testbed=real()))
        assert verdict.outcome is Outcome.PASS

    def test_outside_fails(self) -> None:
        verdict = one(judged(self.LAB, self.base(), measured(self.LAB, "set-1000", 297_000)))
        assert verdict.outcome is Outcome.FAIL

    def test_without_its_base_is_not_judged(self) -> None:
        assert judged(self.LAB, measured(self.LAB, "set-1000", 273_000)) == []

    def test_a_doubtful_base_is_named(self) -> None:
        base = self.base(problems=["the generator fell short"])
        verdict = one(judged(self.LAB, base, measured(self.LAB, "set-1000", 273_000)))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.text == "raw-drop: the generator fell short"

    def test_a_base_of_zero_has_no_ratio(self) -> None:
        verdict = one(judged(self.LAB, self.base(0.0), measured(self.LAB, "set-1000", 273_000)))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "raw-drop: capacity is zero" in verdict.text


class TestRealTestbed:
    LAB = a_lab([ABSOLUTE, {**HOSTS, "id": "hosts"}])

    def judge(self, accelerator: str, host_class: str | None, pps: float) -> list[Verdict]:
        known = a_run([]).host.model_dump()
        host = HostFacts(**{**known, "host_class": host_class})
        case = measured(self.LAB, "raw-drop", trials=trials(*[pps] * 6, scale=1))
        return judge_cases(self.LAB, a_run([case], testbed=real(accelerator), host=host), METRICS)

    def test_with_kvm_its_host_class_is_the_range(self) -> None:
        verdict = one(self.judge("kvm", "made-up-host", 1_000_000))
        assert (verdict.check, verdict.outcome) == ("hosts", Outcome.PASS)

    def test_with_kvm_a_slow_host_of_the_class_fails(self) -> None:
        assert one(self.judge("kvm", "made-up-host", 500_000)).outcome is Outcome.FAIL

    @pytest.mark.parametrize("host_class", [None, "another-host"])
    def test_with_kvm_an_unknown_host_is_not_judged_absolutely(self, host_class: str | None) -> None:
        assert self.judge("kvm", host_class, 1_000_000) == []

    def test_without_kvm_nothing_is_judged_absolutely(self) -> None:
        assert self.judge("tcg", "made-up-host", 1_000_000) == []

    def test_an_absolute_check_of_an_exercise_needs_the_virtual_testbed(self) -> None:
        verdict = one(attempted(attempt(trials=trials(250_000, scale=1)), check(), testbed=real()))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "virtual testbed only" in verdict.text


class TestExercise:
    BLOCKED = check(metric="delivered", between=[0, 0], **{"class": "attacker"})
    UNTOUCHED = check(metric="delivered", between=[0.9995, 1.0005], **{"class": "others"})
    RELATIVE = check(between=[0.8, 1.0], ratio_to="raw-drop")

    def test_reaches_its_capacity(self) -> None:
        assert one(attempted(attempt(200_000), check())).outcome is Outcome.PASS

    def test_misses_its_capacity(self) -> None:
        assert one(attempted(attempt(199_999), check())).outcome is Outcome.FAIL

    def test_nothing_arrives(self) -> None:
        verdict = one(attempted(attempt(250_000), self.BLOCKED))
        assert (verdict.outcome, verdict.value, verdict.check) == (Outcome.PASS, 0.0, "delivered-attacker")

    def test_one_packet_too_many_arrives(self) -> None:
        assert one(attempted(attempt(250_000, arrived=1), self.BLOCKED)).outcome is Outcome.FAIL

    def test_legitimate_traffic_is_untouched(self) -> None:
        assert one(attempted(attempt(250_000), self.UNTOUCHED)).outcome is Outcome.PASS

    def test_noise_in_the_capacity_does_not_affect_delivery(self) -> None:
        noisy = attempt(200_000, 250_000)
        outcomes = [v.outcome for v in attempted(noisy, check(), self.BLOCKED)]
        assert outcomes == [Outcome.INCONCLUSIVE, Outcome.PASS]

    def test_a_dut_that_cannot_be_saturated_leaves_delivery_judged(self) -> None:
        idle = attempt(trials=[], unsaturated=["DUT not saturated: 0 of 6 valid trials"])
        capacity, blocked = attempted(idle, check(), self.BLOCKED)
        assert (capacity.outcome, blocked.outcome) == (Outcome.INCONCLUSIVE, Outcome.PASS)
        assert capacity.text == "DUT not saturated: 0 of 6 valid trials"

    def test_nor_does_that_excuse_what_arrives(self) -> None:
        idle = attempt(trials=[], arrived=1, unsaturated=["DUT not saturated: 0 of 6 valid trials"])
        assert one(attempted(idle, self.BLOCKED)).outcome is Outcome.FAIL

    def test_a_refused_ruleset_fails_with_the_tools_message(self) -> None:
        refused = attempt(trials=[], deliveries=[], refused="iptables-restore: line 3 failed")
        verdicts = attempted(refused, check(), self.BLOCKED)
        assert [v.outcome for v in verdicts] == [Outcome.FAIL] * 2
        assert all(v.text == "not loaded: iptables-restore: line 3 failed" for v in verdicts)

    def test_a_refused_ruleset_fails_even_if_its_base_is_in_doubt(self) -> None:
        refused = attempt(trials=[], refused="no")
        base = measured(a_lab(), "raw-drop", BASELINE_PPS, problems=["a node died"])
        assert one(attempted(refused, self.RELATIVE, cases=[base])).outcome is Outcome.FAIL

    def test_a_refused_ruleset_fails_even_without_its_base(self) -> None:
        refused = attempt(trials=[], refused="no")
        assert one(attempted(refused, self.RELATIVE)).outcome is Outcome.FAIL

    def test_a_missing_base_is_inconclusive(self) -> None:
        verdict = one(attempted(attempt(250_000), self.RELATIVE))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.text == "case raw-drop was not measured beside it"

    def test_a_ratio_to_its_base(self) -> None:
        base = measured(a_lab(), "raw-drop", BASELINE_PPS)
        verdict = one(attempted(attempt(240_000), self.RELATIVE, cases=[base]))
        assert (verdict.outcome, verdict.value) == (Outcome.PASS, pytest.approx(0.8))

    def test_what_was_never_counted_is_inconclusive(self) -> None:
        verdict = one(attempted(attempt(250_000, deliveries=[]), self.BLOCKED))
        assert (verdict.outcome, verdict.text) == (Outcome.INCONCLUSIVE, "delivered was not measured")


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


def test_an_old_run_can_be_judged_again() -> None:
    lab = a_lab([ABSOLUTE])
    run = a_run([measured(lab, "raw-drop", 300_000)], testbed=testbed())
    again = Run.model_validate_json(run.model_dump_json())
    assert judge_cases(lab, again, METRICS) == judge_cases(lab, run, METRICS)
    assert len(judge_cases(lab, again, METRICS)) == 1
