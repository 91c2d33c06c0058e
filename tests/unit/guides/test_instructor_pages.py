# SPDX-License-Identifier: GPL-2.0-or-later
"""labs/LAB/instructor.md, where a lab has one: headings, exercises, a plan that fits into the lab's time."""

import re
from pathlib import Path

import pytest

from tests.checkout import LAB_IDS, PROJECT, lab_named

PAGES = sorted(PROJECT.labs.glob("lab[0-9][0-9]-*/instructor.md"))
SECTIONS = ["Learning goals", "Before the lab", "Time plan", "Exercises", "Rubric"]


def sections(text: str, level: str) -> dict[str, str]:
    parts = re.split(rf"^{level} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_lab_has_one() -> None:
    assert [page.parent.name for page in PAGES] == LAB_IDS


def planned(text: str) -> int:
    return sum(int(found) for found in re.findall(r"^\| *(\d+) *\|", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_exercises_are_discussed_the_time_plan_fits_and_the_rubric_adds_up(page: Path) -> None:
    """A lab in parts has a plan for each, under a heading like that of the lab's page."""
    parts, lab = sections(page.read_text(), "##"), lab_named(page.parent.name)
    assert list(parts) == SECTIONS
    exercises = sections(parts["Exercises"], "###")
    assert list(exercises) == [exercise.id for exercise in lab.exercises]
    for text in exercises.values():
        assert "**Solution.**" in text
        assert "**The typical wrong one.**" in text, "that of mistake/"
    assert planned(parts["Time plan"]) == lab.minutes
    plans = {title: planned(text) for title, text in sections(parts["Time plan"], "###").items()}
    assert plans == {f"Part {number}: {part.title}": part.minutes for number, part in enumerate(lab.parts, start=1)}
    assert sum(int(points) for points in re.findall(r"\| *(\d+) *\|$", parts["Rubric"], re.MULTILINE)) == 100
