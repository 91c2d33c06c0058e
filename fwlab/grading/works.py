# SPDX-License-Identifier: GPL-2.0-or-later
"""The works that a grading covers: a class's submissions, or the lab's own rulesets."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fwlab.grading import options
from fwlab.grading.class_folder import class_at, students_in
from fwlab.grading.course import Course
from fwlab.grading.grader import Given
from fwlab.grading.lab_rulesets import FOLDERS, RIGHT, WRONG, Made, load_variants, non_solutions, said, variant_folder
from fwlab.grading.submissions import HandedIn, Submissions, read
from fwlab.measure.context import RunContext
from fwlab.measure.individual_tasks import Tasks, draw, individual_lab, of_students
from fwlab.measure.plan import PARTS, exercise_spec, lab_part_spec, submitted_from, submitted_spec
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Exercise
from fwlab.model.verdict import Outcome
from fwlab.rulesets.files import rendered
from fwlab.student.workbook import predictions_of, workbook_of

#: The verdict that each of the lab's own rulesets must get.
OUTCOMES = {"start": Outcome.FAIL, "reference": Outcome.PASS, "mistake": Outcome.FAIL}
#: The part that means all variants; they are graded as right-NAME and wrong-NAME.
VARIANTS = "variants"
#: The part that means all rulesets that must not pass any exercise.
NON_SOLUTIONS = "non-solutions"


@dataclass(frozen=True)
class Work:
    """One ruleset to grade.

    who       the student, or the part of the lab
    folder    where the ruleset is
    expected  the verdict that it must get; a work that is marked must pass
    part      which of the lab's own rulesets it is, as a folder below the exercise's; None for a submission
    fails     the checks that it must fail, and no others; None if any failure will do
    may       checks that it fails or passes by chance
    handed_in  a submission as it was read; None for the lab's own rulesets, which are read when they are graded
    own        the lab as this student has it; None if all have the same
    made       how it is made from the lab; None if `folder` has it
    """

    who: str
    exercise: Exercise
    folder: Path
    expected: Outcome = Outcome.PASS
    part: str | None = None
    fails: frozenset[str] | None = None
    may: frozenset[str] = frozenset()
    handed_in: HandedIn | None = None
    own: RunContext | None = None
    made: Made | None = None

    @property
    def name(self) -> str:
        """The check's name: who/exercise."""
        return f"{self.who}/{self.exercise.id}"

    def ruleset(self, context: RunContext) -> str:
        """The name of the ruleset in results."""
        if self.part is not None:
            return f"{self.exercise.id}/{self.part}"
        return submitted_from(context, self.folder)

    def spec(self, context: RunContext) -> MeasurementSpec:
        """What to measure. Raises BadInput if the files are not a ruleset; that fails the student."""
        context = self.own or context
        if self.made is not None:
            files = self.made.files(context.topology)
            return exercise_spec(context, self.exercise, self.ruleset(context), files)
        if self.handed_in is None:
            return lab_part_spec(context, self.exercise, self.part or "")
        return submitted_spec(context, self.exercise, self.folder, self.handed_in.ruleset(), self.handed_in.ignored)


def own_work(context: RunContext, parts: list[str]) -> list[Work]:
    """The lab's own rulesets, which test the checks themselves. Raises BadInput for an invalid variants.yml."""
    for part in parts:
        if part not in options.PARTS:
            raise BadInput(f"unknown part {part}", f"use {', '.join(options.PARTS)}")
    chosen = [part for part in (*PARTS, VARIANTS) if part in parts or "all" in parts]
    made = non_solutions(context) if "all" in parts or NON_SOLUTIONS in parts else {}
    works = []
    for exercise in context.lab.exercises:
        for part in chosen:
            if part == VARIANTS:
                works += _variants(context, exercise)
            else:
                folder = context.lab.folder / "rulesets" / exercise.id / part
                works.append(Work(part, exercise, folder, OUTCOMES[part], part))
        works += _non_solutions(context, exercise, made.get(exercise.id, {}))
    return works


def _non_solutions(context: RunContext, exercise: Exercise, made: dict[str, Made]) -> list[Work]:
    right = load_variants(context.project, context.lab, exercise).also_right
    return [
        Work(
            name,
            exercise,
            context.lab.folder,
            Outcome.PASS if name in right else Outcome.FAIL,
            f"{NON_SOLUTIONS}/{name}",
            made=one,
        )
        for name, one in made.items()
    ]


def _variants(context: RunContext, exercise: Exercise) -> list[Work]:
    variants = load_variants(context.project, context.lab, exercise)

    def work(kind: str, name: str, **expected: Any) -> Work:
        folder = variant_folder(context.lab, exercise, name)
        return Work(kind + name, exercise, folder, part=f"{FOLDERS}/{name}", **expected)

    right = [work(RIGHT, name) for name in variants.right]
    wrong = [
        work(WRONG, name, expected=Outcome.FAIL, fails=frozenset(variant.fails), may=frozenset(variant.may))
        for name, variant in variants.wrong.items()
    ]
    return right + wrong


def handed_in(
    context: RunContext,
    folder: Path,
    submissions: Submissions,
    course: Course | None = None,
    tasks: Tasks | None = None,
    *,
    further: bool = False,
) -> list[Work]:
    """One Work per student and exercise, read into `submissions`. A missing exercise fails.

    folder   holds a folder or an archive per student, or is an archive of all (class_folder.py)
    further  grade further exercises, too: of each student, those that were handed in
    Raises BadInput if it is no class. What is odd affects only its student, and is listed in `submissions.odd`.
    """
    works: list[Work] = []
    lab = context.lab
    asked = {one.id for one in (*predictions_of(context.project, lab), *workbook_of(context.project, lab))}
    with class_at(folder, submissions.scratch) as there:
        for student in students_in(there, folder, submissions.odd.append):
            own = _own(context, course or Course(), tasks, student.id, submissions)
            submissions.students[student.id] = student
            home = folder / student.id
            for exercise, one in read(own or context, student, submissions, further=further, asked=asked):
                works.append(Work(student.id, exercise, home / exercise.id, handed_in=one, own=own))
    return works


def _own(
    context: RunContext, course: Course, tasks: Tasks | None, student: str, submissions: Submissions
) -> RunContext | None:
    """The lab as this student has it; None if nothing is drawn for this student."""
    if not of_students(context.lab):
        return None
    name = course.students.get(student, student)
    if course.secret is not None:
        numbers = draw(course.secret, context.lab.whole, name)
    elif tasks is not None and name in (drawn := tasks.tasks.get(context.lab.id, {})):
        numbers = drawn[name]
    else:
        if tasks is not None:
            submissions.odd.append(f"{student}: tasks.yml has no numbers for this name, so the page's are used")
        return None
    submissions.individual[student] = numbers
    return replace(context, lab=individual_lab(context.project, context.lab, numbers))


def given(work: Work, context: RunContext) -> Given:
    """The work as a worker gets it. Raises BadInput if the files are not a ruleset."""
    spec = work.spec(context)
    own_nic = int(work.exercise.nic is not None)  # its file is the first, and the worker has it from the exercise
    return Given(
        exercise=work.exercise.id,
        ruleset=spec.ruleset,
        files=tuple(spec.files[own_nic:]),
        remarks=tuple(spec.remarks),
        any_fail=work.made is not None and work.expected is Outcome.FAIL,
        trusted=work.handed_in is None,
    )


def unreadable(work: Work, context: RunContext) -> str | None:
    """Why a submission cannot be measured at all; None if it can."""
    try:
        work.spec(context)
    except BadInput as error:
        return error.message
    return None


#: Bytes of comments and blanks by which an unchanged start may be longer. More is not looked at.
MAX_COMMENTS = 1 << 16


def untouched(context: RunContext, exercise: Exercise, handed_in: HandedIn) -> bool:
    """Whether the files say what the exercise's start says, or nothing. Comments, blanks and names do not count."""
    folder = context.lab.folder / "rulesets" / exercise.id / "start"
    try:
        start = [text for _, text in rendered(folder, exercise.parameters, context.topology)]
    except BadInput:
        return False
    if sum(file.size for file in handed_in.files) > sum(map(len, start)) + MAX_COMMENTS:
        return False
    try:
        own = said(data.decode(errors="replace") for _, data in handed_in.again())
    except CannotMeasure:  # the copy is gone, and with it the grading
        return False
    return own in ([], said(start))
