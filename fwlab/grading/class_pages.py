# SPDX-License-Identifier: GPL-2.0-or-later
"""A page for each student and one for the class, each one file that needs no other."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fwlab.grading.course import Course
from fwlab.grading.grade_files import expected, measured
from fwlab.grading.grades import UNKNOWN, Grade, number
from fwlab.grading.record import Grading, WorkMark
from fwlab.grading.similarity import Pair
from fwlab.model.verdict import Outcome

#: Bars of the distribution.
BARS = 10
#: How a work that gave no figure at all is counted: one failure, and not one for each check.
NOT_LOADED, NOTHING = "not loaded", "nothing handed in"


@dataclass(frozen=True)
class Failure:
    """A check that several students failed, and the first reason that was given."""

    exercise: str
    check: str
    students: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Bar:
    """Grades from `low` to `high` points."""

    low: float
    high: float
    count: int


def student_page(grading: Grading, course: Course, grade: Grade) -> str:
    """What a student is given: the grade and, exercise by exercise, what was asked, measured and why."""
    return _render("student.html.j2", grading=grading, course=course, grade=grade)


def class_page(grading: Grading, course: Course, grades: Sequence[Grade], pairs: Sequence[Pair]) -> str:
    """The instructor's overview: distribution, exercises, typical failures, students, similar submissions."""
    bars = distribution(course, grades)
    return _render(
        "class.html.j2",
        grading=grading,
        course=course,
        grades=grades,
        bars=bars,
        most=max([bar.count for bar in bars], default=0),
        counts=outcomes(grading),
        failures=typical_failures(grading),
        pairs=pairs,
    )


def distribution(course: Course, grades: Sequence[Grade]) -> list[Bar]:
    """How many students reached how many points; those whose grade is open are not in it."""
    width = course.points / BARS
    counts = [0] * BARS
    for grade in grades:
        if grade.points is not None:
            counts[min(BARS - 1, max(0, int(grade.points / width)))] += 1
    return [Bar(place * width, (place + 1) * width, count) for place, count in enumerate(counts)]


def outcomes(grading: Grading) -> dict[str, dict[str, int]]:
    """By exercise, how many passed, failed, are inconclusive, or are not graded yet."""
    found = {exercise: dict.fromkeys((*Outcome, "open"), 0) for exercise in grading.exercises}
    for work in grading.works:
        found[work.exercise][work.outcome or "open"] += 1
    return found


def typical_failures(grading: Grading) -> list[Failure]:
    """Which checks fail, the most frequent first."""
    students: dict[tuple[str, str], list[str]] = defaultdict(list)
    texts: dict[tuple[str, str], str] = {}
    for work in grading.works:
        for check, text in _failures(work):
            students[work.exercise, check].append(work.student)
            texts.setdefault((work.exercise, check), text)
    found = [Failure(*key, tuple(who), texts[key]) for key, who in students.items()]
    return sorted(found, key=lambda failure: -len(failure.students))


def _failures(work: WorkMark) -> list[tuple[str, str]]:
    if work.outcome is not Outcome.FAIL:
        return []
    if work.refused is not None:
        return [(NOTHING if work.refused.startswith(f"{NOT_LOADED}: {NOTHING}") else NOT_LOADED, work.reason)]
    return [(check.check, check.text) for check in work.checks if check.outcome is Outcome.FAIL]


def _render(template: str, **context: object) -> str:
    helpers = {"number": number, "measured": measured, "expected": expected, "UNKNOWN": UNKNOWN}
    return _environment().get_template(template).render(**context, **helpers)


@cache
def _environment() -> Environment:
    """Kept, because it keeps the compiled templates: a class has a page for each student."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
