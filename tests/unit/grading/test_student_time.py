# SPDX-License-Identifier: GPL-2.0-or-later
"""A student's rulesets that keep themselves from being measured share a limit of time; after it the rest fails."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fwlab.grading import grader
from fwlab.judge.verdicts import BLAME
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading
from tests.fakes.hand_ins import RULES


@pytest.fixture
def grading(tmp_path: Path) -> FakeGrading:
    """A lab with a second exercise, and a class of two who handed in both."""
    made = FakeGrading(tmp_path)
    path = made.top / "labs" / LAB / "lab.yml"
    before, exercise, after = re.split("(?=  - id: ex1-block|expectations:)", path.read_text())
    path.write_text(before + exercise + exercise.replace(EXERCISE, "ex2-again") + after)
    for who in ("ann", "bob"):
        folder = made.hand_in(who, "rules.iptables", RULES).parent
        shutil.copytree(folder, folder.with_name("ex2-again"))
    return made


def test_the_rest_fails_once_the_time_is_over(grading: FakeGrading, monkeypatch: pytest.MonkeyPatch) -> None:
    assert grading.run().returncode == 0
    assert {row["verdict"] for row in grading.marks()} == {"pass"}, "there is time for all"
    monkeypatch.setattr(grader, "STUDENT_S", 0.0)
    grading.hand_in("ann", "rules.iptables", RULES + "# on the DUT: hides\n")
    done = grading.run("-s")
    assert re.findall(r"measured: \S*/(\w+/[\w-]+):", done.stdout) == [
        f"ann/{EXERCISE}", f"bob/{EXERCISE}", "bob/ex2-again"
    ]  # fmt: skip
    rows = {f"{row['who']}/{row['exercise']}": (row["verdict"], row["reason"]) for row in grading.marks()}
    assert rows[f"ann/{EXERCISE}"] == ("fail", BLAME.format("the DUT was not saturated"))
    reason = "exercises of ann that could not be measured took more than 0 minutes, and no student has more"
    assert rows["ann/ex2-again"] == ("fail", f"not loaded: {reason}")
    assert {rows["bob/ex2-again"], rows[f"bob/{EXERCISE}"]} == {("pass", "")}
    monkeypatch.undo()
    assert "measured:" not in grading.run("-s", "--resume").stdout
