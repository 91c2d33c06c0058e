# SPDX-License-Identifier: GPL-2.0-or-later
"""Every measured lab on the real machines: its quick cases hold, references pass, mistakes and starts fail.

One set of machines serves all labs, as an instructor's would. Of each lab's exercises every third is graded, from the
first on, so that this ends in CI's time; `make labs` grades all.
"""

from __future__ import annotations

import csv
import io

import pytest
import yaml

from fwlab.outside.project import is_measured, lab_ids

from .conftest import LAB, PROJECT, ROOT, Checkout

pytestmark = pytest.mark.live

LABS = [name for name in lab_ids(PROJECT) if is_measured(PROJECT, name)]


@pytest.mark.parametrize("name", LABS)
def test_a_lab_grades_itself(lab: Checkout, name: str) -> None:
    declared = [e["id"] for e in yaml.safe_load((ROOT / "labs" / name / "lab.yml").read_text())["exercises"]]
    chosen = declared[::3]
    left_out = " and ".join(f"not {exercise}" for exercise in declared if exercise not in chosen)
    done = lab.pytest("--testinfra", "--lab", name, "--machines", LAB, "-q", "-k", left_out)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    marks = list(csv.DictReader(io.StringIO((lab.top / "reports" / name / "grading" / "marks.csv").read_text())))
    verdicts = {(row["who"], row["exercise"]): row["verdict"] for row in marks}
    wanted = {"start": "fail", "reference": "pass", "mistake": "fail"}
    assert verdicts == {(who, exercise): wanted[who] for who in wanted for exercise in chosen}
