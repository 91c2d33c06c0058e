# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a student is in a lab: what it asks and offers, what was done of it, and what comes next."""

from dataclasses import dataclass
from typing import Any

from fwlab.checkout.project import Project
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.student.hints import hints_of
from fwlab.student.predictions import read_predictions
from fwlab.student.progress import NextStep, Progress, in_order, next_step, read_progress
from fwlab.student.workbook import Asked, Question, predictions_of, workbook_of


@dataclass(frozen=True)
class Sources:
    """What a lab asks and offers, and the predictions of its exercises."""

    predictions: dict[str, float]
    asked: list[Asked]
    questions: list[Question]
    hints: dict[str, list[str]]

    def next_step(self, lab: Lab, progress: Progress) -> NextStep:
        """What comes next."""
        questions, asked = ([one.id for one in part] for part in (self.questions, self.asked))
        return next_step(lab, progress, self.predictions, questions, self.hints, asked)


def sources_of(project: Project, lab: Lab) -> Sources:
    """These, of the lab. Raises BadInput for a faulty file."""
    predictions, hints = read_predictions(lab), hints_of(project, lab)
    return Sources(predictions, predictions_of(project, lab), workbook_of(project, lab), hints)


def prediction_documents(project: Project, lab: Lab, question: str | None) -> list[dict[str, Any]]:
    """What `fwlab predict --json` prints: questions of the page and exercises, or the one of this name."""
    progress, predicted = read_progress(lab), read_predictions(lab)
    found = []
    for asked in predictions_of(project, lab):
        made = progress.predictions.get(asked.id)
        known = {"predicted": made.value if made else None, "measured": made.measured if made else None}
        found.append({"id": asked.id, "question": asked.question.strip(), "unit": asked.unit, **known})
    for exercise in lab.exercises:
        done = progress.of(exercise.id)
        first = done.first_measured
        known = {
            "predicted": done.predicted if first else predicted.get(exercise.id),
            "measured": first.measured if first else None,
        }
        asks = {"question": exercise.predict.question.strip(), "unit": METRICS[exercise.predict.metric].unit}
        found.append({"id": exercise.id, **asks, **known})
    return _of(found, question)


def answer_documents(project: Project, lab: Lab, question: str | None) -> list[dict[str, Any]]:
    """What `fwlab answer --json` prints: questions of the workbook and exercises, or the one of this name."""
    progress = read_progress(lab)
    found: list[dict[str, Any]] = []
    for asked in workbook_of(project, lab):
        given = progress.answers.get(asked.id)
        state = {"value": given.value, "right": given.right, "tries": given.tries, "why": given.why} if given else {}
        none = {"value": None, "right": False, "tries": 0, "why": ""}
        found.append({"id": asked.id, "question": asked.question.strip(), "unit": asked.unit, **none, **state})
    found += [{"id": exercise.id, "why": progress.of(exercise.id).why} for exercise in lab.exercises]
    return _of(found, question)


def _of(documents: list[dict[str, Any]], name: str | None) -> list[dict[str, Any]]:
    """Those of this name; an exercise may be named by its beginning."""
    there = [one for one in documents if name in (None, one["id"])]
    return there or [one for one in documents if one["id"].startswith(f"{name}-")]


def status_document(lab: Lab, progress: Progress, sources: Sources) -> dict[str, Any]:
    """What `fwlab status --json` prints."""
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
                "predicted": done.predicted if first else sources.predictions.get(exercise.id),
                "first_measured": first.measured if first else None,
                "last": done.last.outcome.value if done.last else None,
                "passed": done.passed,
                "solution_shown": done.solution,
                "explained": bool(done.why),
            }
        )
    given = progress.answers
    answers = {question.id: question.id in given and given[question.id].right for question in sources.questions}
    made = {one.id: progress.predictions[one.id].value for one in sources.asked if one.id in progress.predictions}
    predicted = {one.id: made.get(one.id) for one in sources.asked}
    step = sources.next_step(lab, progress)
    return {
        "lab": lab.id,
        "exercises": exercises,
        "predictions": predicted,
        "answers": answers,
        "next": step.command or None,
    }
