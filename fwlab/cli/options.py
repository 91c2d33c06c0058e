# SPDX-License-Identifier: GPL-2.0-or-later
"""Arguments and options that several commands share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fwlab.checkout.project import find_project, lab_ids
from fwlab.cli import completion
from fwlab.generator.selection import ENGINES
from fwlab.measure.context import RunContext
from fwlab.measure.plan import reject_unplayable_traffic, with_able_engine
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.student.predictions import number_in
from fwlab.testbed.testbeds import TESTBEDS


def full_lab_name(name: str | None) -> str | None:
    """The lab that is meant: `lab03` is enough where only one lab begins so."""
    if name is None:
        return None
    matching = [lab for lab in lab_ids(find_project()) if lab.startswith(f"{name}-")]
    return matching[0] if len(matching) == 1 else name


def number(text: str) -> float:
    """A number as people type it. Raises typer.BadParameter, with examples."""
    try:
        return number_in(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


LabName = Annotated[
    str,
    typer.Argument(
        metavar="LAB",
        help="A lab, such as lab03-ipset, or lab03.",
        autocompletion=completion.labs,
        callback=full_lab_name,
    ),
]
LabOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="[LAB]",
        help="A lab, such as lab03-ipset, or lab03 (default: all).",
        autocompletion=completion.labs,
        callback=full_lab_name,
    ),
]
CaseOrExercise = Annotated[
    str,
    typer.Argument(
        metavar="CASE|EXERCISE",
        help="A case, or an exercise with your ruleset in work/.",
        autocompletion=completion.cases_and_exercises,
    ),
]
ExerciseName = Annotated[
    str | None,
    typer.Argument(
        metavar="[EXERCISE]",
        help="One of the lab's exercises, such as ex1-one-host, or ex1 (default: all).",
        autocompletion=completion.exercises,
    ),
]
OneExercise = Annotated[
    str,
    typer.Argument(
        metavar="EXERCISE",
        help="One of the lab's exercises, such as ex1-one-host, or ex1.",
        autocompletion=completion.exercises,
    ),
]
CaseNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CASE]...", help="Cases or sweeps (default: all).", autocompletion=completion.cases),
]
PartName = Annotated[str | None, typer.Option("--part", metavar="PART", help="The cases of one part of the lab.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Events = Annotated[
    bool, typer.Option("--events", help="Print what happens, as it does, as one JSON document a line, and no table.")
]
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
CoreName = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="CORE",
        help="Also model this core, and count the cycles that a packet takes on it (guides/model.md).",
        autocompletion=completion.cores,
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help="Leave machines running that this command starts.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of Vagrant.")]
MachinesOf = Annotated[
    str | None, typer.Option("--machines", metavar="LAB", help="Use the machines of another lab, which must be up.")
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help=f"The traffic engine: auto (trex if it is there and can play this), or one of: {', '.join(ENGINES)}.",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed that draws the traffic.")]
DrawnSeed = Annotated[int | None, typer.Option("--seed", help="Seed that draws the traffic (default: a new one).")]
SavedRun = Annotated[Path | None, typer.Argument(metavar="[RUN.json]", help="A saved run (default: the lab's latest).")]


def with_playable_traffic(context: RunContext, specs: Iterable[MeasurementSpec]) -> RunContext:
    """The context with an engine that can play what these play. Raises BadInput for traffic that none can."""
    traffic = [spec.traffic for spec in specs]
    context = with_able_engine(context, traffic)
    reject_unplayable_traffic(context, traffic)
    return context
