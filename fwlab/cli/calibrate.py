# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab calibrate`: what this host's generator and its bare DUT can do on the real testbed."""

import re
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console

from fwlab.checkout.atomic_write import check_writable
from fwlab.checkout.project import display_path, find_project
from fwlab.cli.options import EngineName, Json, Keep, MachinesOf, Trials, Verbose
from fwlab.cli.output import print_json
from fwlab.generator.selection import AUTO
from fwlab.judge.verdicts import NEAR_CEILING
from fwlab.measure.calibration import HostClass, host_class_of, path_of, write_host_class
from fwlab.measure.context import run_context
from fwlab.measure.plan import case_spec
from fwlab.measure.session import open_session
from fwlab.metrics.capacity import CAPACITY, GENERATOR_RATE
from fwlab.model.errors import EXIT_PASS, EXIT_UNMEASURED, BadInput
from fwlab.report.progress import listener

#: The lab whose baseline is a DUT that forwards without any rule.
LAB = "lab01-forwarding"
#: Trials, unless asked for otherwise.
TRIALS = 10


def calibrate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for hosts like this one, such as epyc-7003.")],
    trials: Trials = TRIALS,
    as_json: Json = False,
    keep: Keep = False,
    verbose: Verbose = False,
    machines: MachinesOf = None,
    engine: EngineName = AUTO,
) -> None:
    """Measure this host's generator and bare DUT, and keep them as the class of this host."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise BadInput(f"{name}: a class has small letters, digits and hyphens", "fwlab calibrate epyc-7003")
    context = run_context(find_project(), LAB, "real", keep=keep, machines=machines, engine=engine)
    check_writable(path_of(context.project).parent)
    case = context.lab.cases[context.lab.baseline]
    spec = replace(
        case_spec(context, case, trials),
        metrics=[CAPACITY.name, GENERATOR_RATE.name],
        sampled=False,
        interleaved=None,
    )
    with listener(Console(stderr=True), verbose=verbose) as emit, open_session(context, emit) as session:
        session.measure_cases([spec])
    found = host_class_of(name, session.run, session.run.cases[0])
    path = write_host_class(context.project, found)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        _show(found, Console(), display_path(context.project, path))
    raise typer.Exit(EXIT_PASS if _fast_enough(found) else EXIT_UNMEASURED)


def _fast_enough(found: HostClass) -> bool:
    return found.bare_dut < NEAR_CEILING * found.ceiling


def _show(found: HostClass, console: Console, path: str) -> None:
    console.print(f"host class {found.name}, {found.setup.accelerator}, {found.setup.engine} over {found.setup.link}")
    console.print(f"generator flat out  {found.ceiling / 1e3:,.1f} kpps")
    console.print(f"bare DUT            {found.bare_dut / 1e3:,.1f} kpps ({found.case})")
    if not _fast_enough(found):
        limit = NEAR_CEILING * found.ceiling / 1e3
        console.print(f"figures above {limit:,.1f} kpps are inconclusive: the generator may have been the limit")
    console.print(f"written: {path}", soft_wrap=True)
