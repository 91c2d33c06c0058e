# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab list`: the labs, or the cases and exercises of one."""

from typing import Any

from rich.console import Console

from fwlab.checkout.project import find_project, lab_ids
from fwlab.cli.options import Json, LabOrAll
from fwlab.cli.output import print_json
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab

out = Console()


def list_command(
    lab: LabOrAll = None,
    as_json: Json = False,
) -> None:
    """List the labs, or the cases and exercises of one lab."""
    project = find_project()
    if lab is None:
        labs = [load_lab(project, lab_id) for lab_id in lab_ids(project)]
        if as_json:
            print_json([{"id": x.id, "title": x.title, "minutes": x.minutes, "cases": len(x.cases)} for x in labs])
        else:
            for x in labs:
                out.print(f"[bold]{x.id}[/]  {x.title}  ({x.minutes} min, {len(x.cases)} cases)", highlight=False)
        return
    _list_lab(load_lab(project, lab), as_json)


def _list_lab(lab: Lab, as_json: bool) -> None:
    if as_json:
        print_json(_document(lab))
        return
    out.print(f"[bold]{lab.id}[/]  {lab.title}", highlight=False)
    if not lab.parts:
        _list_items(list(lab.cases), [exercise.id for exercise in lab.exercises], lab)
    for part in lab.parts:
        out.print(f"[bold]part {part.id}[/]  {part.title}  ({part.minutes} min)", highlight=False)
        _list_items(lab.cases_named(part.cases), part.exercises, lab)


def _list_items(cases: list[str], exercises: list[str], lab: Lab) -> None:
    for case in cases:
        out.print(f"  {case:<24} {lab.cases[case].title}", highlight=False)
    if exercises:
        out.print("exercises:")
    for exercise in lab.exercises:
        if exercise.id in exercises:
            out.print(f"  {exercise.id:<24} {exercise.shown_title}", highlight=False)


def _document(lab: Lab) -> dict[str, Any]:
    cases = [
        {"id": c.id, "title": c.title, "metric": c.metric, "unit": METRICS[c.metric].unit} for c in lab.cases.values()
    ]
    exercises = [
        {"id": e.id, "title": e.title, "further": e.further, "predict": e.predict.question} for e in lab.exercises
    ]
    parts = [
        {
            "id": part.id,
            "title": part.title,
            "minutes": part.minutes,
            "cases": lab.cases_named(part.cases),
            "exercises": part.exercises,
        }
        for part in lab.parts
    ]
    return {"id": lab.id, "title": lab.title, "parts": parts, "cases": cases, "exercises": exercises}
