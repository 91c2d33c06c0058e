# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: parse, call, print, exit."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from fwlab import __version__
from fwlab.checkout.atomic_write import check_writable
from fwlab.checkout.project import find_project
from fwlab.cli import EXIT_INTERRUPTED, doctor, student, traffic, tries
from fwlab.cli.author import app as author_app
from fwlab.cli.calibrate import calibrate
from fwlab.cli.grade import grade_command, key_command, worker_command
from fwlab.cli.grades import app as grades_app
from fwlab.cli.grades import verify_command
from fwlab.cli.hold import hold_command
from fwlab.cli.init import init_command
from fwlab.cli.list_labs import list_command
from fwlab.cli.machines import app as machines_app
from fwlab.cli.options import (
    AlsoMetrics,
    CaseNames,
    CoreName,
    DrawnSeed,
    EngineName,
    Events,
    ExerciseName,
    Json,
    Keep,
    LabName,
    MachinesOf,
    PartName,
    SavedRun,
    Seed,
    TestbedName,
    Trials,
    Verbose,
    with_playable_traffic,
)
from fwlab.cli.output import plain
from fwlab.cli.own import compare_command, price_command
from fwlab.cli.perf_profile import profile_command
from fwlab.cli.student import task_command
from fwlab.cli.web import web_command
from fwlab.generator.selection import AUTO
from fwlab.grading.own_tests import measure_and_test, with_tests
from fwlab.measure.context import run_context
from fwlab.measure.core_models import modelled_specs
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import (
    base_cases,
    case_spec,
    case_specs,
    cases_of_part,
    chosen_exercises,
    work_spec,
)
from fwlab.measure.saved_runs import latest_run, load_run, report_folder, reports_folder, runs_of_other_systems
from fwlab.measure.session import open_session
from fwlab.measure.work_folder import ensure_started
from fwlab.model.errors import EXIT_PASS, EXIT_UNMEASURED, EXIT_USAGE, BadInput, FwlabError
from fwlab.model.events import EventSink
from fwlab.model.verdict import exit_code
from fwlab.report.files import RENDERERS, write_report
from fwlab.report.model import ReportModel, build_model
from fwlab.report.progress import json_lines, listener
from fwlab.report.renderers.terminal import show
from fwlab.report.report_rows import Row, overall_outcome
from fwlab.student.predictions import read_predictions

app = typer.Typer(
    help="Firewall Performance Lab: measure, judge and learn what a firewall rule costs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"fwlab {__version__}")
        raise typer.Exit


out = Console()
err = Console(stderr=True)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Firewall Performance Lab: measure, judge and learn what a firewall rule costs."""


def run_command(
    lab: LabName,
    cases: CaseNames = None,
    part: PartName = None,
    trials: Trials = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure only the cases marked quick.")] = False,
    also: AlsoMetrics = None,
    core: CoreName = "",
    as_json: Json = False,
    events: Events = False,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: Seed = 1,
    machines: MachinesOf = None,
    engine: EngineName = AUTO,
    output: Annotated[Path | None, typer.Option(help="Folder for the report (default: reports/LAB).")] = None,
) -> None:
    """Measure cases, judge them and write a report."""
    context = run_context(
        find_project(), lab, testbed, keep=keep, seed=seed, machines=machines, engine=engine, core=core
    )
    folder = output or reports_folder(context.project, lab)
    check_writable(folder)
    cases = [*(cases or []), *cases_of_part(context.lab, part)]
    specs = modelled_specs(core, case_specs(context, cases, trials, quick=quick, also=also or []))
    context = with_playable_traffic(context, specs)
    others = runs_of_other_systems(context.lab, context.topology.nodes["dut"].system, folder)
    tries.announce_cases(context, specs)
    with _events_to(verbose, events) as emit, open_session(context, emit) as session:
        session.require(also or [], specs if cases else [])
        with tries.kept(context, session.run):
            session.measure_cases(specs if cases else session.measurable(specs))
    model = build_model(context.lab, session.run, others)
    if events:
        write_report(model, folder)
    else:
        report(model, folder, "json" if as_json else None)
    if not (as_json or events) and (told := tries.to_compare(context)):
        plain(out, told)
    _exit_with(row for row in model.cases if row.system == session.run.dut.system)


def check_command(
    lab: LabName,
    exercise: ExerciseName = None,
    trials: Trials = None,
    as_json: Json = False,
    events: Events = False,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: DrawnSeed = None,
    machines: MachinesOf = None,
    engine: EngineName = AUTO,
) -> None:
    """Measure and judge your rulesets in the lab's work/ folder."""
    context = run_context(
        find_project(), lab, testbed, keep=keep, seed=seed, machines=machines, engine=engine, untrusted=True
    )
    exercises = chosen_exercises(context.lab, exercise)
    remarks = tries.before(context, exercises)
    specs = [work_spec(context, e, ensure_started(context, e), trials) for e in exercises]
    predictions = read_predictions(context.lab)
    bases = [case_spec(context, case, trials) for case in base_cases(context.lab, exercises)]
    folder = reports_folder(context.project, lab) / "check"
    check_writable(folder)
    context = with_playable_traffic(context, [*bases, *specs])
    tries.announce_exercises(context, remarks, bases, specs)
    err.print(f"seed {context.seed} draws the traffic; --seed {context.seed} draws the same again", highlight=False)
    with _events_to(verbose, events) as emit, open_session(context, emit) as session:
        session.measure_cases(bases)
        tests = measure_and_test(session, context, specs)
    session.run.predictions = tries.comparable(context, exercises, predictions)
    model = with_tests(build_model(context.lab, session.run), tests)
    told = tries.record(context, model, predictions)
    if events:
        write_report(model, folder)
    else:
        report(model, folder, "check-json" if as_json else None)
    if not (as_json or events):
        plain(out, "\n".join(told))
    _exit_with(model.exercises)


def _events_to(verbose: bool, events: bool) -> contextlib.AbstractContextManager[EventSink]:
    """Where events go: to the terminal, or as JSON to a program that reads standard output."""
    return contextlib.nullcontext(json_lines(sys.stdout)) if events else listener(err, verbose=verbose)


def report_command(
    lab: LabName,
    result: SavedRun = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write to (default: the folder of the run, but never results/).")
    ] = None,
    as_json: Json = False,
    form: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help=f"Print it as one of: {', '.join(RENDERERS)}.")
    ] = None,
) -> None:
    """Judge a finished run again and write its report; nothing is measured."""
    if form is not None and form not in RENDERERS:
        raise BadInput(f"unknown format {form}", f"use one of: {', '.join(RENDERERS)}")
    project = find_project()
    found = load_lab(project, lab)
    path = result or latest_run(project, found)
    run = load_run(path, lab)
    model = build_model(found, run, runs_of_other_systems(found, run.dut.system, path.parent))
    report(model, output or report_folder(project, lab, path), "json" if as_json else form)


def report(model: ReportModel, folder: Path, form: str | None) -> None:
    """Write the report. Print the tables and the path of its page; if a renderer is named, only its output."""
    try:
        page = write_report(model, folder)
    finally:  # also where there is no room for it
        if form is not None:
            sys.stdout.write(RENDERERS[form].render(model))
        else:
            show(model, out)
    if form is None:
        out.print(f"report: {page}", highlight=False, soft_wrap=True)


def _exit_with(rows: Iterable[Row]) -> None:
    outcome = overall_outcome(rows)
    raise typer.Exit(EXIT_PASS if outcome is None else exit_code([outcome]))


#: Commands, in the order of `fwlab --help`; those of a student's way through a lab come last.
COMMANDS: dict[str, Callable[..., None]] = {
    "init": init_command,
    "doctor": doctor.doctor,
    "list": list_command,
    "run": run_command,
    "check": check_command,
    "profile": profile_command,
    "hold": hold_command,
    "price": price_command,
    "compare": compare_command,
    "report": report_command,
    "web": web_command,
    "task": task_command,
    "grade": grade_command,
    "worker": worker_command,
    "key": key_command,
    "verify": verify_command,
    "calibrate": calibrate,
}
GROUPS = {"traffic": traffic.app, "grades": grades_app, "author": author_app, "machines": machines_app}
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
for _name, _command in student.COMMANDS.items():
    app.command(_name, rich_help_panel="A student's way through a lab")(_command)
for _name, _group in GROUPS.items():
    app.add_typer(_group, name=_name)


def main(commands: typer.Typer = app) -> None:
    """Run these commands. An error that the user can act on is two lines and an exit code, never a traceback."""
    # A time limit (`timeout`) ends this command as Ctrl-C does, so that machines it started are destroyed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup has it ignored
        terminals = [number for number in range(3) if os.isatty(number)]
        signal.signal(signal.SIGHUP, lambda *_: _hung_up(terminals))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # file names may not be printable text
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            commands()
        finally:
            sys.stdout.flush()
    except FwlabError as error:
        plain(err, f"fwlab: {error.message}")
        if error.hint:
            plain(err, f"  next: {error.hint}")
        sys.exit(error.exit_code)
    except SystemExit as leaving:
        if leaving.code == EXIT_INTERRUPTED:  # typer turns Ctrl-C into this
            err.print("fwlab: interrupted; everything that this command started has been stopped")
        raise
    except BrokenPipeError:
        _drop_output()
        sys.exit(EXIT_UNMEASURED)
    except OSError as error:
        _drop_output()
        message = (
            f"{error.filename}: {error.strerror}" if error.filename else f"cannot write: {error.strerror or error}"
        )
        plain(err, f"fwlab: {message}\n  next: df -h")
        sys.exit(EXIT_USAGE)


def _hung_up(terminals: Iterable[int]) -> NoReturn:
    """The terminal is gone. End as after Ctrl-C, and let nothing that is printed on the way fail."""
    for number in terminals:
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    raise KeyboardInterrupt


def _drop_output() -> None:
    """Redirect standard output to /dev/null, so that the interpreter does not fail again as it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
