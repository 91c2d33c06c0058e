# SPDX-License-Identifier: GPL-2.0-or-later
"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from fwlab.generator.selection import AUTO, ENGINES
from fwlab.generator.selection import choose as choose_engine
from fwlab.host.project import find_project
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab, on_dut
from fwlab.testbed.dut_choice import topology_of
from fwlab.testbed.selection import TestbedRequest
from fwlab.testbed.testbeds import TESTBEDS

LabName = Annotated[str, typer.Argument(metavar="LAB", help="A lab, such as lab03-ipset.")]
ExerciseName = Annotated[
    str | None, typer.Argument(metavar="[EXERCISE]", help="One of the lab's exercises (default: all).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Trials = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Trials per case (default 5; at least 6 on the real testbed).")
]
TestbedName = Annotated[
    str, typer.Option("--testbed", help=f"The testbed: auto, {' or '.join(sorted(TESTBEDS, reverse=True))}.")
]
AlsoMetrics = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="METRIC", help="Measure this too, such as throughput or frmol; may be repeated."),
]
Keep = Annotated[bool, typer.Option("--keep", help="Leave machines running that this command starts.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of Vagrant.")]
MachinesOf = Annotated[
    str | None, typer.Option("--machines", metavar="LAB", help="Use the machines of another lab, which must be up.")
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine", help=f"The traffic engine: auto (trex if the image has it), or one of: {', '.join(ENGINES)}."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed for the random choices of a traffic profile.")]
SavedRun = Annotated[Path | None, typer.Argument(metavar="[RUN.json]", help="A saved run (default: the lab's latest).")]


def run_context(
    lab_id: str,
    testbed: str,
    *,
    keep: bool = False,
    seed: int = 1,
    machines: str | None = None,
    engine: str = AUTO,
) -> RunContext:
    """What a command is about. Raises BadInput for a wrong name, CannotMeasure for an engine that is not there."""
    project = find_project()
    lab = load_lab(project, lab_id)
    other_lab = load_lab(project, machines) if machines else None
    choose_engine(project, engine)  # to fail at once if it is not there
    topology = topology_of(project, other_lab or lab)
    lab = on_dut(lab, topology, other_lab or lab)
    return RunContext(project, topology, lab, TestbedRequest(testbed), seed, keep, other_lab, engine)
