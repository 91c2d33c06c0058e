# SPDX-License-Identifier: GPL-2.0-or-later
"""Join the parts of a class that were graded on several hosts into one grading."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fwlab.grading.class_results import Write, write_class, write_record
from fwlab.grading.course import Course
from fwlab.grading.marks import COLUMNS, NOT_YET, counted, harmless
from fwlab.grading.record import FILE, Grading, StudentRecord, WorkMark, read_grading
from fwlab.grading.similarity import Pair
from fwlab.host.atomic_write import write_atomically
from fwlab.host.yaml_files import LARGEST_FILE
from fwlab.model.errors import BadInput
from fwlab.model.verdict import Outcome

#: Where a merged grading keeps what each part measured.
PARTS = "parts"
_COPIED = ("run.json", "submissions.json", FILE)
#: submissions.json names every file of a class.
_LARGEST = 64 * LARGEST_FILE


def merge(folders: Sequence[Path]) -> Grading:
    """One record of all parts. Raises BadInput naming two parts that do not belong together, or disagree."""
    parts = [(folder, read_grading(folder)) for folder in folders]
    first_folder, first = parts[0]
    for folder, part in parts[1:]:
        why = _difference(first, part)
        if why is not None:
            raise BadInput(f"{first_folder} and {folder} cannot be joined: {why}", "grade one of them again")
    students: dict[str, StudentRecord] = {}
    works: dict[tuple[str, str], tuple[Path, WorkMark]] = {}
    pairs: list[Pair] = []
    for folder, part in parts:
        for student in part.students:
            students.setdefault(student.id, student)
        for work in part.works:
            key = (work.student, work.exercise)
            works[key] = _better(works.get(key), (folder, work))
        pairs += [pair for pair in part.similar if pair not in pairs]
    order = {exercise: place for place, exercise in enumerate(first.exercises)}
    listed = sorted((work for _, work in works.values()), key=lambda work: (work.student, order.get(work.exercise, -1)))
    every = sorted(students.values(), key=lambda student: student.id)
    return first.model_copy(update={"students": every, "works": listed, "similar": pairs})


def _difference(one: Grading, other: Grading) -> str | None:
    """Why two gradings are not parts of one; None if they may be."""
    if one.lab != other.lab:
        return f"{one.lab} and {other.lab}"
    changed = sorted(path for path in {*one.files, *other.files} if one.files.get(path) != other.files.get(path))
    if changed:
        return f"{changed[0]} was not the same"
    if one.exercises != other.exercises:
        return "the checks were not the same"
    if one.conditions is None or other.conditions is None:
        return "one of them never measured anything"
    if one.conditions.system != other.conditions.system:
        return None  # two halves of a lab for several systems: each decides the exercises of its own
    return one.conditions.difference(other.conditions)


def _better(kept: tuple[Path, WorkMark] | None, new: tuple[Path, WorkMark]) -> tuple[Path, WorkMark]:
    """The one that decides. Raises BadInput if both do, and differently."""
    if kept is None:
        return new
    (here, mine), (there, other) = kept, new
    decided = [mark.outcome in (Outcome.PASS, Outcome.FAIL) for mark in (mine, other)]
    if all(decided) and (mine.content, mine.outcome) != (other.content, other.outcome):
        what = "other files" if mine.content != other.content else f"{mine.outcome} and {other.outcome}"
        who = f"{mine.student}/{mine.exercise}"
        raise BadInput(f"{here} and {there} have different results for {who}: {what}", "remove one of them")
    if decided[1] and not decided[0]:
        return new
    return new if mine.outcome is None else kept


def write_merged(folders: Sequence[Path], output: Path, course: Course, write: Write = write_atomically) -> Grading:
    """Write the merged grading, its grades and pages, and a copy of each part's measurements. Raises BadInput."""
    if (output / FILE).exists():
        raise BadInput(f"{output} holds a grading already", "name a new folder")
    grading = merge(folders)
    submitted: dict[str, Any] = {}
    for folder in folders:
        for student, files in read_json(folder / "submissions.json").items():
            submitted.setdefault(student, files)
    for number, folder in enumerate(folders, 1):
        for name in _COPIED:
            write(output / PARTS / str(number) / name, read_text(folder / name))
    write(output / "submissions.json", json.dumps(submitted, indent=1) + "\n")
    write(output / "marks.csv", marks_csv(grading))
    write_class(grading, course, output, write)
    write_record(grading, output, write)  # last: only what is complete counts as a grading
    return grading


def marks_csv(grading: Grading) -> str:
    """The same table as a grading writes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for work in grading.works:
        passed = sum(check.outcome is Outcome.PASS for check in work.checks)
        verdict = work.outcome or NOT_YET
        known = grading.exercises.get(work.exercise)
        mark = counted(known is not None and known.further)
        writer.writerow([work.student, work.exercise, verdict, passed, len(work.checks), harmless(work.reason), mark])
    return out.getvalue()


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises BadInput naming the file."""
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON", "copy the whole folder of the grading") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path}: not a list of submissions", "copy the whole folder of the grading")
    return data


def read_text(path: Path) -> str:
    """A file of a grading. Raises BadInput naming it."""
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"{path}: more than {_LARGEST >> 20} MiB", "copy the whole folder of the grading")
        return path.read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", "copy the whole folder of the grading") from error
