# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab list`: the labs, or the cases and exercises of one."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from fwlab.cli.options import Json
from fwlab.host.project import find_project, lab_ids
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab

out = Console()


def list_command(
    lab: Annotated[str | None, typer.Argument(metavar="[LAB]", help="A lab (default: list the labs).")] = None,
    as_json: Json = False,
) -> None:
    """List the labs, or the cases and exercises of one lab."""
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


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
