# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a class, read once before anything is measured, so that later changes do not affect marks.

Child processes with limits do it: one unpacks an archive and copies the files of a student, the next one validates
them. The copies are in a temporary folder: a class may hand in more than fits into memory.
"""

import contextlib
import hashlib
import math
import os
import shutil
import stat
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fwlab.checkout.own_folder import own_folder
from fwlab.checkout.yaml_files import MAX_FILE_BYTES
from fwlab.grading.archives import Unreadable
from fwlab.grading.class_folder import INSIDE, Student, exercises_of, instead_of
from fwlab.grading.confined import DiskFull, Send, run_confined
from fwlab.grading.record import Said
from fwlab.measure.context import RunContext
from fwlab.measure.plan import chosen_exercises, submitted_spec
from fwlab.model.declared import Value
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Exercise, Lab
from fwlab.model.printable import MAX_LINE, printable
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import not_loaded, plain_files, texts_of
from fwlab.student.progress import FILE as PROGRESS_FILE
from fwlab.student.progress import MAX_WHY, progress_in


class Kept(NamedTuple):
    """One file and the path of its copy."""

    name: str
    size: int
    sha256: str
    copy: str


@dataclass(frozen=True)
class HandedIn:
    """What one student handed in for one exercise, as it was read.

    ignored  names of what is there and is not loaded
    files    what was copied
    refused  why it is no ruleset: it could not be read, or validation failed
    broken   the error of ours that kept it from being read
    """

    files: tuple[Kept, ...] = ()
    ignored: tuple[str, ...] = ()
    refused: BadInput | None = None
    broken: str | None = None

    def ruleset(self) -> list[RulesetFile]:
        """The files as a ruleset. Raises BadInput if they are not one; that fails the student."""
        if self.refused is not None:
            raise self.refused
        if self.broken is not None:
            raise CannotMeasure(f"internal error while reading a submission: {self.broken}", "report it")
        return texts_of(self.again(), validated=True)

    def again(self) -> Iterator[tuple[str, bytes]]:
        """Name and bytes of each file, from the copies."""
        for file in self.files:
            try:
                yield file.name, Path(file.copy).read_bytes()
            except OSError as error:
                gone = f"{file.copy}: the copy of a submission is gone: {error.strerror}"
                raise CannotMeasure(gone, "start the grading again") from error


class Submissions:
    """Everything that a class handed in. `close` deletes the copies."""

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()
        #: Where the copies are, and an archive may be unpacked for a while.
        self.scratch = self._held.enter_context(own_folder("fwlab-handed-in-"))
        #: Who handed in, by the name in marks.
        self.students: dict[str, Student] = {}
        #: What was odd about the class's folder, in words.
        self.odd: list[str] = []
        #: The numbers drawn for each, if tasks are individual.
        self.individual: dict[str, dict[str, Value]] = {}
        #: What each has written besides rulesets.
        self.said: dict[str, Said] = {}

    def copied(self, exercise: str, folder: Path, student: str) -> HandedIn:
        """Copy an exercise of the student who was added last. A faulty folder is recorded. Raises DiskFull."""
        if not os.path.lexists(folder):
            missing = f"nothing handed in: there is no {student}/{exercise}{instead_of(folder)}"
            return HandedIn(refused=BadInput(missing, "add the folder"))
        files: list[Kept] = []
        try:
            for name, data in plain_files(folder, exercise):
                copy = self.scratch / f"{len(self.students)}-{exercise}-{len(files)}"
                self._write(copy, data)
                files.append(Kept(name, len(data), hashlib.sha256(data).hexdigest(), str(copy)))
        except DiskFull:
            raise
        except BadInput as error:
            return HandedIn(refused=error)
        return HandedIn(tuple(files), tuple(not_loaded(folder)))

    def progress(self, folder: Path) -> Path | None:
        """Copy the progress of the student who was added last; the folder of the copy. None if there is none.

        A link is not followed: it may lead to another student's. Raises DiskFull.
        """
        there, copies = folder / PROGRESS_FILE, self.scratch / f"{len(self.students)}-said"
        try:
            if not stat.S_ISREG(there.lstat().st_mode):
                return None
            with there.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError:
            return None
        try:
            copies.mkdir()
        except OSError as error:
            raise DiskFull.at(copies, error) from error
        self._write(copies / PROGRESS_FILE, data)
        return copies

    def _write(self, copy: Path, data: bytes) -> None:
        try:
            copy.write_bytes(data)
        except OSError as error:
            raise DiskFull.at(copy, error) from error

    def close(self) -> None:
        """Remove the copies."""
        self._held.close()


def as_recorded(handed_in: HandedIn) -> dict[str, Any]:
    """One exercise of one student as a record has it."""
    if handed_in.refused is not None and not handed_in.files:
        return {"refused": handed_in.refused.message}
    files: dict[str, Any] = {}
    for file in handed_in.files:
        name = printable(file.name)
        if name in files:  # two long names can be equal once shortened
            name = f"{name} ({len(files) + 1})"
        files[name] = {"sha256": file.sha256, "size": file.size}
    return files


_HINT = "make it smaller or simpler"


def read(
    context: RunContext, student: Student, submissions: Submissions, *, further: bool, asked: Container[str] = ()
) -> list[tuple[Exercise, HandedIn]]:
    """Each exercise that is graded, and what was handed in for it. What cannot be read costs only the student.

    further  whether further exercises that were handed in are graded
    asked    the questions of the lab's page and workbook
    Raises DiskFull.
    """
    known = {exercise.id: exercise for exercise in context.lab.whole.exercises}
    report = run_confined(partial(_copy, context.lab, student, submissions, further))
    shutil.rmtree(submissions.scratch / INSIDE, ignore_errors=True)  # a child that was ended left it behind
    why = None if report.limit is None else BadInput(f"{student.source}: {report.limit}", _HINT)
    found: dict[str, HandedIn] = {}
    for value in report.values:
        if "disk full" in value:
            raise DiskFull(*value["disk full"])
        if "unreadable" in value:
            why = BadInput(*value["unreadable"])
        elif "said" in value:
            submissions.said[student.id] = said_in(Path(value["said"]), context.lab, asked)
        else:
            files = tuple(Kept(*file) for file in value["files"])
            found[value["exercise"]] = HandedIn(files, tuple(value["ignored"]), _fault(value["refused"]))
    if why is not None or report.bug is not None:
        refused = why and BadInput(f"submission cannot be read: {why.message}", why.hint)
        usual = [exercise for exercise in known.values() if not exercise.further]
        return [(exercise, HandedIn(refused=refused, broken=report.bug)) for exercise in usual]
    _validate_all(context, found)
    return [(known[name], handed_in) for name, handed_in in found.items()]


def said_in(folder: Path, lab: Lab, asked: Container[str]) -> Said:
    """The predictions and reasons in a copy of a student's progress. Whatever the file holds, there is an answer."""
    report = run_confined(partial(_said, folder, lab, asked))
    if report.limit is not None:
        return Said(unread=report.limit)
    if report.bug is not None:
        return Said(unread=f"internal error: {printable(report.bug)}")
    return Said.model_validate(report.values[0])


def _said(folder: Path, lab: Lab, asked: Container[str], send: Send) -> None:
    """In a child: read the progress. What the lab does not ask is left out."""
    try:
        progress = progress_in(folder, lab.id)
    except BadInput as error:
        send({"unread": printable(error.message, MAX_LINE)})
        return
    done = {exercise.id: progress.of(exercise.id) for exercise in lab.whole.exercises}
    made = {name: one for name, one in progress.predictions.items() if name in asked and not one.late}
    found = {name: (one.value, one.measured) for name, one in made.items()}
    reasons = {name: one.why for name, one in progress.answers.items() if name in asked}
    for name, one in done.items():
        reasons[name] = one.why
        if one.predicted is not None:
            found[name] = (one.predicted, one.first_measured.measured if one.first_measured else None)
    predictions = {
        name: {"value": value, "measured": None if measured is None or not math.isfinite(measured) else measured}
        for name, (value, measured) in found.items()
        if math.isfinite(value)
    }
    shown = {name: printable(why, MAX_WHY) for name, why in reasons.items() if why}
    send({"predictions": predictions, "reasons": shown})


def _copy(lab: Lab, student: Student, submissions: Submissions, further: bool, send: Send) -> None:
    """In a child: unpack an archive, and copy the files."""
    exercises = lab.whole.exercises
    try:
        with exercises_of(student, [exercise.id for exercise in exercises], submissions.scratch) as inside:
            if (progress := submissions.progress(inside)) is not None:
                send({"said": str(progress)})
            for exercise in exercises:
                if not exercise.further or (further and os.path.lexists(inside / exercise.id)):
                    copied = submissions.copied(exercise.id, inside / exercise.id, student.id)
                    refused = copied.refused and [copied.refused.message, copied.refused.hint]
                    told = {"files": copied.files, "ignored": copied.ignored, "refused": refused}
                    send({"exercise": exercise.id, **told})
    except Unreadable as error:
        send({"unreadable": [error.message, error.hint]})
    except DiskFull as error:
        send({"disk full": [error.message, error.hint]})


def _validate_all(context: RunContext, found: dict[str, HandedIn]) -> None:
    """Record what is wrong with each. After one that exceeds the limits, another child goes on with the next."""
    left = [name for name, one in found.items() if one.refused is None and context.lab.exercise(name) is not None]
    while left:
        report = run_confined(partial(_validate, context, {name: found[name] for name in left}))
        at = left[0]
        for value in report.values:
            if "exercise" in value:
                name = value["exercise"]
                found[name] = replace(found[name], refused=_fault(value["refused"]), broken=value["broken"])
                left.remove(name)
            at = value.get("at", "".join(left[:1]))
        for name in left[:1]:
            refused = None if report.limit is None else BadInput(f"{at}: {report.limit}", _HINT)
            found[name] = replace(found[name], refused=refused, broken=report.bug)
        left = left[1:]


def _validate(context: RunContext, found: dict[str, HandedIn], send: Send) -> None:
    """In a child: validate the files of these exercises."""
    for name, handed_in in found.items():
        refused = broken = None
        try:
            files = texts_of(_sending(handed_in, send))
            [exercise] = chosen_exercises(context.lab, name)
            submitted_spec(context, exercise, Path(name), files, handed_in.ignored)
        except BadInput as error:
            refused = [error.message, error.hint]
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not fail the student
            broken = f"{type(error).__name__}: {error}"
        send({"exercise": name, "refused": refused, "broken": broken})


def _sending(handed_in: HandedIn, send: Send) -> Iterator[tuple[str, bytes]]:
    """The files; each is reported before it is validated."""
    for name, data in handed_in.again():
        send({"at": printable(name)})
        yield name, data


def _fault(words: list[Any] | None) -> BadInput | None:
    return None if words is None else BadInput(*words)
