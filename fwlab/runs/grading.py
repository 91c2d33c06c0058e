# SPDX-License-Identifier: GPL-2.0-or-later
"""What an instructor grades: a class's folders, or the lab's own start, reference and mistake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Work:
    """One ruleset to grade: whose, which exercise, where, and what it must come to (a mark: pass)."""

    who: str
    exercise: Exercise
    folder: Path
    expected: Outcome = Outcome.PASS

    @property
    def name(self) -> str:
        return f"{self.who}/{self.exercise.id}"

    def task(self, setting: Setting) -> Task:
        """Raises FwlabError where the folder holds what is no ruleset; that is the student's failure."""
        if self.who in PARTS:
            return lab_part_task(setting, self.exercise, self.who)
        return work_task(setting, self.exercise, self.folder)


def own_work(setting: Setting, parts: list[str]) -> list[Work]:
    """The lab's own rulesets; grading them shows that the grader grades."""
    for part in parts:
        if part not in PARTS:
            raise BadInput(f"unknown part {part}", f"use {', '.join(PARTS)}")
    return [
        Work(part, exercise, setting.lab.folder / "rulesets" / exercise.id / part, OUTCOMES[part])
        for exercise in setting.lab.exercises
        for part in parts
    ]


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
        if path.name in PARTS:  # whose work that is must be plain, or the lab's own would be graded
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
