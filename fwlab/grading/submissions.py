# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a class, read once before anything is measured, so that later changes do not affect marks.

They are copied to a temporary folder: a class may hand in more than fits into memory.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwlab.grading.class_folder import Student, instead_of
from fwlab.grading.room import NoRoom
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import not_loaded, plain_files, texts_of


@dataclass(frozen=True)
class Kept:
    """One file and the path of its copy."""

    name: str
    size: int
    sha256: str
    copy: Path


@dataclass(frozen=True)
class HandedIn:
    """What one student handed in for one exercise, as it was read.

    ignored  names of what is there and is not loaded
    refused  why it could not be read; there are no files then
    """

    files: tuple[Kept, ...] = ()
    ignored: tuple[str, ...] = ()
    refused: BadInput | None = None

    def ruleset(self) -> list[RulesetFile]:
        """The files as a ruleset. Raises BadInput if they are not one; that fails the student."""
        if self.refused is not None:
            raise self.refused
        return texts_of((file.name, _again(file.copy)) for file in self.files)


def _again(copy: Path) -> bytes:
    try:
        return copy.read_bytes()
    except OSError as error:
        raise CannotMeasure(
            f"{copy}: the copy of a submission is gone: {error.strerror}", "start the grading again"
        ) from error


class Submissions:
    """Everything that a class handed in. `close` deletes the copies. `inside`: a folder for them."""

    def __init__(self, inside: Path | None = None) -> None:
        self._copies = tempfile.TemporaryDirectory(prefix="fwlab-submissions-", dir=inside)
        self._read: dict[str, dict[str, HandedIn]] = {}
        #: Who handed in, by the name in marks.
        self.students: dict[str, Student] = {}
        #: What was odd about the class's folder, in words.
        self.odd: list[str] = []
        #: The numbers drawn for each, if tasks are individual.
        self.individual: dict[str, dict[str, int]] = {}

    @property
    def scratch(self) -> Path:
        """Where an archive may be unpacked for a while."""
        return Path(self._copies.name)

    def read(self, student: str, exercise: str, folder: Path) -> HandedIn:
        """Copy one student's exercise. Raises NoRoom if the copies do not fit; a faulty folder is recorded instead."""
        self._read.setdefault(student, {})
        return self._add(student, exercise, self._of(folder, len(self._read), exercise, student))

    def unreadable(self, student: str, exercise: str, error: BadInput) -> HandedIn:
        """Record that nothing of the student's can be read."""
        reason = BadInput(f"submission cannot be read: {error.message}", error.hint)
        return self._add(student, exercise, HandedIn(refused=reason))

    def _add(self, student: str, exercise: str, handed_in: HandedIn) -> HandedIn:
        self._read.setdefault(student, {})[exercise] = handed_in
        return handed_in

    def _of(self, folder: Path, number: int, exercise: str, student: str) -> HandedIn:
        if not os.path.lexists(folder):
            missing = f"nothing handed in: there is no {student}/{exercise}{instead_of(folder)}"
            return HandedIn(refused=BadInput(missing, "add the folder"))
        files: list[Kept] = []
        try:
            for name, data in plain_files(folder, exercise):
                copy = Path(self._copies.name) / f"{number}-{exercise}-{len(files)}"
                self._write(copy, data)
                files.append(Kept(name, len(data), hashlib.sha256(data).hexdigest(), copy))
        except NoRoom:
            raise
        except BadInput as error:
            return HandedIn(refused=error)
        return HandedIn(tuple(files), tuple(not_loaded(folder)))

    def _write(self, copy: Path, data: bytes) -> None:
        try:
            copy.write_bytes(data)
        except OSError as error:
            raise NoRoom.at(copy, error) from error

    def document(self) -> str:
        """What was read, as JSON by student, exercise and file; for unreadable folders, the reason."""
        every = {
            student: {exercise: told(handed_in) for exercise, handed_in in exercises.items()}
            for student, exercises in self._read.items()
        }
        return json.dumps(every, indent=1) + "\n"

    def close(self) -> None:
        """Remove the copies."""
        self._copies.cleanup()


def told(handed_in: HandedIn) -> dict[str, Any]:
    """One exercise of one student as submissions.json has it."""
    if handed_in.refused is not None:
        return {"refused": handed_in.refused.message}
    files: dict[str, Any] = {}
    for file in handed_in.files:
        name = printable(file.name)
        if name in files:  # two long names can be equal once shortened
            name = f"{name} ({len(files) + 1})"
        files[name] = {"sha256": file.sha256, "size": file.size}
    return files
