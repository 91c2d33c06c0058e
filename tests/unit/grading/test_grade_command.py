# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab grade` on fake machines (fake_class.py): what it prints, its exit code, and that it goes on."""

from __future__ import annotations

import json

import pytest

from fwlab.grading.wording import NOT_YET
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading
from tests.fakes.hand_ins import RULES


def test_a_line_for_each_submission_then_the_marks(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="leaks", cid="idle")
    (grading.folder / "dan").mkdir()
    done = grading.fwlab("grade", LAB, "--submissions", str(grading.folder))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert "1 of 4 need no machine: nothing was handed in, or it is no ruleset" in lines
    assert f"ann/{EXERCISE}: pass" in lines
    assert f"bob/{EXERCISE}: fail: Not blocked." in lines
    assert f"cid/{EXERCISE}: inconclusive: the DUT was not saturated" in lines
    assert (grading.results / "marks.csv").read_text() in done.stdout
    assert f"written: {grading.results / 'marks.csv'} and {grading.results / 'class.html'}" in done.stdout


def test_marks_for_a_program(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="leaks")
    done = grading.fwlab("grade", LAB, "--submissions", str(grading.folder), "--traffic-seed", "7", "--json")
    found = json.loads(done.stdout[done.stdout.index("{\n") :])  # behind what the fake machines say
    assert (done.returncode, found["lab"], found["seed"], found["left"]) == (1, LAB, 7, 0)
    assert found["written"] == str(grading.results / "marks.csv")
    outcomes = {one["student"]: (one["exercise"], one["outcome"], one["reason"]) for one in found["works"]}
    assert outcomes == {"ann": (EXERCISE, "pass", ""), "bob": (EXERCISE, "fail", "Not blocked.")}
    assert {check["outcome"] for check in found["works"][0]["checks"]} == {"pass"}
    again = grading.fwlab("verify", str(grading.results), "--json")
    assert json.loads(again.stdout) == {"judged": 2, "changes": [], "marks": [], "faults": []}
    assert again.returncode == 0


def test_it_goes_on_after_an_interruption(grading: FakeGrading) -> None:
    grading.folder = grading.folder.with_name("a class: Übung [1] 100%")  # a folder may have any name
    grading.hand_in_all(ann="leaks", bob="stops", cid="fine")
    stopped = grading.fwlab("grade", LAB, "--submissions", str(grading.folder))
    assert stopped.returncode == 130
    assert "next: the same command with --resume grades the rest" in stopped.stdout
    assert grading.verdicts() == {"ann": "fail", "bob": NOT_YET, "cid": NOT_YET}
    grading.hand_in_all(bob="fine")
    done = grading.fwlab("grade", LAB, "--submissions", str(grading.folder), "--resume")
    assert grading.verdicts() == {"ann": "fail", "bob": "pass", "cid": "pass"}
    assert "1 rulesets were graded before" in done.stderr
    assert done.returncode == 1, "what was decided before counts, too"


def test_what_must_fail_is_said_to_fail(grading: FakeGrading) -> None:
    rulesets = grading.top / "labs" / LAB / "rulesets" / EXERCISE
    for part, word in {"start": "leaks", "reference": "fine", "mistake": "fine"}.items():
        (rulesets / part).mkdir(parents=True)
        (rulesets / part / "rules.iptables").write_text(f"# on the DUT: {word}\n{RULES}")
    done = grading.fwlab("grade", LAB, "--part", "start", "--part", "reference", "--part", "mistake")
    assert done.returncode == 1
    assert f"start/{EXERCISE}: fails, as it must" in done.stderr
    assert f"reference/{EXERCISE}: pass" in done.stderr
    assert f"mistake/{EXERCISE}: fail: mistake/{EXERCISE} passes every check" in done.stderr


def test_dask_does_not_warn_of_long_files(grading: FakeGrading, recwarn: pytest.WarningsRecorder) -> None:
    grading.hand_in("ada", "rules.iptables", 110_000 * f"# {100 * 'a'}\n" + RULES)
    grading.fwlab("grade", LAB, "--submissions", str(grading.folder))
    assert grading.verdicts() == {"ada": "pass"}
    assert not [str(warning.message) for warning in recwarn if "graph" in str(warning.message)]
