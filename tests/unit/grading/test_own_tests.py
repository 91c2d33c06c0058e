# SPDX-License-Identifier: GPL-2.0-or-later
"""An instructor's tests, and a lab's own, run with a grading: on the machines, and for each submission."""

from __future__ import annotations

import pytest

from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading

MINE = """
import pytest

def test_the_lab(lab, run):
    assert lab.id == run.lab == "lab98-trouble"

def test_machines_fail():
    assert 1 == 2, "these machines are odd"

@pytest.mark.parametrize("word", ["DROP", "never"])
def test_says(ruleset, word):
    assert word in ruleset["rules.iptables"], f"{word} is missing"

class TestIdea:
    def test_nothing_arrives(self, submission, delivered, record, capacity):
        if submission.student == "cid":
            pytest.skip("cid is exempt")
        assert delivered("attacker") == 0, "the attacker gets through"
        assert capacity() > 1000
        assert record.id == submission.exercise
"""


@pytest.fixture
def grading(grading: FakeGrading) -> FakeGrading:
    (grading.top / "mine").mkdir()
    (grading.top / "mine" / "test_mine.py").write_text(MINE)
    grading.hand_in_all(ann="fine", bob="leaks", cid="fine")
    return grading


def outcomes(grading: FakeGrading, part: str) -> dict[str, str]:
    found = {str(name): element for name, element in grading.junit().items() if part in str(name)}
    return {name: "pass" if element is None else element.tag for name, element in found.items()}


def test_an_instructors_tests_are_checks_of_the_mark(grading: FakeGrading) -> None:
    done = grading.run(str(grading.top / "mine" / "test_mine.py"))
    assert done.returncode == 1
    assert outcomes(grading, "test_the_lab") == {"test_the_lab": "pass"}
    assert outcomes(grading, "machines_fail") == {"test_machines_fail": "failure"}
    assert outcomes(grading, "test_says[DROP-") == dict.fromkeys(
        [f"test_says[DROP-{who}/{EXERCISE}]" for who in ("ann", "bob", "cid")], "pass"
    )
    assert set(outcomes(grading, "test_says[never-").values()) == {"failure"}
    assert outcomes(grading, "nothing_arrives") == {
        f"test_nothing_arrives[ann/{EXERCISE}]": "pass",
        f"test_nothing_arrives[bob/{EXERCISE}]": "failure",
        f"test_nothing_arrives[cid/{EXERCISE}]": "skipped",
    }
    assert "these machines are odd" in done.stdout
    reasons = {row["who"]: row["reason"] for row in grading.marks()}
    assert reasons["ann"].startswith("AssertionError: never is missing")
    assert reasons["bob"] == "Not blocked.", "the lab's own checks come first"
    assert {row["who"]: row["checks"] for row in grading.marks()} == {"ann": "4", "bob": "4", "cid": "3"}


def test_a_labs_own_tests_run_with_every_grading(grading: FakeGrading) -> None:
    tests = grading.top / "labs" / LAB / "tests"
    tests.mkdir()
    (tests / "test_idea.py").write_text("def test_idea(ruleset):\n    assert 'DROP' in ruleset['rules.iptables']\n")
    assert grading.run("-k", "ann").returncode == 0
    assert outcomes(grading, "test_idea") == {f"test_idea[ann/{EXERCISE}]": "pass"}
    assert [row["checks"] for row in grading.marks()] == ["2"]


def test_labs_may_call_their_tests_alike(grading: FakeGrading) -> None:
    for lab in (LAB, "lab97-other"):
        folder = grading.top / "labs" / lab if lab == LAB else grading.add_lab(lab)
        (folder / "tests").mkdir()
        (folder / "tests" / "test_machines.py").write_text(f"def test_it(lab):\n    assert lab.id == '{lab}'\n")
    done = grading.call("--lab", LAB, "--lab", "lab97-other", "-k", "test_it or forwards")
    assert done.returncode == 0, done.stdout
    assert list(outcomes(grading, "test_it").values()) == ["pass"]  # of both, by one name
    assert "4 passed" in done.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import nothing_of_the_kind\n", "the tests did not run: "),
        ("import pytest\n@pytest.mark.measures('none')\ndef test_a(): ...\n", "the tests measure none, which is no"),
    ],
)
def test_tests_that_cannot_run_grade_nobody(grading: FakeGrading, text: str, reason: str) -> None:
    """Where pytest itself does not see it first, as in `fwlab grade`."""
    (grading.top / "mine" / "test_mine.py").write_text(text)
    done = grading.run("--fwlab-tests", str(grading.top / "mine"), "--continue-on-collection-errors")
    assert done.returncode in (1, 3)
    assert {row["verdict"] for row in grading.marks()} == {"inconclusive"}
    assert reason in grading.marks()[0]["reason"]


def test_a_path_without_tests(grading: FakeGrading) -> None:
    done = grading.run("--fwlab-tests", "nowhere.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "nowhere.py: not a file of tests" in done.stderr
