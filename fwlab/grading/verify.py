# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge stored results of a class again, without a machine, and say what has changed since."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fwlab.grading.marks import NOT_YET
from fwlab.grading.merge import PARTS, read_json, read_text
from fwlab.grading.record import FILE, ExerciseRecord, Grading, content_of_told, measured_of, read_grading
from fwlab.grading.resume import changed_files
from fwlab.host.project import Project
from fwlab.judge.verdicts import judge_exercise
from fwlab.measure.individual_tasks import individual_lab
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.verdict import overall


@dataclass(frozen=True)
class Changed:
    """A mark that would be another one today. `was` and `now` are verdicts."""

    student: str
    exercise: str
    was: str
    now: str
    why: str


@dataclass
class Verified:
    """What came out. `changes` says which files and limits differ from those of the grading."""

    judged: int = 0
    changes: list[str] = field(default_factory=list)
    marks: list[Changed] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def verify(project: Project, folder: Path) -> Verified:
    """Judge a grading's folder, or the parts of a merged one. Raises BadInput for files that cannot be read."""
    found = Verified()
    parts = sorted((folder / PARTS).iterdir()) if (folder / PARTS).is_dir() else [folder]
    for part in parts:
        _verify_part(project, part, found)
    found.changes = list(dict.fromkeys(found.changes))
    return found


def _verify_part(project: Project, folder: Path, found: Verified) -> None:
    grading = read_grading(folder) if (folder / FILE).exists() else None
    lab = load_lab(project, grading.lab if grading else _lab_of(folder))
    run = load_run(folder / "run.json", lab.id)
    submitted = read_json(folder / "submissions.json")
    if grading is None:
        found.changes.append(f"{folder}: no {FILE}, so nobody can say which files or limits have changed since")
    else:
        found.changes += [f"{path} has changed since" for path in changed_files(grading, project, lab)]
        found.changes += _changed_limits(grading, lab)
        found.faults += _changed_submissions(grading, submitted)
    labs: dict[str, Lab] = {}
    for student, exercise, was in _marks(folder, grading):
        found.judged += 1
        if student not in labs:
            labs[student] = _lab_of_student(project, lab, grading, student)
        declared, measured = labs[student].whole.exercise(exercise), measured_of(run, student, exercise)
        if declared is None or measured is None:
            what = "the lab has no such exercise any more" if declared is None else "run.json has no measurement of it"
            found.faults.append(f"{student}/{exercise}: {was}: {what}")
            continue
        verdicts = judge_exercise(declared, measured, run, METRICS)
        now = overall([verdict.outcome for verdict in verdicts])
        if now != was:
            why = next((verdict.text for verdict in verdicts if verdict.outcome is now), "")
            found.marks.append(Changed(student, exercise, was, now, why))


def _lab_of_student(project: Project, lab: Lab, grading: Grading | None, student: str) -> Lab:
    numbers = next((one.individual for one in grading.students if one.id == student), {}) if grading else {}
    return individual_lab(project, lab, numbers) if numbers else lab


def _lab_of(folder: Path) -> str:
    """The lab of a run, for a grading that has no record."""
    try:
        return str(json.loads(read_text(folder / "run.json"))["lab"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise BadInput(f"{folder / 'run.json'}: not a run of fwlab", "name the folder of a grading") from error


def _marks(folder: Path, grading: Grading | None) -> Iterator[tuple[str, str, str]]:
    """Student, exercise and verdict of what was judged. What could not be measured at all cannot be judged again."""
    if grading is not None:
        for work in grading.works:
            if work.checks and work.outcome is not None:
                yield work.student, work.exercise, work.outcome
        return
    for row in csv.DictReader(io.StringIO(read_text(folder / "marks.csv"))):
        who, exercise, verdict = (row.get(name) or "" for name in ("who", "exercise", "verdict"))
        if verdict != NOT_YET:
            yield who, exercise, verdict


def _changed_limits(grading: Grading, lab: Lab) -> list[str]:
    told = []
    now = {exercise.id: ExerciseRecord.of(exercise).checks for exercise in lab.whole.exercises}
    for exercise, before in grading.exercises.items():
        if exercise not in now:
            told.append(f"{exercise}: gone from the lab")
            continue
        for check in {**before.checks, **now[exercise]}:
            was, new = before.checks.get(check), now[exercise].get(check)
            if was != new:
                told.append(f"{exercise}: {check}: {_limits(was)}, now {_limits(new)}")
    return told + [f"{exercise}: new in the lab" for exercise in now if exercise not in grading.exercises]


def _limits(check: dict[str, Any] | None) -> str:
    if check is None:
        return "not checked"
    low, high = check.get("between", (None, None))
    words = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    base = f" of {check['ratio_to']}" if "ratio_to" in check else ""
    return (" and ".join(word for word in words if word) or "anything") + base


def _changed_submissions(grading: Grading, submitted: dict[str, Any]) -> list[str]:
    """Works whose files, by submissions.json, are not those that the record was made of."""
    told = []
    for work in grading.works:
        files = submitted.get(work.student, {}).get(work.exercise)
        if files is None or content_of_told(files) != work.content:
            told.append(f"{work.student}/{work.exercise}: submissions.json does not have the files that were graded")
    return told
