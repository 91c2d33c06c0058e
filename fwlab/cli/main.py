# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line. Prints and exits; everything else is done by the floors below."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fwlab.cli import author, traffic
from fwlab.cli import doctor as doctor_door
from fwlab.cli.entry import EXIT_INTERRUPTED
from fwlab.cli.perf_profile import profile_command
from fwlab.cli.predictions import read_predictions, write_prediction
from fwlab.generator.selection import AUTO
from fwlab.generator.selection import choose as choose_engine
from fwlab.host.atomic_write import refuse_unwritable
from fwlab.host.project import find_project, lab_ids, load_topology
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import base_cases, case_task, chosen_cases, chosen_exercises, ensure_started, work_task
from fwlab.measure.saved_runs import folder_beside, load_run, reports_folder
from fwlab.measure.session import open_session
from fwlab.measure.traffic_check import refuse_unplayable_traffic
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import EXIT_PASS, EXIT_UNMEASURED, EXIT_USAGE, FwlabError
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.model.verdict import exit_code
from fwlab.report import show, write_report
from fwlab.report.json_output import check_document, run_document
from fwlab.report.progress import listener
from fwlab.report.report_rows import case_rows, exercise_rows, overall_outcome
from fwlab.testbed.selection import TestbedRequest

app = typer.Typer(
    help="Firewall Performance Lab: measure, judge and learn what a firewall rule costs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(traffic.app, name="traffic")
app.add_typer(author.app, name="author")
app.command("doctor")(doctor_door.doctor)
app.command("profile")(profile_command)

out = Console()
err = Console(stderr=True)

LabName = Annotated[str, typer.Argument(metavar="LAB", help="A lab, such as lab03-ipset.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Trials = Annotated[int | None, typer.Option(min=1, max=1000, help="Trials of each case (default 5).")]
TestbedName = Annotated[str, typer.Option("--testbed", help="auto, virtual or real.")]
Keep = Annotated[bool, typer.Option("--keep", help="Leave the machines running that this command starts.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show what Vagrant says.")]
MachinesOf = Annotated[
    str | None, typer.Option("--machines", metavar="LAB", help="Measure on the machines of another lab that is up.")
]
EngineName = Annotated[str, typer.Option("--engine", help="auto (trex where its image holds it), trex or replay.")]
Seed = Annotated[int, typer.Option(help="Seeds what a traffic profile draws at random.")]


def _context(
    lab_id: str,
    testbed: str,
    keep: bool = False,
    seed: int = 1,
    machines: str | None = None,
    engine: str = AUTO,
) -> RunContext:
    project = find_project()
    lab = load_lab(project, lab_id)
    borrowed = load_lab(project, machines) if machines else None
    choose_engine(project, engine)  # told at once where there is none
    return RunContext(project, load_topology(project), lab, TestbedRequest(testbed), seed, keep, borrowed, engine)


@app.command("list")
def list_command(lab: Annotated[str | None, typer.Argument(metavar="LAB")] = None, as_json: Json = False) -> None:
    """The labs, or one lab's cases and exercises."""
    project = find_project()
    if lab is None:
        labs = [load_lab(project, lab_id) for lab_id in lab_ids(project)]
        if as_json:
            _print_json([{"id": x.id, "title": x.title, "minutes": x.minutes, "cases": len(x.cases)} for x in labs])
        else:
            for x in labs:
                out.print(f"[bold]{x.id}[/]  {x.title}  ({x.minutes} min, {len(x.cases)} cases)", highlight=False)
        return
    _list_lab(load_lab(project, lab), as_json)


def _list_lab(lab: Lab, as_json: bool) -> None:
    if as_json:
        cases = [
            {"id": c.id, "title": c.title, "metric": c.metric, "unit": METRICS[c.metric].unit}
            for c in lab.cases.values()
        ]
        exercises = [{"id": e.id, "title": e.title, "predict": e.predict.question} for e in lab.exercises]
        _print_json({"id": lab.id, "title": lab.title, "cases": cases, "exercises": exercises})
        return
    out.print(f"[bold]{lab.id}[/]  {lab.title}", highlight=False)
    for case in lab.cases.values():
        out.print(f"  {case.id:<24} {case.title}", highlight=False)
    out.print("exercises:")
    for exercise in lab.exercises:
        out.print(f"  {exercise.id:<24} {exercise.title}", highlight=False)


@app.command("run")
def run_command(
    lab: LabName,
    cases: Annotated[list[str] | None, typer.Argument(metavar="[CASE]...", help="Cases or sweeps (all).")] = None,
    trials: Trials = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the cases marked quick.")] = False,
    as_json: Json = False,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: Seed = 1,
    machines: MachinesOf = None,
    engine: EngineName = AUTO,
    output: Annotated[Path | None, typer.Option(help="Folder of the report (reports/LAB).")] = None,
) -> None:
    """Measure cases, judge them, write a report."""
    context = _context(lab, testbed, keep, seed, machines, engine)
    folder = output or reports_folder(context.project, lab)
    refuse_unwritable(folder)
    tasks = [case_task(context, case, trials) for case in chosen_cases(context.lab, cases or [], quick=quick)]
    refuse_unplayable_traffic(context, (task.traffic for task in tasks))
    with listener(err, verbose=verbose) as tell, open_session(context, tell) as session:
        session.measure_cases(tasks)
    page = write_report(context.lab, session.run, folder)
    _show(context.lab, session.run, page, run_document if as_json else None)
    _leave(case_rows(context.lab, session.run))


@app.command("check")
def check_command(
    lab: LabName,
    exercise: Annotated[str | None, typer.Argument(metavar="[EXERCISE]")] = None,
    trials: Trials = None,
    as_json: Json = False,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    machines: MachinesOf = None,
    engine: EngineName = AUTO,
) -> None:
    """Measure and judge what you wrote into the lab's work/ folder."""
    context = _context(lab, testbed, keep, machines=machines, engine=engine)
    exercises = chosen_exercises(context.lab, exercise)
    tasks = [work_task(context, e, ensure_started(context, e), trials) for e in exercises]
    predictions = read_predictions(context.lab)
    bases = [case_task(context, case, trials) for case in base_cases(context.lab, exercises)]
    folder = reports_folder(context.project, lab) / "check"
    refuse_unwritable(folder)
    refuse_unplayable_traffic(context, (task.traffic for task in [*bases, *tasks]))
    with listener(err, verbose=verbose) as tell, open_session(context, tell) as session:
        session.measure_cases(bases)
        session.measure_exercises(tasks)
    session.run.predictions = predictions
    page = write_report(context.lab, session.run, folder)
    _show(context.lab, session.run, page, check_document if as_json else None)
    _leave(exercise_rows(context.lab, session.run))


@app.command("start")
def start_command(lab: LabName, exercise: Annotated[str | None, typer.Argument(metavar="[EXERCISE]")] = None) -> None:
    """Copy an exercise's start (all of them) into the lab's work/ folder, where you write."""
    context = _context(lab, "virtual")
    for chosen in chosen_exercises(context.lab, exercise):
        out.print(f"{chosen.id}: {ensure_started(context, chosen)}", highlight=False, soft_wrap=True)


@app.command("predict")
def predict_command(
    lab: LabName,
    exercise: Annotated[str, typer.Argument()],
    number: Annotated[float | None, typer.Argument(help="What you expect, in the question's unit.")] = None,
) -> None:
    """Read an exercise's question, or write down what you expect before measuring."""
    project = find_project()
    found = load_lab(project, lab)
    chosen = chosen_exercises(found, exercise)[0]
    if number is None:
        out.print(chosen.predict.question.strip(), highlight=False)
        return
    write_prediction(found, chosen.id, number)
    out.print(f"{chosen.id}: you predict {number:,g} {METRICS[chosen.predict.metric].unit}", highlight=False)


@app.command("report")
def report_command(
    lab: LabName,
    result: Annotated[Path | None, typer.Argument(help="A run.json (the lab's latest).")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder to write to (beside the run; never results/).")] = None,
    as_json: Json = False,
) -> None:
    """Judge a finished run again and write its report anew; nothing is measured."""
    project = find_project()
    found = load_lab(project, lab)
    path = result or reports_folder(project, lab) / "run.json"
    run = load_run(path, lab)
    page = write_report(found, run, output or folder_beside(project, lab, path))
    _show(found, run, page, run_document if as_json else None)


@app.command("grade")
def grade_command(
    lab: LabName,
    submissions: Annotated[Path | None, typer.Option(help="One folder a student, in it one an exercise.")] = None,
    verbose: Verbose = False,
) -> None:
    """Grade a class: the same as `pytest --testinfra --lab LAB [--submissions DIR]`."""
    import pytest

    from fwlab.grading.guard import explicit

    project = find_project()
    load_lab(project, lab)
    arguments = [*explicit(), "-p", "no:cacheprovider", "--testinfra", "--lab", lab, *(["-v"] if verbose else [])]
    if submissions is not None:
        arguments.append(f"--submissions={submissions}")
    code = pytest.main(arguments)
    raise typer.Exit(EXIT_USAGE if code == pytest.ExitCode.USAGE_ERROR else int(code))


def _show(lab: Lab, run: Run, page: Path, document: Callable[[Lab, Run], Any] | None) -> None:
    """A table and where the page is; or the one document, for programs."""
    if document is not None:
        _print_json(document(lab, run))
    else:
        show(lab, run, out)
        out.print(f"report: {page}", highlight=False, soft_wrap=True)


def _leave(rows: list[Any]) -> None:
    outcome = overall_outcome(rows)
    raise typer.Exit(EXIT_PASS if outcome is None else exit_code([outcome]))


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")


def main() -> None:
    """The entry point: what a user can act on is two lines and an exit code, never a traceback."""
    # A time limit around this command ends it as Ctrl-C does: machines that it started go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name on disk need not be text that a terminal can show
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except FwlabError as error:
        err.print(f"fwlab: {error.message}", markup=False, highlight=False, soft_wrap=True)
        if error.hint:
            err.print(f"  next: {error.hint}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except SystemExit as leaving:
        if leaving.code == EXIT_INTERRUPTED:  # typer has turned Ctrl-C into this
            err.print("fwlab: interrupted; nothing was left running that this command started")
        raise
    except BrokenPipeError:
        _drop_output()
        sys.exit(EXIT_UNMEASURED)
    except OSError as error:
        _drop_output()
        said = f"{error.filename}: {error.strerror}" if error.filename else f"cannot write: {error.strerror or error}"
        err.print(f"fwlab: {said}\n  next: df -h", markup=False, highlight=False, soft_wrap=True)
        sys.exit(EXIT_USAGE)


def _drop_output() -> None:
    """Nobody takes standard output any more; the interpreter must not try again as it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
