# SPDX-License-Identifier: GPL-2.0-or-later
"""A class's folder, read once and before anything is measured: what happens to it later changes no mark.

The files are copied to a folder of our own, since a class may hand in more than fits into memory.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import student_files, texts_of


@dataclass(frozen=True)
class Kept:
    """One file and where its copy lies."""

    name: str
    size: int
    sha256: str
    copy: Path


@dataclass(frozen=True)
class HandedIn:
    """What one student handed in for one exercise, as it was when it was read.

    refused  why it could not be read; then there are no files
    """

    folder: Path
    files: tuple[Kept, ...] = ()
    refused: BadInput | None = None

    def ruleset(self) -> list[RulesetFile]:
        """Raises BadInput where it is no ruleset; that is the student's failure."""
        if self.refused is not None:
            raise self.refused
        return texts_of(self.folder, ((file.name, _again(file.copy)) for file in self.files))


def _again(copy: Path) -> bytes:
    try:
        return copy.read_bytes()
    except OSError as error:
        raise CannotMeasure(f"{copy}: the copy of a submission is gone: {error.strerror}", "grade again") from error


class Submissions:
    """All that a class handed in. Close it, and the copies are gone."""

    def __init__(self) -> None:
        self._copies = tempfile.TemporaryDirectory(prefix="fwlab-submissions-")
        self._read: dict[str, dict[str, HandedIn]] = {}

    def read(self, student: str, exercise: str, folder: Path) -> HandedIn:
        """Raises BadInput where there is no room for the copies; what is wrong with the folder is the student's."""
        there = self._read.setdefault(student, {})
        there[exercise] = handed_in = self._of(folder, len(self._read), exercise)
        return handed_in

    def _of(self, folder: Path, number: int, exercise: str) -> HandedIn:
        files: list[Kept] = []
        try:
            for name, data in student_files(folder):
                copy = Path(self._copies.name) / f"{number}-{exercise}-{len(files)}"
                self._write(copy, data)
                files.append(Kept(name, len(data), hashlib.sha256(data).hexdigest(), copy))
        except NoRoom:
            raise
        except BadInput as error:
            return HandedIn(folder, refused=error)
        return HandedIn(folder, tuple(files))

    def _write(self, copy: Path, data: bytes) -> None:
        try:
            copy.write_bytes(data)
        except OSError as error:
            raise NoRoom(f"{copy}: cannot keep a submission: {error.strerror}", "make room, or set TMPDIR") from error

    def document(self) -> str:
        """By student, exercise and file what was read, as JSON; and why, where it could not be."""
        told = {
            student: {exercise: _told(handed_in) for exercise, handed_in in exercises.items()}
            for student, exercises in self._read.items()
        }
        return json.dumps(told, indent=1) + "\n"

    def close(self) -> None:
        self._copies.cleanup()


class NoRoom(BadInput):
    """Our own disk is full: nobody's fault that is graded."""


def _told(handed_in: HandedIn) -> dict:
    if handed_in.refused is not None:
        return {"refused": handed_in.refused.message}
    told: dict[str, dict] = {}
    for file in handed_in.files:
        name = printable(file.name)
        if name in told:  # two long names may differ in what was left out
            name = f"{name} ({len(told) + 1})"
        told[name] = {"sha256": file.sha256, "size": file.size}
    return told
