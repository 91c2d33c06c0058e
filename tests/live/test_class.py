# SPDX-License-Identifier: GPL-2.0-or-later
"""A hostile submission does not change other students' marks: correct and hostile submissions alternate."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

from .conftest import LAB, Checkout
from .submissions import HOSTILE, HOSTILE_SETTINGS, ONE

pytestmark = pytest.mark.live
#: An exercise of lab02 that accepts sysctl files.
SETTINGS_LAB, SETTINGS_EXERCISE = "lab02-conntrack", "ex7-ten-rules"


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def graded(lab: Checkout, name: str, exercise: str, folder: Path) -> dict[str, str]:
    words = ["--testinfra", "--lab", name, "--machines", LAB, "--submissions", str(folder), "-q", "-k", exercise]
    done = lab.pytest(*words)
    assert done.returncode == 1, done.stdout[-6000:] + done.stderr[-2000:]
    marks = csv.DictReader(io.StringIO((lab.top / "reports" / name / "grading" / "marks.csv").read_text()))
    return {row["who"]: row["verdict"] for row in marks}


def check_alternating(lab: Checkout, top: Path, name: str, exercise: str, hostile: dict[str, dict[str, str]]) -> None:
    """Grade a reference before each hostile submission and after the last."""
    reference = lab.top / "labs" / name / "rulesets" / exercise / "reference"
    for number, (what, files) in enumerate(hostile.items()):
        shutil.copytree(reference, top / f"s{number:02}-a-good" / exercise)
        write(top / f"s{number:02}-b-{what}" / exercise, files)
    shutil.copytree(reference, top / "s99-good" / exercise)
    verdicts = graded(lab, name, exercise, top)
    assert {who for who, verdict in verdicts.items() if who.endswith("good") and verdict != "pass"} == set()
    assert {who for who, verdict in verdicts.items() if "-b-" in who and verdict == "pass"} == set()
    assert len(verdicts) == 2 * len(hostile) + 1


def test_hostile_submissions_harm_only_themselves(lab: Checkout, tmp_path: Path) -> None:
    check_alternating(lab, tmp_path, LAB, ONE, {name: files for name, (_, files) in HOSTILE.items()})


def test_settings_that_cannot_be_restored_harm_only_themselves(lab: Checkout, tmp_path: Path) -> None:
    check_alternating(lab, tmp_path, SETTINGS_LAB, SETTINGS_EXERCISE, HOSTILE_SETTINGS)
