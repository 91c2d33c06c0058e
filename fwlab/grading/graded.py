# SPDX-License-Identifier: GPL-2.0-or-later
"""The works that a grading covers: a class's submissions, or the lab's own rulesets."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwlab.grading.submissions import HandedIn, Submissions
from fwlab.grading.variant_files import FOLDERS, load_variants, variant_folder
from fwlab.measure.context import RunContext
from fwlab.measure.plan import PARTS, lab_part_spec, submitted_from, submitted_spec
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise
from fwlab.model.printable import printable
from fwlab.model.verdict import Outcome
from fwlab.rulesets.files import LONGEST_PATH

#: A student's folder name. It becomes part of test names and reports.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

_WHAT_IT_IS = "give --submissions the folder that holds one folder per student"

#: Files that some version of pytest reads as its configuration, or runs.
CONFIGURATION = frozenset(
    {
        *(f"{dot}pytest.{kind}" for dot in ("", ".") for kind in ("ini", "toml")),
        *("pyproject.toml", "tox.ini", "setup.cfg", "setup.py", "conftest.py"),
    }
)

#: The verdict that each of the lab's own rulesets must get.
OUTCOMES = {"start": Outcome.FAIL, "reference": Outcome.PASS, "mistake": Outcome.FAIL}
#: The part that stands for all variants; they are graded as right-NAME and wrong-NAME.
VARIANTS = "variants"
RIGHT, WRONG = "right-", "wrong-"
#: Choices of --part; `all` means these and the lab's quick cases.
ALL = "all"
CHOICES = (*PARTS, VARIANTS, ALL)


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
    """

    who: str
    exercise: Exercise
    folder: Path
    expected: Outcome = Outcome.PASS
    part: str | None = None
    fails: frozenset[str] | None = None
    may: frozenset[str] = frozenset()
    handed_in: HandedIn | None = None

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
        if self.handed_in is None:
            return lab_part_spec(context, self.exercise, self.part or "")
        return submitted_spec(context, self.exercise, self.folder, self.handed_in.ruleset())


def own_work(context: RunContext, parts: list[str]) -> list[Work]:
    """The lab's own rulesets, which test the checks themselves. Raises BadInput for an invalid variants.yml."""
    for part in parts:
        if part not in CHOICES:
            raise BadInput(f"unknown part {part}", f"use {', '.join(CHOICES)}")
    chosen = [part for part in (*PARTS, VARIANTS) if part in parts or ALL in parts]
    works = []
    for exercise in context.lab.exercises:
        for part in chosen:
            if part == VARIANTS:
                works += _variants(context, exercise)
            else:
                folder = context.lab.folder / "rulesets" / exercise.id / part
                works.append(Work(part, exercise, folder, OUTCOMES[part], part))
    return works


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


def handed_in(context: RunContext, folder: Path, submissions: Submissions) -> list[Work]:
    """One Work per student and exercise, read into `submissions`. A missing exercise fails.

    folder  holds one folder per student, each with one folder per exercise
    Raises BadInput naming what does not belong there.
    """
    try:
        entries = sorted(folder.iterdir())
    except NotADirectoryError as error:
        raise BadInput(f"{_shown(folder)}: not a folder", _WHAT_IT_IS) from error
    except FileNotFoundError as error:
        raise BadInput(f"no folder {_shown(folder)}", _WHAT_IT_IS) from error
    except OSError as error:
        raise BadInput(f"{_shown(folder)}: {error.strerror}", _WHAT_IT_IS) from error
    for path in entries:
        if path.name in CONFIGURATION and not path.is_dir():
            raise BadInput(
                f"{_shown(path)}: pytest could take this file for its configuration and run code from it",
                f"remove it from {_shown(folder)}: only students' folders belong there",
            )
    students = [path for path in entries if not path.name.startswith(".")]
    for path in students:
        if path.is_symlink() or not path.is_dir():
            raise BadInput(f"{_shown(path)}: not a student's folder", f"remove it from {_shown(folder)}")
        if not NAME.fullmatch(path.name):
            raise BadInput(
                f"{_shown(path)}: a student's folder name may hold only letters, digits and . _ @ -", "rename it"
            )
        if path.name in PARTS or path.name.startswith((RIGHT, WRONG)):  # the mark would be ambiguous
            raise BadInput(f"{_shown(path)}: {path.name} is the name of a part of the lab", "rename it")
    if not students:
        raise BadInput(f"{_shown(folder)} is empty", "put one folder per student into it")
    works = []
    for student in students:
        for exercise in context.lab.whole.exercises:
            where = student / exercise.id
            read = submissions.read(student.name, exercise.id, where)
            works.append(Work(student.name, exercise, where, handed_in=read))
    return works


def _shown(path: Path) -> str:
    return printable(path, LONGEST_PATH)


def unreadable(work: Work, context: RunContext) -> str | None:
    """Why a submission cannot be measured at all; None if it can."""
    try:
        work.spec(context)
    except BadInput as error:
        return error.message
    return None
