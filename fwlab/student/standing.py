# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a student stands in a lab, and which command comes next. Pure but for looking into work/."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from fwlab.judge.statistics import figure
from fwlab.measure.work_folder import is_start
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Exercise, Lab
from fwlab.model.topology import Topology
from fwlab.model.verdict import Outcome
from fwlab.report.model import ReportModel
from fwlab.student.progress import ExerciseProgress, Progress, Try, now


@dataclass(frozen=True)
class NextStep:
    """The command to type now, and what it is for. Without a command there is nothing left to do."""

    why: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.why}: {self.command}" if self.command else self.why


def in_order(lab: Lab) -> list[Exercise]:
    """The exercises as a student takes them: the core, then what goes further."""
    return sorted(lab.whole.exercises, key=lambda exercise: exercise.further)


def next_step(
    lab: Lab, progress: Progress, predictions: Mapping[str, float], questions: Sequence[str], hinted: Container[str]
) -> NextStep:
    """What comes next. `questions`: the ids of the lab's workbook; `hinted`: exercises for which there are hints."""
    order = in_order(lab)
    names = [exercise.id for exercise in order]
    if progress.current in names:  # goto: begin there, and come back to what was left out
        at = names.index(progress.current)
        order = order[at:] + order[:at]
    for exercise in order:
        done = progress.of(exercise.id)
        if not done.passed:
            return _of_exercise(lab, exercise.id, done, exercise.id in predictions, exercise.id in hinted)
    for question in questions:
        answer = progress.answers.get(question)
        if answer is None or not answer.right:
            return NextStep("a question of the workbook is open", f"fwlab answer {lab.id} {question}")
        if not answer.why:
            return NextStep("an answer lacks its reason", f'fwlab answer {lab.id} {question} --why "..."')
    return NextStep(f"all done: hand in what is in labs/{lab.id}/work/")


def _of_exercise(lab: Lab, exercise: str, done: ExerciseProgress, predicted: bool, hinted: bool) -> NextStep:
    if not predicted and done.first_measured is None:
        return NextStep("predict, before you measure", f"fwlab predict {lab.id} {exercise}")
    if not (lab.folder / "work" / exercise).is_dir():
        return NextStep("copy the start into work/", f"fwlab start {lab.id} {exercise}")
    if done.last is None:
        return NextStep(f"edit labs/{lab.id}/work/{exercise}/, then check it", f"fwlab check {lab.id} {exercise}")
    if done.last.outcome is Outcome.INCONCLUSIVE:
        return NextStep("the measurement could not decide; check again", f"fwlab check {lab.id} {exercise}")
    stuck = f" (or: fwlab hint {lab.id} {exercise})" if hinted else ""
    return NextStep(f"change labs/{lab.id}/work/{exercise}/ and check again{stuck}", f"fwlab check {lab.id} {exercise}")


def tries_in(model: ReportModel, topology: Topology) -> dict[str, Try]:
    """By exercise, what a check found out."""
    found = {}
    at = now()
    for row in model.exercises:
        exercise = model.lab.exercise(row.id)
        if exercise is None or row.outcome is None:
            continue
        value = None
        if not row.problems and row.outcome is not Outcome.INCONCLUSIVE:
            value = figure(row.measured, METRICS[exercise.predict.metric], model.run.testbed)
        found[row.id] = Try(
            at=at,
            ruleset=row.measured.ruleset_hash,
            start=is_start(model.lab, exercise, topology),
            outcome=row.outcome,
            failed=[verdict.check for verdict in row.verdicts if verdict.outcome is not Outcome.PASS],
            measured=value.median if value else None,
        )
    return found
