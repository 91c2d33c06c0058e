# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab hold`: look at the firewall. A ruleset stays on the DUT, a trickle of its traffic passes, a shell opens."""

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console

from fwlab.checkout.project import find_project
from fwlab.cli.options import (
    CaseOrExercise,
    EngineName,
    Keep,
    LabName,
    MachinesOf,
    Seed,
    TestbedName,
    Verbose,
    with_playable_traffic,
)
from fwlab.cli.output import plain
from fwlab.generator.selection import AUTO
from fwlab.host.ssh import Ssh
from fwlab.measure.context import RunContext, run_context
from fwlab.measure.plan import (
    case_spec,
    chosen_cases,
    chosen_exercises,
    known_cases,
    work_spec,
)
from fwlab.measure.session import open_session
from fwlab.measure.work_folder import ensure_started
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.case import Case
from fwlab.model.errors import EXIT_PASS, BadInput
from fwlab.model.events import EventSink, StepStarted, TerminalBack, TerminalLent
from fwlab.model.lab import Exercise, Lab
from fwlab.report.progress import listener


def hold_command(
    lab: LabName,
    name: CaseOrExercise,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="Run this on the DUT, as ssh does (default: a shell)."),
    ] = None,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: Seed = 1,
    machines: MachinesOf = None,
    engine: EngineName = AUTO,
) -> None:
    """Load a ruleset, play a trickle of its traffic, and open a shell on the DUT. It is reset when the shell ends."""
    context = run_context(
        find_project(), lab, testbed, keep=keep, seed=seed, machines=machines, engine=engine, untrusted=True
    )
    spec = held_spec(context, choose_held(context.lab, name))
    context = with_playable_traffic(context, [spec])
    err = Console(stderr=True)
    with listener(err, verbose=verbose) as emit, open_session(context, emit) as session:
        emit(StepStarted(f"loading {spec.id}"))
        with session.hold(spec) as played:
            with terminal_lent(emit):
                if not command:
                    words = f"{spec.id} is loaded; played: {played}. `exit` ends this shell and resets the DUT."
                    plain(err, words)
                status = Ssh(session.ssh_config, "dut").login(" ".join(command or []))
            emit(StepStarted("resetting the DUT"))
    raise typer.Exit(status if command else EXIT_PASS)


@contextlib.contextmanager
def terminal_lent(emit: EventSink) -> Iterator[None]:
    """Draw nothing while another program has the terminal."""
    emit(TerminalLent())
    try:
        yield
    finally:
        emit(TerminalBack())


def held_spec(context: RunContext, chosen: Case | Exercise, trials: int | None = None) -> MeasurementSpec:
    """What to load: a case, or the student's ruleset of an exercise. Raises BadInput."""
    if isinstance(chosen, Case):
        return case_spec(context, chosen, trials)
    return work_spec(context, chosen, ensure_started(context, chosen), trials)


def choose_held(lab: Lab, name: str, command: str = "hold") -> Case | Exercise:
    """The case or exercise of this name, for this command.

    Raises BadInput for a name that means none of them, or several.
    """
    exercise = next((e.id for e in lab.whole.exercises if name == e.id or e.id.startswith(f"{name}-")), None)
    if exercise is not None:
        return chosen_exercises(lab, name)[0]
    if not any(name in (case.id, case.sweep) for case in lab.whole.cases.values()):
        cases = known_cases(lab, name)
        known = f"{cases}; its exercises: {', '.join(exercise.id for exercise in lab.exercises)}"
        raise BadInput(f"{lab.id} has no case or exercise {name}; {known}", f"fwlab list {lab.id}")
    chosen = [case for case in chosen_cases(lab, [name]) if name in (case.id, case.sweep)]  # without the baseline
    if len(chosen) != 1:
        names = ", ".join(case.id for case in chosen)
        raise BadInput(f"{name} matches several cases: {names}", f"fwlab {command} {lab.id} {chosen[0].id}")
    return chosen[0]
