# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep a run under results/, and renew the pages that show its figures."""

from pathlib import Path

import typer

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, display_path, find_project
from fwlab.cli.options import LabName, SavedRun
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import latest_run, load_run, published_name
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from tools.pages import refresh


def publish_command(lab: LabName, run: SavedRun = None) -> None:
    """Keep a run under results/ and renew the pages that show its figures."""
    project = find_project()
    found = load_lab(project, lab)
    for written in publish(project, found, load_run(run or latest_run(project, found), found.id)):
        typer.echo(f"written: {display_path(project, written)}")


def publish(project: Project, lab: Lab, run: Run) -> list[Path]:
    """Write results/LAB/DATE-full.json and renew the stale pages; the paths written.

    A lab for several systems has a DATE-SYSTEM-full.json of each. A run of some cases only is kept beside the newest
    whole run, as DATE-added.json, and its figures replace those of these cases.
    Raises BadInput if a case of the run is in doubt.
    """
    doubtful = [case.id for case in run.cases if case.problems or case.refused]
    if doubtful:
        raise BadInput(f"the run has cases in doubt: {', '.join(doubtful)}", f"fwlab run {lab.id}")
    kept = project.root / "results" / lab.id / published_name(project, lab, run)
    return [write_atomically(kept, run.model_dump_json(indent=1) + "\n"), *refresh(project)]
