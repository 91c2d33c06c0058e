# SPDX-License-Identifier: GPL-2.0-or-later
"""What `fwlab run` and `fwlab check` say before they measure, and what they keep of it for the student."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from fwlab.checkout.project import display_path
from fwlab.cli.output import plain
from fwlab.measure.context import RunContext
from fwlab.measure.work_folder import is_start
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome
from fwlab.report.formatting import check_words, quantity
from fwlab.report.model import ReportModel
from fwlab.student.hints import hints_of
from fwlab.student.measured import case_runs, estimate, keep_cases, measured_path
from fwlab.student.predictions import read_predictions
from fwlab.student.progress import Progress, next_step, read_progress, tries_in, update
from fwlab.student.workbook import needed_cases, predictions_of, workbook_of

err = Console(stderr=True)


def announce_cases(context: RunContext, specs: Sequence[MeasurementSpec]) -> None:
    """Say how long the cases will take, and which predictions of theirs are missing.

    Raises BadInput for damaged files of the student, before anything is measured.
    """
    lab, specified = context.lab, {spec.id for spec in specs}
    made = read_progress(lab).predictions
    missing = [
        asked.id
        for asked in predictions_of(context.project, lab)
        if asked.id not in made and specified & {case.id for case in needed_cases(lab.whole, asked)}
    ]
    if missing:
        plain(err, f"not predicted yet: {', '.join(missing)}: fwlab predict {lab.id}")
    what = specs[0].id if len(specs) == 1 else f"{len(specs)} cases"
    plain(err, f"{what}: {estimate(context.project, context.lab, [spec.id for spec in specs])}")


def before(context: RunContext, exercises: Sequence[Exercise]) -> list[str]:
    """What to tell about these exercises before they are measured: no prediction, no work yet.

    Raises BadInput for damaged files of the student, before anything is measured.
    """
    lab, told = context.lab, []
    progress, predictions = read_progress(lab), read_predictions(lab)
    workbook_of(context.project, lab)
    for exercise in exercises:
        if not (lab.folder / "work" / exercise.id).exists():
            told.append(f"{exercise.id}: not begun yet, so its start is measured: fwlab start {lab.id} {exercise.id}")
        elif progress.of(exercise.id).first_measured is None:
            if exercise.id not in predictions:
                what = "you have not predicted anything"
                told.append(f"{exercise.id}: {what}: fwlab predict {lab.id} {exercise.id} NUMBER")
            elif not _about(context, exercise):
                what = "your prediction is about the start, so it is not compared with these files"
                told.append(f"{exercise.id}: {what}. To measure the start first: fwlab reset {lab.id} {exercise.id}")
    return told


def _about(context: RunContext, exercise: Exercise) -> bool:
    """Whether the exercise's question is about the files that are in work/."""
    return not exercise.predict.start or is_start(context.lab, exercise, context.topology)


def comparable(
    context: RunContext, exercises: Sequence[Exercise], predictions: Mapping[str, float]
) -> dict[str, float]:
    """The predictions about the files that are in work/ now."""
    about = {exercise.id for exercise in exercises if _about(context, exercise)}
    return {name: value for name, value in predictions.items() if name in about}


def announce_exercises(
    context: RunContext, told: Sequence[str], bases: Sequence[MeasurementSpec], specs: Sequence[MeasurementSpec]
) -> None:
    """Say what will be loaded, and how long it will take."""
    for line in told:
        plain(err, line)
    for spec in specs:
        names = [file.name if file.text.strip() else f"{file.name} (empty)" for file in spec.files]
        files = ", ".join(names) or "no files: nothing is loaded"
        plain(err, "\n  ".join([f"{spec.id}: {files}", *spec.remarks]))
    plain(err, str(estimate(context.project, context.lab, [spec.id for spec in [*bases, *specs]])))


@contextlib.contextmanager
def kept(context: RunContext, run: Run) -> Iterator[None]:
    """Keep the cases of a run for the workbook; also those that were finished when it is interrupted.

    Nothing else fails if that cannot be done.
    """
    try:
        yield
    finally:
        if run.cases:
            _keep(context, run)


def _keep(context: RunContext, run: Run) -> None:
    try:
        keep_cases(context.project, context.lab, run)
    except BadInput as error:
        plain(err, f"not kept for the workbook: {error.message}")
        return
    if isinstance(sys.exception(), KeyboardInterrupt):
        path = display_path(context.project, measured_path(context.project, context.lab, run.dut.system))
        finished = "the finished case is" if len(run.cases) == 1 else f"{len(run.cases)} finished cases are"
        plain(err, f"{finished} kept: fwlab report {context.lab.id} {path}")


def to_compare(context: RunContext) -> str | None:
    """That predictions can be compared with what has been measured; None if none can."""
    lab, made = context.lab, read_progress(context.lab).predictions
    measured = {case.id for run in case_runs(context.project, lab) for case in run.cases}
    ready = [
        asked.id
        for asked in predictions_of(context.project, lab)
        if asked.id in made
        and made[asked.id].measured is None
        and {case.id for case in needed_cases(lab.whole, asked)} <= measured
    ]
    return f"next: fwlab predict {lab.id} {ready[0]} compares your prediction, and explains" if ready else None


def record(context: RunContext, model: ReportModel, predictions: dict[str, float]) -> list[str]:
    """Add a check to the progress. Returns what to tell about earlier tries, and what comes next.

    A full disk loses the record, not the result.
    """
    tried = tries_in(model, context.topology)
    earlier = read_progress(context.lab)

    def change(progress: Progress) -> Progress:
        return progress.with_tries(tried, predictions)

    try:
        progress = update(context.lab, change)
    except BadInput as error:
        plain(err, f"your progress was not recorded: {error.message}")
        progress = change(read_progress(context.lab))
    questions = [question.id for question in workbook_of(context.project, context.lab)]
    hints = hints_of(context.project, context.lab)
    told = [
        f'{name}: now say why it passes, in two sentences: fwlab answer {context.lab.id} {name} --why "..."'
        for name, one in tried.items()
        if one.outcome is Outcome.PASS and not progress.of(name).why
    ]
    told += [line for exercise in tried if (line := _last_time(context.lab, exercise, earlier))]
    return [*told, f"next: {next_step(context.lab, progress, predictions, questions, hints)}"]


def _last_time(lab: Lab, exercise_id: str, earlier: Progress) -> str | None:
    """What the try before this one came to; None for the first."""
    last, exercise = earlier.of(exercise_id).last, lab.exercise(exercise_id)
    if last is None or exercise is None:
        return None
    figure = "" if last.measured is None else f"{quantity(last.measured, METRICS[exercise.predict.metric])}, "
    failed = f": {'; '.join(map(check_words, last.failed))}" if last.failed else ""
    return f"{exercise_id}: the last time {figure}{last.outcome.value}{failed}"
