# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts as pytest's outcomes, in JUnit and in the exit code: inconclusive is skipped with its reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.grading.checks import require
from fwlab.grading.lab_rulesets import Made
from fwlab.grading.outcomes import PASSED, failure_result, refusal_result, verdict_result
from fwlab.grading.record import CheckMark, WorkMark, marks_of
from fwlab.judge.checks import judge_exercise
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile
from fwlab.model.verdict import TEST, Outcome, Verdict
from tests.fakes import factories
from tests.fakes.fake_grading import FakeGrading

LAB = factories.a_lab()
RUN = factories.a_run([])


def test_what_a_student_wrote_is_shown_escaped() -> None:
    """The name of a set may turn the rest of a line around."""
    with pytest.raises(pytest.fail.Exception) as failure:
        require((Outcome.FAIL, "a.ipset: loaded, but the DUT does not hold: the set \u202egnp\x1b[2J\nnext"))
    assert failure.value.msg == "a.ipset: loaded, but the DUT does not hold: the set \\u202egnp\\x1b[2J\nnext"


def verdicts(measured: Measured) -> list[Verdict]:
    return judge_exercise(LAB.exercises[0], measured, RUN, METRICS)


# ---- rulesets that must fail -----------------------------------------------------------------------------------

SLOW = factories.attempt(150_000, 150_000)
LEAKS = factories.attempt(250_000, 250_000, arrived=900)
BOTH = factories.attempt(150_000, 150_000, arrived=900)
GOOD = factories.attempt(250_000, 250_000)
REFUSED = factories.attempt(refused="rules.nft: nft said: syntax error")
UNCLEAR = factories.attempt(250_000, 250_000, problems=["the DUT was not saturated"])


def said_of(measured: Measured, *wanted: str, may: str = "") -> str | None:
    """The failure; "inconclusive: ..." if inconclusive; None if all is as expected."""
    checks = frozenset(wanted) if wanted else None
    result = failure_result("wrong-x/ex1", verdicts(measured), measured.refused, checks, frozenset(may.split()))
    if result == PASSED:
        return None
    outcome, reason = result
    return f"inconclusive: {reason}" if outcome is Outcome.INCONCLUSIVE else reason.splitlines()[0]


@pytest.mark.parametrize("measured", [SLOW, LEAKS, BOTH, REFUSED])
def test_a_mistake_may_fail_by_any_check(measured: Measured) -> None:
    assert said_of(measured) is None


def test_a_mistake_that_passes_fails_the_lab() -> None:
    assert said_of(GOOD) == "wrong-x/ex1 passes every check"


@pytest.mark.parametrize(
    ("measured", "wanted"),
    [
        (SLOW, ["capacity"]),
        (LEAKS, ["delivered-attacker"]),
        (BOTH, ["capacity", "delivered-attacker"]),
        (REFUSED, ["refused"]),
    ],
)
def test_a_wrong_variant_fails_by_the_named_checks(measured: Measured, wanted: list[str]) -> None:
    assert said_of(measured, *wanted) is None


def test_a_wrong_variant_may_fail_further_checks_by_chance() -> None:
    assert said_of(SLOW, "capacity", may="delivered-attacker") is None
    assert said_of(BOTH, "capacity", may="delivered-attacker") is None
    assert said_of(LEAKS, "capacity", may="delivered-attacker") is not None
    assert said_of(GOOD, "capacity", may="delivered-attacker") is not None


@pytest.mark.parametrize(
    ("measured", "wanted", "by"),
    [
        (GOOD, ["capacity"], "no check"),
        (BOTH, ["capacity"], "capacity, delivered-attacker"),
        (SLOW, ["delivered-attacker"], "capacity"),
        (SLOW, ["capacity", "delivered-attacker"], "capacity"),
        (REFUSED, ["capacity", "delivered-attacker"], "refused"),
        (SLOW, ["refused"], "capacity"),
        (GOOD, ["refused"], "no check"),
    ],
)
def test_a_wrong_variant_that_fails_other_checks_is_reported(measured: Measured, wanted: list[str], by: str) -> None:
    assert said_of(measured, *wanted) == f"wrong-x/ex1 fails by {by}, and should fail by {', '.join(sorted(wanted))}"


@pytest.mark.parametrize("wanted", [[], ["capacity"], ["refused"]])
def test_a_wrong_variant_without_a_result_is_inconclusive(wanted: list[str]) -> None:
    assert all(verdict.outcome is Outcome.INCONCLUSIVE for verdict in verdicts(UNCLEAR))
    assert said_of(UNCLEAR, *wanted).startswith("inconclusive: capacity: the DUT was not saturated")


# ---- pytest, JUnit, exit code ----------------------------------------------------------------------------------

NAMES = {"pass": "ann", "leaks": "bob", "idle": "cid", "dies": "dan"}


@pytest.mark.parametrize(
    ("class_", "code", "tags"),
    [
        (["pass"], 0, {"ann": None}),
        (["pass", "idle"], 3, {"ann": None, "cid": "skipped"}),
        (["pass", "leaks", "idle"], 1, {"ann": None, "bob": "failure", "cid": "skipped"}),
    ],
)
def test_inconclusive_is_skipped_with_its_reason(grading: FakeGrading, class_: list, code: int, tags: dict) -> None:
    for word in class_:
        grading.hand_in(NAMES[word], "rules.iptables", f"# on the DUT: {word}\n*raw\nCOMMIT\n")
    done = grading.run()
    assert done.returncode == code, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    checks = {name: case for name, case in grading.junit().items() if name.startswith("test_check")}
    test = "test_check[lab98-trouble-{}/ex1-block-delivered-attacker]".format
    assert {name: case.tag if case is not None else None for name, case in checks.items()} == {
        test(who): tag for who, tag in tags.items()
    }
    if "idle" in class_:
        reason = f"inconclusive: {test('cid')}: delivered-attacker: the DUT was not saturated"
        assert checks[test("cid")].get("message") == reason
        assert reason in done.stdout
    if "leaks" in class_:
        assert checks[test("bob")].get("message").startswith("Failed: Not blocked.")


def test_a_lost_dut_does_not_fail_later_submissions(grading: FakeGrading) -> None:
    for who, word in (("ann", "pass"), ("dan", "dies"), ("eve", "pass")):
        grading.hand_in(who, "rules.iptables", f"# on the DUT: {word}\n*raw\nCOMMIT\n")
    assert grading.run().returncode == 3
    tags = {name: case.tag for name, case in grading.junit().items() if case is not None}
    assert set(tags.values()) == {"skipped"}
    assert not [name for name in tags if "ann" in name]
    assert {row["who"]: row["verdict"] for row in grading.marks()} == {
        "ann": "pass",
        "dan": "inconclusive",
        "eve": "inconclusive",
    }


def test_what_is_made_to_fail_must_be_loaded() -> None:
    made = Made(file=RulesetFile("all.nft", "nft", "add table ip all"))
    marks = marks_of(verdicts(REFUSED))
    mark = WorkMark(student="drop-all", exercise="ex1", content="", checks=marks, measured=REFUSED)
    work: Any = SimpleNamespace(name="drop-all/ex1", made=made, fails=None, may=frozenset())
    outcome, reason = refusal_result(work, mark)
    assert outcome is Outcome.FAIL
    assert "was not loaded, so it shows nothing: rules.nft" in reason
    work.made = None
    assert refusal_result(work, mark) == PASSED  # a mistake may fail because it is refused


def test_a_failed_test_of_a_lab_is_a_result() -> None:
    mark = CheckMark(check="lab/test_mine.py::test_it", metric=TEST, outcome=Outcome.FAIL, text="assert 0")
    assert verdict_result(mark) == (Outcome.FAIL, "lab/test_mine.py::test_it: assert 0")
