# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab status`: what a student has done in a lab, and what comes next."""

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fwlab.checkout.project import Project, find_project, lab_ids
from fwlab.cli.options import Json, LabOrAll
from fwlab.cli.output import plain
from fwlab.cli.predictions import read_predictions
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Exercise, Lab
from fwlab.report.formatting import NOTHING, quantity, ratio
from fwlab.student.hints import hints_of
from fwlab.student.progress import ExerciseProgress, NextStep, Progress, in_order, next_step, read_progress
from fwlab.student.workbook import Question, workbook_of

out = Console()


def status_command(
    lab: LabOrAll = None,
    as_json: Json = False,
) -> None:
    """Show your progress in a lab: exercises, tries, hints, predictions, verdicts, and the command that comes next."""
    project = find_project()
    if lab is not None:
        _one(project, load_lab(project, lab), as_json)
        return
    found = [load_lab(project, name) for name in lab_ids(project)]
    documents = [_document(one, read_progress(one), *_sources(project, one)) for one in found]
    if as_json:
        sys.stdout.write(json.dumps(documents, indent=1, allow_nan=False) + "\n")
        return
    for document in documents:
        exercises = document["exercises"]
        passed = sum(one["passed"] for one in exercises)
        plain(out, f"{document['lab']:<20} {passed} of {len(exercises)} exercises passed")


def _sources(project: Project, lab: Lab) -> tuple[dict[str, float], list[Question], dict[str, list[str]]]:
    return read_predictions(lab), workbook_of(project, lab), hints_of(project, lab)


def _one(project: Project, lab: Lab, as_json: bool) -> None:
    progress = read_progress(lab)
    predictions, questions, hints = _sources(project, lab)
    if as_json:
        document = _document(lab, progress, predictions, questions, hints)
        sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
        return
    out.print(Text(f"{lab.id}: {lab.title}", style="bold"))
    table = Table(box=None, pad_edge=False)
    table.add_column("exercise", no_wrap=True)
    for name in ("tries", "hints", "predicted", "first measured"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("last verdict", overflow="fold")
    for exercise in in_order(lab):
        done = progress.of(exercise.id)
        table.add_row(*_cells(exercise, done, predictions.get(exercise.id), len(hints.get(exercise.id, []))))
    out.print(table)
    if questions:
        right = sum(progress.answers[q.id].right for q in questions if q.id in progress.answers)
        plain(out, f"workbook: {right} of {len(questions)} answers agree with your run")
    step = next_step(lab, progress, predictions, [question.id for question in questions], hints)
    plain(out, f"next: {step.command}" if step.command else f"next: {step.why}")
    if step.command:
        plain(out, f"      ({step.why})")


def _cells(exercise: Exercise, done: ExerciseProgress, predicted: float | None, hints: int) -> list[str]:
    metric, first = METRICS[exercise.predict.metric], done.first_measured
    value = done.predicted if first is not None else predicted
    measured = NOTHING
    if first is not None and first.measured is not None:
        measured = quantity(first.measured, metric)
        if value:
            measured += f" (×{ratio(first.measured / value)})"
    return [
        exercise.id + (" (further)" if exercise.further else ""),
        str(len(done.tries)) if done.tries else NOTHING,
        f"{done.hints}/{hints}" if hints else NOTHING,
        NOTHING if value is None else quantity(value, metric),
        measured,
        _verdict(done),
    ]


def _verdict(done: ExerciseProgress) -> str:
    last = done.last
    if last is None:
        return NOTHING
    words = last.outcome.value
    if last.failed:
        words += f": {', '.join(last.failed)}"
    return f"passed; last: {words}" if done.passed and last.failed else words


def _document(
    lab: Lab,
    progress: Progress,
    predictions: dict[str, float],
    questions: list[Question],
    hints: dict[str, list[str]],
) -> dict[str, Any]:
    step: NextStep = next_step(lab, progress, predictions, [question.id for question in questions], hints)
    exercises = []
    for exercise in in_order(lab):
        done = progress.of(exercise.id)
        first = done.first_measured
        exercises.append(
            {
                "id": exercise.id,
                "further": exercise.further,
                "tries": len(done.tries),
                "hints": done.hints,
                "predicted": done.predicted if first else predictions.get(exercise.id),
                "first_measured": first.measured if first else None,
                "last": done.last.outcome.value if done.last else None,
                "passed": done.passed,
                "solution_shown": done.solution,
            }
        )
    answers = {
        question.id: question.id in progress.answers and progress.answers[question.id].right for question in questions
    }
    return {"lab": lab.id, "exercises": exercises, "answers": answers, "next": step.command or None}
