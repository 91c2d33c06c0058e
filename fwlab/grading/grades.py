# SPDX-License-Identifier: GPL-2.0-or-later
"""Grades from verdicts: a pure function of a grading's record and course.yml."""

import csv
import io
from dataclasses import dataclass

from fwlab.grading.course import Course, GradedLab
from fwlab.grading.marks import harmless
from fwlab.grading.record import Grading, StudentRecord, WorkMark
from fwlab.model.verdict import Outcome

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

    days_late  begun days after the deadline; None if nobody knows when it was handed in
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
    weighed = {check.check: weights.get(check.check, 1.0) for check in work.checks}
    start = sum(weighed.get(name, 0.0) for name in grading.start_passes.get(work.exercise, []))
    passed = sum(weighed[check.check] for check in work.checks if check.outcome is Outcome.PASS)
    every = sum(weighed.values())
    return course.partial * max(0.0, passed - start) / (every - start) if every > start else 0.0


def grades_csv(grading: Grading, course: Course) -> str:
    """One row per student: a share per exercise, what lateness costs, the grade, and what is open."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(grading.exercises)
    writer.writerow(["student", "name", *names, "days_late", "deducted", "grade", "open"])
    for grade in grade_class(grading, course):
        shares = {item.work.exercise: item.share for item in grade.exercises}
        days = UNKNOWN if grade.days_late is None else grade.days_late
        row = [grade.student.id, harmless(grade.student.name), *(number(shares.get(name)) for name in names)]
        writer.writerow([*row, days, number(grade.deducted), number(grade.points), " ".join(grade.open)])
    return out.getvalue()


def number(value: float | None) -> str:
    """At most two decimals; nothing for what is open."""
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
