# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a class, read once before anything is measured, so that later changes do not affect marks.

They are copied to a temporary folder: a class may hand in more than fits into memory.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fwlab.grading.class_folder import Student, instead_of
from fwlab.grading.room import NoRoom
from fwlab.model.declared import Value
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import not_loaded, plain_files, texts_of


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
    """Everything that a class handed in. `close` deletes the copies. `inside`: a folder for them."""

    def __init__(self, inside: Path | None = None) -> None:
        self._copies = tempfile.TemporaryDirectory(prefix="fwlab-submissions-", dir=inside)
        #: Who handed in, by the name in marks.
        self.students: dict[str, Student] = {}
        #: What was odd about the class's folder, in words.
        self.odd: list[str] = []
        #: The numbers drawn for each, if tasks are individual.
        self.individual: dict[str, dict[str, Value]] = {}

    @property
    def scratch(self) -> Path:
        """Where an archive may be unpacked for a while."""
        return Path(self._copies.name)

    def copied(self, exercise: str, folder: Path, student: str) -> HandedIn:
        """Copy an exercise of the student who was added last. A faulty folder is recorded. Raises NoRoom."""
        if not os.path.lexists(folder):
            missing = f"nothing handed in: there is no {student}/{exercise}{instead_of(folder)}"
            return HandedIn(refused=BadInput(missing, "add the folder"))
        files: list[Kept] = []
        try:
            for name, data in plain_files(folder, exercise):
                copy = self.scratch / f"{len(self.students)}-{exercise}-{len(files)}"
                self._write(copy, data)
                files.append(Kept(name, len(data), hashlib.sha256(data).hexdigest(), str(copy)))
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

    def close(self) -> None:
        """Remove the copies."""
        self._copies.cleanup()


def told(handed_in: HandedIn) -> dict[str, Any]:
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
