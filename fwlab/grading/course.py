# SPDX-License-Identifier: GPL-2.0-or-later
"""course.yml, and the grades that follow from it: a pure function of a grading's record.

The classes here document every field of course.yml.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import AwareDatetime, Field

from fwlab.checkout.project import Project, display_path, lab_ids, validated
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.grading.record import Grading, StudentRecord, WorkMark
from fwlab.model.declared import Identifier, Strict
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.verdict import Outcome

Weight = Annotated[float, Field(ge=0, le=1000)]
Share = Annotated[float, Field(ge=0, le=1)]


class Late(Strict):
    """What a late hand-in costs.

    grace_minutes  minutes after the deadline for which nothing is deducted
    per_day        the share of the grade that each day, or part of one, deducts
    at_most        the largest share that is deducted
    days           days after the deadline until which there is a grade (default: no limit)
    """

    grace_minutes: float = Field(default=0, ge=0, le=10_000)
    per_day: Share = 0.0
    at_most: Share = 1.0
    days: int | None = Field(default=None, ge=0, le=1000)

    def penalty(self, days: int) -> float:
        """The share that is deducted for this number of days, of which the last may be a part of one."""
        if days <= 0:
            return 0.0
        if self.days is not None and days > self.days:
            return 1.0
        return min(self.at_most, self.per_day * days)


class GradedLab(Strict):
    """One lab of the course.

    weight      its share of the course's grade, relative to the other labs
    deadline    a time with its zone, such as 2027-01-15T18:00:00+01:00
    exercises   weights of exercises; 1 where nothing is said, 0 leaves one out
    checks      by exercise, weights of its checks in a partial mark; 1 where nothing is said
    extensions  by student, another deadline
    handed_in   by student, when it was handed in; it replaces what the export says
    """

    weight: Weight = 1.0
    deadline: AwareDatetime | None = None
    exercises: dict[Identifier, Weight] = {}
    checks: dict[Identifier, dict[Identifier, Weight]] = {}
    extensions: dict[str, AwareDatetime] = {}
    handed_in: dict[str, AwareDatetime] = {}


class Course(Strict):
    """The course.

    points   of a lab in which everything passed and nothing was late
    partial  the largest share of an exercise's mark that passed checks give if not all pass (default: none)
    late     what a late hand-in costs
    labs     by identifier
    secret   for individual tasks; it must be hard to guess
    students by name in marks, the name in the task file, where an LMS gives another one
    """

    title: str = ""
    points: float = Field(default=100, gt=0, le=100_000)
    partial: Share = 0.0
    late: Late = Late()
    labs: dict[str, GradedLab] = {}
    secret: Annotated[str, Field(min_length=16)] | None = None
    students: dict[str, str] = {}

    def lab(self, lab_id: str) -> GradedLab:
        """What is said of this lab; the defaults if nothing is."""
        return self.labs.get(lab_id, GradedLab())

    def days_late(self, lab_id: str, student: str, handed_in: datetime | None) -> int | None:
        """Begun days after the deadline, 0 if it was in time; None if the time is not known."""
        lab = self.lab(lab_id)
        deadline = lab.extensions.get(student, lab.deadline)
        if deadline is None:
            return 0
        handed_in = lab.handed_in.get(student, handed_in)
        if handed_in is None:
            return None
        over = (handed_in - deadline).total_seconds() - 60 * self.late.grace_minutes
        return max(0, math.ceil(over / 86_400))


def read_course(project: Project, path: Path) -> Course:
    """Raises BadInput naming the file and the field."""
    name = display_path(project, path.absolute())
    hint = f"fix {name}"
    data = read_yaml_file(path, name, hint)
    course = validated({} if data is None else data, name, Course, hint=hint)
    known = lab_ids(project)
    for lab_id in course.labs:
        if lab_id not in known:  # its deadline and weights would be lost
            raise BadInput(f"{name}: labs: there is no lab {lab_id}; there are: {', '.join(known)}", hint)
    return course


def reject_unknown(course: Course, lab: Lab, name: str) -> None:
    """Raise BadInput if course.yml names an exercise or a check that this lab does not have."""
    graded = course.lab(lab.id)
    checks = {e.id: {check.id for check in e.checks} for e in lab.whole.exercises}
    for field, named in (("exercises", graded.exercises), ("checks", graded.checks)):
        for exercise in named:
            if exercise not in checks:
                known = ", ".join(checks)
                raise BadInput(
                    f"{name}: labs.{lab.id}.{field}: no exercise {exercise}; there are: {known}", f"fix {name}"
                )
    for exercise, weights in graded.checks.items():
        for check in weights:
            if check not in checks[exercise]:
                known = ", ".join(sorted(checks[exercise]))
                where = f"{name}: labs.{lab.id}.checks.{exercise}"
                raise BadInput(f"{where}: no check {check}; there are: {known}", f"fix {name}")
    counting = [graded.exercises.get(e.id, 0.0 if e.further else 1.0) for e in lab.whole.exercises]
    if checks and not any(counting):
        raise BadInput(f"{name}: labs.{lab.id}.exercises: every weight is 0", f"fix {name}")


UNKNOWN = "unknown"


@dataclass(frozen=True)
class ExerciseGrade:
    """One exercise: its weight, and the share of it that was reached; None if that is open."""

    work: WorkMark
    weight: float
    share: float | None


@dataclass(frozen=True)
class Grade:
    """One student's grade in one lab.

    days_late  begun days after the deadline; None if the time of submission is unknown
    deducted   the share that lateness costs
    points     None while an exercise that counts is open
    """

    student: StudentRecord
    exercises: tuple[ExerciseGrade, ...]
    days_late: int | None
    deducted: float
    points: float | None

    @property
    def open(self) -> list[str]:
        """The exercises without a mark that count."""
        return [grade.work.exercise for grade in self.exercises if grade.share is None and grade.weight > 0]


def grade_class(grading: Grading, course: Course) -> list[Grade]:
    """A grade for each student of the record, in its order."""
    return [_grade(grading, course, student) for student in grading.students]


def _grade(grading: Grading, course: Course, student: StudentRecord) -> Grade:
    lab = course.lab(grading.lab)
    exercises = tuple(
        ExerciseGrade(work, weight_of(work.exercise, grading, lab), share_of(work, grading, course))
        for work in grading.of_student(student.id)
    )
    days = course.days_late(grading.lab, student.id, student.handed_in)
    deducted = course.late.penalty(days or 0)
    counting = [(grade.weight, grade.share) for grade in exercises if grade.weight > 0]
    reached = [weight * share for weight, share in counting if share is not None]
    points = None
    if counting and len(reached) == len(counting):
        points = course.points * (1 - deducted) * sum(reached) / sum(weight for weight, _ in counting)
    return Grade(student, exercises, days, deducted, points)


def weight_of(exercise: str, grading: Grading, lab: GradedLab) -> float:
    """What course.yml says; else 1 for an exercise of the core, and 0 for a further one."""
    known = grading.exercises.get(exercise)
    return lab.exercises.get(exercise, 0.0 if known is not None and known.further else 1.0)


def share_of(work: WorkMark, grading: Grading, course: Course) -> float | None:
    """The share of an exercise that was reached: all, none, or in part; None if that is open.

    In part: the share of the way from what the exercise's start passes to all. What a ruleset breaks counts against it.
    """
    if work.outcome is Outcome.PASS:
        return 1.0
    if work.outcome is not Outcome.FAIL:
        return None
    if work.untouched:  # what it passes, doing nothing passes
        return 0.0
    weights = course.lab(grading.lab).checks.get(work.exercise, {})
    weighted = {check.check: weights.get(check.check, 1.0) for check in work.checks}
    start = sum(weighted.get(name, 0.0) for name in grading.start_passes.get(work.exercise, []))
    passed = sum(weighted[check.check] for check in work.checks if check.outcome is Outcome.PASS)
    every = sum(weighted.values())
    return course.partial * max(0.0, passed - start) / (every - start) if every > start else 0.0


def number(value: float | None) -> str:
    """At most two decimals; nothing for what is open."""
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
