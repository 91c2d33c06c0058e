# SPDX-License-Identifier: GPL-2.0-or-later
"""A class of five is graded, interrupted and continued; a hostile submission does not change other students' marks.

For the latter, correct submissions are graded between hostile ones. They are handed in as a folder, a .zip and a
.tar.gz in turn, and one archive is damaged.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from .class_of_five import DORA, hand_in, make
from .conftest import LAB, Checkout
from .interrupted import grade_in_two_parts, verdicts
from .submissions import HOSTILE, HOSTILE_SETTINGS, ONE

pytestmark = pytest.mark.live
#: An exercise of lab02 that accepts sysctl files.
SETTINGS_LAB, SETTINGS_EXERCISE = "lab02-conntrack", "ex7-ten-rules"


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def graded(lab: Checkout, name: str, exercise: str, folder: Path) -> dict[str, str]:
    """Verdicts by submission. If a correct one is inconclusive, the host was too busy, and the grading is continued."""
    verdicts = _graded(lab, name, exercise, folder)
    if "inconclusive" in [verdict for who, verdict in verdicts.items() if who.endswith("good")]:
        verdicts = _graded(lab, name, exercise, folder, "--resume")
    return verdicts


def _graded(lab: Checkout, name: str, exercise: str, folder: Path, *further: str) -> dict[str, str]:
    words = [
        "--testinfra",
        "--lab",
        name,
        "--machines",
        LAB,
        "--submissions",
        str(folder),
        "-q",
        "-k",
        exercise,
        *further,
    ]
    done = lab.pytest(*words)
    assert done.returncode == 1, done.stdout[-6000:] + done.stderr[-2000:]
    marks = csv.DictReader(io.StringIO((lab.top / "reports" / name / "grading" / "marks.csv").read_text()))
    print(done.stdout[-6000:])  # pytest shows it if an assertion fails
    return {row["who"]: row["verdict"] for row in marks}


def check_alternating(lab: Checkout, top: Path, name: str, exercise: str, hostile: dict[str, dict[str, str]]) -> None:
    """Grade a reference before every second hostile submission and after the last: harm that lasts would reach it."""
    reference = lab.top / "labs" / name / "rulesets" / exercise / "reference"
    good = {f"{exercise}/{path.name}": path.read_text() for path in reference.iterdir()}
    for number, (what, files) in enumerate(hostile.items()):
        if number % 2 == 0:
            hand_in(top, f"s{number:02}-a-good", ("folder", "zip", "tar.gz")[number // 2 % 3], good)
        write(top / f"s{number:02}-b-{what}" / exercise, files)
    (top / "s98-b-damaged.zip").write_bytes(b"PK\3\4 and nothing else")
    hand_in(top, "s99-good", "moodle", good)
    verdicts = graded(lab, name, exercise, top)
    assert {who for who, verdict in verdicts.items() if who.endswith("good") and verdict != "pass"} == set()
    assert {who for who, verdict in verdicts.items() if "-b-" in who and verdict == "pass"} == set()
    assert len(verdicts) == len(hostile) + (len(hostile) + 1) // 2 + 2


#: They ended the DUT and the grading itself. The others are graded by `make test-all`.
WORST = ("jump-bomb", "no-text")


@pytest.mark.parametrize("worst", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_hostile_submissions_harm_only_themselves(lab: Checkout, tmp_path: Path, worst: bool) -> None:
    chosen = {name: files for name, (_, files) in HOSTILE.items() if (name in WORST) == worst}
    check_alternating(lab, tmp_path, LAB, ONE, chosen)


@pytest.mark.thorough
def test_settings_that_cannot_be_restored_harm_only_themselves(lab: Checkout, tmp_path: Path) -> None:
    check_alternating(lab, tmp_path, SETTINGS_LAB, SETTINGS_EXERCISE, HOSTILE_SETTINGS)


def test_a_class_of_five_is_interrupted_and_continued(lab: Checkout, tmp_path: Path) -> None:
    expected = make(tmp_path, (ONE,))
    results = tmp_path / "results"
    course = tmp_path / "course.yml"
    course.write_text("points: 10\nlabs: { lab03-ipset: { exercises: { ex1-one-host: 3 } } }\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--testinfra", "--lab", LAB]
    command += ["--machines", LAB, f"--submissions={tmp_path / 'class'}", f"--results={results}", f"--course={course}"]
    parts = grade_in_two_parts(command, results / "marks.csv", 2, cwd=lab.top, env=lab.environment)
    assert parts.was_interrupted
    found = verdicts(results / "marks.csv")
    assert {work: found[work] for work in expected} == expected
    kept = {work: verdict for work, verdict in parts.half.items() if verdict in ("pass", "fail")}
    assert len(kept) >= 2
    assert {work: found[work] for work in kept} == kept
    grades = {row["student"]: row["grade"] for row in csv.DictReader((results / "grades.csv").open(newline=""))}
    # Ada and Dora solved the exercise; nobody handed in the others.
    assert set(grades) == {"ada", "bob", "cyd", DORA, "eli"}
    assert grades["ada"] == grades[DORA] != "0"
    assert {grades[who] for who in ("bob", "cyd", "eli")} == {"0"}
    assert (results / "students" / DORA / "results.json").is_file()
