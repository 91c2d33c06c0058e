# SPDX-License-Identifier: GPL-2.0-or-later
"""What an instructor grades: a class's folders, or the lab's own start, reference, mistake and variants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwlab.outside.variants import FOLDERS, load_variants, variant_folder
from fwlab.runs.session import Setting
from fwlab.runs.task import Task
from fwlab.runs.tasks import PARTS, lab_part_task, work_task
from fwlab.words.errors import BadInput, FwlabError
from fwlab.words.lab import Exercise
from fwlab.words.verdict import Outcome

#: What a name in a class folder may look like; it becomes part of a test's name and of a report.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")

#: What each ruleset that the lab brings must come to.
OUTCOMES = {"start": Outcome.FAIL, "reference": Outcome.PASS, "mistake": Outcome.FAIL}
#: The part that is all variants; they are graded as right-NAME and wrong-NAME.
VARIANTS = "variants"
RIGHT, WRONG = "right-", "wrong-"
#: What `pytest --testinfra` may be asked for; `all` are these and the lab's quick cases.
ALL = "all"
CHOICES = (*PARTS, VARIANTS, ALL)


@dataclass(frozen=True)
class Work:
    """One ruleset to grade: whose, which exercise, where, and what it must come to (a mark: pass).

    part   which of the exercise's own rulesets it is (a folder below the exercise's); None for a submission
    fails  the checks that it must fail by, no more and no fewer; None where any will do
    """

    who: str
    exercise: Exercise
    folder: Path
    expected: Outcome = Outcome.PASS
    part: str | None = None
    fails: frozenset[str] | None = None

    @property
    def name(self) -> str:
        return f"{self.who}/{self.exercise.id}"

    def task(self, setting: Setting) -> Task:
        """Raises FwlabError where the folder holds what is no ruleset; that is the student's failure."""
        if self.part is not None:
            return lab_part_task(setting, self.exercise, self.part)
        return work_task(setting, self.exercise, self.folder)


def own_work(setting: Setting, parts: list[str]) -> list[Work]:
    """The lab's own rulesets; grading them shows that the grader grades. Raises BadInput naming a bad variants.yml."""
    for part in parts:
        if part not in CHOICES:
            raise BadInput(f"unknown part {part}", f"use {', '.join(CHOICES)}")
    chosen = [part for part in (*PARTS, VARIANTS) if part in parts or ALL in parts]
    works = []
    for exercise in setting.lab.exercises:
        for part in chosen:
            if part == VARIANTS:
                works += _variants(setting, exercise)
            else:
                folder = setting.lab.folder / "rulesets" / exercise.id / part
                works.append(Work(part, exercise, folder, OUTCOMES[part], part))
    return works


def _variants(setting: Setting, exercise: Exercise) -> list[Work]:
    variants = load_variants(setting.project, setting.lab, exercise)

    def work(kind: str, name: str, **expected: Any) -> Work:
        folder = variant_folder(setting.lab, exercise, name)
        return Work(kind + name, exercise, folder, part=f"{FOLDERS}/{name}", **expected)

    right = [work(RIGHT, name) for name in variants.right]
    wrong = [
        work(WRONG, name, expected=Outcome.FAIL, fails=frozenset(variant.fails))
        for name, variant in variants.wrong.items()
    ]
    return right + wrong


def handed_in(setting: Setting, folder: Path) -> list[Work]:
    """One Work for every student and exercise; a student's missing exercise is a failed one.

    `folder` holds one folder a student, in it one folder an exercise. Raises BadInput naming what is odd.
    """
    if not folder.is_dir():
        raise BadInput(f"no folder {folder}", "give --submissions the folder that holds one folder a student")
    students = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    for path in students:
        if path.is_symlink() or not path.is_dir():
            raise BadInput(f"{path}: not a student's folder", f"remove it from {folder}")
        if not NAME.fullmatch(path.name):
            raise BadInput(f"{path}: a student's folder is named by letters, digits and . _ @ -", "rename it")
        if path.name in PARTS or path.name.startswith((RIGHT, WRONG)):  # whose mark that is must be plain
            raise BadInput(f"{path}: {path.name} is the name of a part of the lab", "rename it")
    if not students:
        raise BadInput(f"{folder} is empty", "put one folder a student into it")
    exercises = setting.lab.exercises
    return [Work(student.name, exercise, student / exercise.id) for student in students for exercise in exercises]


def unreadable(work: Work, setting: Setting) -> str | None:
    """Why a submission cannot even be tried; None if it can."""
    try:
        work.task(setting)
    except FwlabError as error:
        return error.message
    return None
