# SPDX-License-Identifier: GPL-2.0-or-later
"""Judge a record again, without a machine, and say what has changed since."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fwlab.checkout.project import Project
from fwlab.grading.record import ExerciseRecord, Record, changed_files, lab_files, read_record
from fwlab.judge.checks import judge_exercise, judge_refused
from fwlab.measure.individual_tasks import individual_lab
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.model.verdict import TEST, overall


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
    """Judge what a grading's record has, by today's labs. Raises BadInput for a record that cannot be read."""
    found, record = Verified(), read_record(folder)
    lab = load_lab(project, record.begun.lab)
    found.changes += [
        f"{path} has changed since" for path in changed_files(record.begun.files, lab_files(project, lab))
    ]
    found.changes += _changed_limits(record, lab)
    labs: dict[str, Lab] = {}
    for work in record.grading().works:
        if not work.checks:  # what could not be measured at all cannot be judged again
            continue
        found.judged += 1
        if work.student not in labs:
            numbers = record.students[work.student].individual
            labs[work.student] = individual_lab(project, lab, numbers) if numbers else lab
        exercise, run = labs[work.student].whole.exercise(work.exercise), record.run_of(work)
        if exercise is None or work.measured is None:
            what = (
                "the lab has no such exercise any more" if exercise is None else "the record has no measurement of it"
            )
            found.faults.append(f"{work.student}/{work.exercise}: {work.outcome}: {what}")
            continue
        if run is None or not work.machines:
            verdicts = judge_refused(exercise, work.measured)
        else:
            verdicts = judge_exercise(exercise, work.measured, run, METRICS)
        tests = [check.outcome for check in work.checks if check.metric == TEST]  # only the machines can repeat them
        now = overall([*(verdict.outcome for verdict in verdicts), *tests])
        if now != work.outcome:
            why = next((verdict.text for verdict in verdicts if verdict.outcome is now), "")
            found.marks.append(Changed(work.student, work.exercise, str(work.outcome), now, why))
    return found


def _changed_limits(record: Record, lab: Lab) -> list[str]:
    changes = []
    now = {exercise.id: ExerciseRecord.of(exercise).checks for exercise in lab.whole.exercises}
    for exercise, before in record.begun.exercises.items():
        if exercise not in now:
            changes.append(f"{exercise}: gone from the lab")
            continue
        for check in {**before.checks, **now[exercise]}:
            was, new = before.checks.get(check), now[exercise].get(check)
            if was != new:
                changes.append(f"{exercise}: {check}: {_limits(was)}, now {_limits(new)}")
    return changes + [f"{exercise}: new in the lab" for exercise in now if exercise not in record.begun.exercises]


def _limits(check: dict[str, Any] | None) -> str:
    if check is None:
        return "not checked"
    low, high = check.get("between", (None, None))
    words = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    base = f" of {check['ratio_to']}" if "ratio_to" in check else ""
    return (" and ".join(word for word in words if word) or "anything") + base
