# SPDX-License-Identifier: GPL-2.0-or-later
"""What a student does between two measurements: start, predict, ask for a hint, start over, look at the solution."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fwlab.checkout.project import display_path, find_project
from fwlab.cli.options import ExerciseName, LabName, OneExercise, number, run_context
from fwlab.cli.output import plain
from fwlab.cli.predictions import read_predictions, write_prediction
from fwlab.cli.status import status_command
from fwlab.cli.workbook import answer_command
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import chosen_exercises
from fwlab.measure.work_folder import ensure_started, started_over
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.student.hints import hints_of, published_figure, shortened, solution
from fwlab.student.progress import read_progress, update

out = Console()
err = Console(stderr=True)


def start_command(lab: LabName, exercise: ExerciseName = None) -> None:
    """Copy the start of an exercise (default: of all) into the lab's work/ folder, where you edit it."""
    context = run_context(lab, "virtual")
    for chosen in chosen_exercises(context.lab, exercise):
        plain(out, f"{chosen.id}: {ensure_started(context, chosen)}")


def predict_command(
    lab: LabName,
    exercise: OneExercise,
    value: Annotated[
        float | None,
        typer.Argument(
            metavar="[NUMBER]", parser=number, help="The number that you expect, in the question's unit: 250000, 250k."
        ),
    ] = None,
) -> None:
    """Print an exercise's question, or record the number that you expect before measuring."""
    found = load_lab(find_project(), lab)
    chosen = chosen_exercises(found, exercise)[0]
    if value is None:
        out.print(chosen.predict.question.strip(), highlight=False)
        return
    metric = METRICS[chosen.predict.metric]
    first = read_progress(found).of(chosen.id).first_measured
    if first is not None:
        raise BadInput(
            f"{chosen.id} was measured on {first.at[:10]}; a prediction comes before that", f"fwlab status {found.id}"
        )
    write_prediction(found, chosen.id, value)
    share = metric.unit == "ratio"
    plain(out, f"{chosen.id}: you predict {f'{100 * value:,g} %' if share else f'{value:,g} {metric.unit}'}")
    if metric.unit == "pps" and 1 <= value < 1000:
        plain(out, f"  That is {value:g} packets per second. Tables show thousands (kpps): did you mean {value:g}k?")
    if share and value > 1:
        plain(out, "  The question asks for a share, from 0 to 1. A percentage is written with its sign: 19%.")


def hint_command(
    lab: LabName,
    exercise: OneExercise,
    everything: Annotated[bool, typer.Option("--all", help="Show all hints at once.")] = False,
) -> None:
    """Show one more hint for an exercise, each stronger than the last. They are counted in `fwlab status`."""
    project = find_project()
    found = load_lab(project, lab)
    chosen = chosen_exercises(found.whole, exercise)[0].id
    hints = hints_of(project, found).get(chosen, [])
    if not hints:
        raise BadInput(
            f"{found.id} has no hints for {chosen}", f"fwlab check {found.id} {chosen}, which says what to look at"
        )
    before = min(read_progress(found).of(chosen).hints, len(hints))
    count = len(hints) if everything else min(before + 1, len(hints))
    update(found, lambda progress: progress.with_exercise(chosen, hints=max(count, progress.of(chosen).hints)))
    if not everything and before == len(hints):
        plain(out, f"These were all hints for {chosen}:")
    for index in range(count) if everything or before == len(hints) else [count - 1]:
        plain(out, f"hint {index + 1} of {len(hints)}: {hints[index]}")


def reset_command(lab: LabName, exercise: ExerciseName = None) -> None:
    """Put an exercise (default: all) back to its start. What was there is kept beside it. Progress stays."""
    context = run_context(lab, "virtual")
    for chosen in chosen_exercises(context.lab, exercise):
        _start_over(context, chosen)


def goto_command(lab: LabName, exercise: OneExercise) -> None:
    """Begin at an exercise: its folder in work/ becomes its start, and `fwlab status` goes on from there."""
    context = run_context(lab, "virtual")
    chosen = chosen_exercises(context.lab, exercise)[0]
    read_progress(context.lab)  # a damaged file is reported before anything is moved
    _start_over(context, chosen)
    update(context.lab, lambda progress: progress.model_copy(update={"current": chosen.id}))
    if not _predicted(context.lab, chosen.id):
        plain(out, f"next: fwlab predict {context.lab.id} {chosen.id}")


def _predicted(lab: Lab, exercise: str) -> bool:
    return exercise in read_predictions(lab) or read_progress(lab).of(exercise).first_measured is not None


def _start_over(context: RunContext, exercise: Exercise) -> None:
    kept = started_over(context, exercise)
    folder = display_path(context.project, context.lab.folder / "work" / exercise.id)
    plain(out, f"{exercise.id}: {folder} is the start")
    if kept is not None:
        plain(out, f"  what was there is kept in {display_path(context.project, kept)}")


def solution_command(lab: LabName, exercise: OneExercise) -> None:
    """Print the lab's own solution and why it passes: once you have passed, or tried often enough."""
    context = run_context(lab, "virtual")
    chosen = chosen_exercises(context.lab, exercise)[0]
    hinted = chosen.id in hints_of(context.project, context.lab)
    found = solution(context.lab, chosen, read_progress(context.lab), context.topology, hinted=hinted)
    update(context.lab, lambda progress: progress.with_exercise(chosen.id, solution=True))
    for name, text in found.files.items():
        plain(out, f"{_source(context, found.folder, name)}:")
        plain(out, "\n".join(f"    {line}" for line in shortened(text).splitlines()) or "    (empty)")
    if measured := published_figure(context.project, context.lab, chosen):
        plain(out, f"\nmeasured: {measured}")
    for check, why, passed in found.reasons:
        plain(out, f"\n{check}: {passed}\n  Why: {why}")


def _source(context: RunContext, folder: Path, name: str) -> str:
    """The file as it is in the checkout; a template has another ending there."""
    there = next(path for path in (folder / name, folder / f"{name}.j2") if path.exists())
    return display_path(context.project, there)


#: In the order in which a student needs them.
COMMANDS: dict[str, Callable[..., None]] = {
    "status": status_command,
    "predict": predict_command,
    "start": start_command,
    "hint": hint_command,
    "answer": answer_command,
    "solution": solution_command,
    "reset": reset_command,
    "goto": goto_command,
}
