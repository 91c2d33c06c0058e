# SPDX-License-Identifier: GPL-2.0-or-later
"""Join the parts of a class that were graded apart: read their records, and write one."""

from collections.abc import Sequence
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.grading.class_results import Write, write_class
from fwlab.grading.course import Course
from fwlab.grading.marks import marks_csv
from fwlab.grading.record import FILE, Conditions, Record, Similar, WorkMark, read_record
from fwlab.model.errors import BadInput
from fwlab.model.verdict import Outcome


def merge(folders: Sequence[Path]) -> Record:
    """One record of all parts. Raises BadInput naming two parts that do not belong together, or disagree."""
    parts = [(folder, read_record(folder)) for folder in folders]
    first_folder, first = parts[0]
    for folder, part in parts[1:]:
        why = first.begun.difference(part.begun) or _other_conditions(first, part)
        if why is not None:
            raise BadInput(f"{first_folder} and {folder} cannot be joined: {why}", "grade one of them again")
    merged = Record(first.begun)
    works: dict[tuple[str, str], tuple[Path, WorkMark]] = {}
    for folder, part in parts:
        for student in part.students.values():
            known = merged.students.get(student.id)
            files = {**(known.files if known else {}), **student.files}
            merged.add(student.model_copy(update={"files": files}))
        merged.add(*part.machines.values())
        for work in part.grading().works:
            works[work.key] = _better(works.get(work.key), (folder, work))
    merged.add(*(work for _, work in works.values() if work.outcome is not None))
    pairs = dict.fromkeys(pair for _, part in parts for pair in part.similar)
    merged.add(Similar(pairs=list(pairs)))
    return merged


def _other_conditions(one: Record, other: Record) -> str | None:
    """Why figures of two records cannot be joined; None if they may be."""
    runs = one.run(), other.run()
    if runs[0] is None or runs[1] is None:
        return "one of them never measured anything"
    mine, its = Conditions.of(runs[0]), Conditions.of(runs[1])
    # Two halves of a lab for several systems each decide the exercises of their own.
    return None if mine.system != its.system else mine.difference(its)


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


def write_merged(folders: Sequence[Path], output: Path, course: Course, write: Write = write_atomically) -> Record:
    """Write the merged record, its marks, grades and pages. Raises BadInput."""
    if (output / FILE).exists():
        raise BadInput(f"{output} holds a grading already", "name a new folder")
    record = merge(folders)
    grading = record.grading()
    write(output / "marks.csv", marks_csv(grading))
    write_class(grading, course, output, write)
    write(output / FILE, record.lines().decode())  # last: only what is complete counts as a grading
    return record
