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

from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import plain_files, texts_of


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

    refused  why it could not be read; there are no files then
    """

    folder: Path
    files: tuple[Kept, ...] = ()
    refused: BadInput | None = None

    def ruleset(self) -> list[RulesetFile]:
        """The files as a ruleset. Raises BadInput if they are not one; that fails the student."""
        if self.refused is not None:
            raise self.refused
        return texts_of(self.folder, ((file.name, _again(file.copy)) for file in self.files))


def _again(copy: Path) -> bytes:
    try:
        return copy.read_bytes()
    except OSError as error:
        raise CannotMeasure(
            f"{copy}: the copy of a submission is gone: {error.strerror}", "start the grading again"
        ) from error


class Submissions:
    """Everything that a class handed in. `close` deletes the copies."""

    def __init__(self) -> None:
        self._copies = tempfile.TemporaryDirectory(prefix="fwlab-submissions-")
        self._read: dict[str, dict[str, HandedIn]] = {}

    def read(self, student: str, exercise: str, folder: Path) -> HandedIn:
        """Copy one student's exercise. Raises NoRoom if the copies do not fit; a faulty folder is recorded instead."""
        there = self._read.setdefault(student, {})
        there[exercise] = handed_in = self._of(folder, len(self._read), exercise)
        return handed_in

    def _of(self, folder: Path, number: int, exercise: str) -> HandedIn:
        if not os.path.lexists(folder):
            missing = printable(f"{folder.parent.name}/{folder.name}")
            return HandedIn(folder, refused=BadInput(f"nothing handed in: there is no {missing}", "add the folder"))
        files: list[Kept] = []
        try:
            for name, data in plain_files(folder):
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
            raise NoRoom(
                f"{copy}: cannot copy a submission: {error.strerror}", "free space there, or set TMPDIR"
            ) from error

    def document(self) -> str:
        """What was read, as JSON by student, exercise and file; for unreadable folders, the reason."""
        told = {
            student: {exercise: _told(handed_in) for exercise, handed_in in exercises.items()}
            for student, exercises in self._read.items()
        }
        return json.dumps(told, indent=1) + "\n"

    def close(self) -> None:
        """Remove the copies."""
        self._copies.cleanup()


class NoRoom(BadInput):
    """The host's disk is full. Not the fault of any student."""


def _told(handed_in: HandedIn) -> dict[str, Any]:
    if handed_in.refused is not None:
        return {"refused": handed_in.refused.message}
    told: dict[str, Any] = {}
    for file in handed_in.files:
        name = printable(file.name)
        if name in told:  # two long names can be equal once shortened
            name = f"{name} ({len(told) + 1})"
        told[name] = {"sha256": file.sha256, "size": file.size}
    return told
