# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab profile`: where the cost of a packet goes, function by function of the DUT's kernel."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fwlab.checkout.atomic_write import check_writable
from fwlab.checkout.project import find_project
from fwlab.cli.hold import choose_held, held_spec
from fwlab.cli.options import (
    CaseOrExercise,
    CoreName,
    Json,
    Keep,
    LabName,
    MachinesOf,
    Seed,
    TestbedName,
    Trials,
    Verbose,
    with_playable_traffic,
)
from fwlab.cli.output import print_json
from fwlab.judge.clocks import clock_of
from fwlab.measure.context import run_context
from fwlab.measure.core_models import FunctionCost, core_profile, modelled_specs
from fwlab.measure.saved_runs import reports_folder
from fwlab.measure.session import open_session
from fwlab.metrics.call_stacks import shares
from fwlab.model.errors import EXIT_PASS, EXIT_UNMEASURED, BadInput
from fwlab.model.lab import Exercise
from fwlab.model.metric import MAIN_METRIC
from fwlab.model.results import Run
from fwlab.report import formatting
from fwlab.report.files import write_report
from fwlab.report.model import build_model
from fwlab.report.progress import listener
from fwlab.report.report_rows import Row

#: Rows of the table; the page has all functions.
SHOWN = 25


def profile_command(
    lab: LabName,
    name: CaseOrExercise,
    trials: Trials = None,
    functions: Annotated[int, typer.Option(min=1, help="Number of functions to print.")] = SHOWN,
    as_json: Json = False,
    core: CoreName = "",
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: Seed = 1,
    machines: MachinesOf = None,
    output: Annotated[Path | None, typer.Option(help="Folder for the report (default: reports/LAB/profile).")] = None,
) -> None:
    """Measure one case, or your ruleset of an exercise, and sample the DUT under load, by kernel function.

    With --model, also count by function what a core executes and waits for.
    """
    context = run_context(find_project(), lab, testbed, keep=keep, seed=seed, machines=machines, core=core)
    project, found = context.project, context.lab
    chosen = choose_held(found, name, "profile")
    own = isinstance(chosen, Exercise)
    spec = held_spec(context, chosen, trials)
    if spec.traffic is None or found.traffic[spec.traffic].connections is not None:
        raise BadInput(f"{name}: only a case with a traffic profile can be sampled", f"fwlab list {found.id}")
    [spec] = modelled_specs(core, [dataclasses.replace(spec, metrics=[MAIN_METRIC], sampled=True)])
    folder = output or reports_folder(project, lab) / "profile"
    check_writable(folder)
    context = with_playable_traffic(context, [spec])
    err = Console(stderr=True)
    with listener(err, verbose=verbose) as emit, open_session(context, emit) as session:
        if own:  # it may break the DUT, so the DUT's state is saved first
            session.measure_exercises([spec])
            session.run.cases, session.run.exercises = session.run.exercises, []
        else:
            session.measure_cases([spec])
    model = build_model(found, session.run)
    page = write_report(model, folder)
    row = model.cases[0]
    if as_json:
        print_json(_document(row, session.run))
    else:
        _show(row, session.run, functions, Console())
        Console().print(f"report: {page}", highlight=False, soft_wrap=True)
    raise typer.Exit(EXIT_PASS if row.measured.stacks and not row.problems else EXIT_UNMEASURED)


def _cost(row: Row) -> float | None:
    capacity = row.of(MAIN_METRIC)
    return capacity.cost if capacity else None


def _show(row: Row, run: Run, functions: int, console: Console) -> None:
    cost, stacks = _cost(row), row.measured.stacks
    console.print(f"[bold]{row.id}[/]: {row.title}", highlight=False)
    console.print(formatting.describe_testbed(run.testbed), style="dim", highlight=False)
    for problem in row.problems:
        console.print(problem, style="yellow", highlight=False, markup=False)
    if cost is not None:
        words = f"{formatting.digits(cost)} {clock_of(run.testbed).cost_unit}"
        console.print(f"{words}, {worth(sum(stacks.values()))}", highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("function", overflow="fold")
    for head in ("own", clock_of(run.testbed).cost_heading, "with callees"):
        table.add_column(head, justify="right")
    for share in shares(stacks)[:functions]:
        own = formatting.digits(share.own * cost, 3) if cost is not None else formatting.NOTHING
        table.add_row(share.name, formatting.percent(share.own), own, formatting.percent(share.whole))
    if stacks:
        console.print(table)
    core = core_profile(row.measured, run.testbed)
    if core is not None:
        waits = formatting.percent(core.waits / core.cycles)
        words = f"{formatting.digits(core.cycles)} cycles per packet, of which it waits {waits}"
        console.print(f"\n{core.title}, modelled: {words}", highlight=False)
        console.print(_core_table(core.functions[:functions]))


def _core_table(costs: Sequence[FunctionCost]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("function", overflow="fold")
    for head in ("instr/pkt", "cycles/pkt", "memory", "branches", "locks"):
        table.add_column(head, justify="right")
    for one in costs:
        figures = (one.instructions, one.cycles, one.memory, one.branches, one.locks)
        table.add_row(one.name, *(f"{value:.1f}" for value in figures))
    return table


def worth(count: int) -> str:
    """How many samples there are, and what they are worth: the standard error of a share of a tenth."""
    if not count:
        return "no samples"
    points = 100 * math.sqrt(0.1 * 0.9 / count)
    return f"{count} samples: a share of 10 % is accurate to about {points:.1f} percentage points"


def _document(row: Row, run: Run) -> dict[str, Any]:
    cost, stacks = _cost(row), row.measured.stacks
    core = core_profile(row.measured, run.testbed)
    return {
        "lab": run.lab,
        "case": row.id,
        "cost": cost,
        "unit": clock_of(run.testbed).cost_unit,
        "samples": sum(stacks.values()),
        "functions": [dataclasses.asdict(share) for share in shares(stacks)],
        "modelled": [dataclasses.asdict(one) for one in core.functions] if core is not None else [],
        "problems": list(row.problems),
        "refused": row.measured.refused,
    }
