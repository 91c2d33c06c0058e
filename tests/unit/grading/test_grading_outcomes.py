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


@pytest.mark.parametrize(
    ("measured", "wanted", "may", "by"),
    [
        *((measured, [], "", None) for measured in (SLOW, LEAKS, BOTH, REFUSED)),  # a mistake may fail by any check
        (SLOW, ["capacity"], "", None),
        (LEAKS, ["delivered-attacker"], "", None),
        (BOTH, ["capacity", "delivered-attacker"], "", None),
        (REFUSED, ["refused"], "", None),
        (SLOW, ["capacity"], "delivered-attacker", None),
        (BOTH, ["capacity"], "delivered-attacker", None),
        (LEAKS, ["capacity"], "delivered-attacker", "delivered-attacker"),
        (GOOD, ["capacity"], "delivered-attacker", "no check"),
        (GOOD, ["capacity"], "", "no check"),
        (BOTH, ["capacity"], "", "capacity, delivered-attacker"),
        (SLOW, ["delivered-attacker"], "", "capacity"),
        (SLOW, ["capacity", "delivered-attacker"], "", "capacity"),
        (REFUSED, ["capacity", "delivered-attacker"], "", "refused"),
        (SLOW, ["refused"], "", "capacity"),
        (GOOD, ["refused"], "", "no check"),
    ],
)
def test_what_must_fail_fails_by_the_named_checks(
    measured: Measured, wanted: list[str], may: str, by: str | None
) -> None:
    fault = by and f"wrong-x/ex1 fails by {by}, and should fail by {', '.join(wanted)}"
    assert said_of(measured, *wanted, may=may) == fault


def test_a_mistake_that_passes_fails_the_lab() -> None:
    assert said_of(GOOD) == "wrong-x/ex1 passes every check"


@pytest.mark.parametrize("wanted", [[], ["capacity"], ["refused"]])
def test_a_wrong_variant_without_a_result_is_inconclusive(wanted: list[str]) -> None:
    assert said_of(UNCLEAR, *wanted).startswith("inconclusive: capacity: the DUT was not saturated")


# ---- pytest, JUnit, exit code ----------------------------------------------------------------------------------


def test_inconclusive_is_skipped_with_its_reason(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="leaks", cid="idle")
    done = grading.run()
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    test = "test_check[lab98-trouble-{}/ex1-block-delivered-attacker]".format
    ann, bob, cid = (grading.junit()[test(who)] for who in ("ann", "bob", "cid"))
    assert (ann, bob.tag, cid.tag) == (None, "failure", "skipped")
    assert bob.get("message").startswith("Failed: Not blocked.")
    reason = f"inconclusive: {test('cid')}: delivered-attacker: the DUT was not saturated"
    assert cid.get("message") == reason
    assert reason in done.stdout
    for who, code in {"ann": 0, "cid": 3}.items():
        assert grading.run("-k", who).returncode == code


def test_a_lost_dut_does_not_fail_later_submissions(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="pass", dan="dies", eve="pass")
    assert grading.run().returncode == 3
    tags = {name: case.tag for name, case in grading.junit().items() if case is not None}
    assert set(tags.values()) == {"skipped"}
    assert not [name for name in tags if "ann" in name]
    assert grading.verdicts() == {"ann": "pass", "dan": "inconclusive", "eve": "inconclusive"}


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
