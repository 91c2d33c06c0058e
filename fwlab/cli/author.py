# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab author`: what an author of labs does with a finished run, and how well its figures repeat."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, display_path, find_project
from fwlab.cli import ranges
from fwlab.cli.bundle import bundle_command
from fwlab.cli.options import AlsoMetrics, LabName, SavedRun, Verbose
from fwlab.cli.repeatability import benchmark_cases, document, measure, write_document
from fwlab.cli.waiting_times import waits_command
from fwlab.grading.class_files import explanations
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab, on_dut
from fwlab.measure.plan import with_metrics
from fwlab.measure.saved_runs import latest_run, load_run, published_name
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.pages import refresh
from fwlab.report.progress import listener
from fwlab.testbed.choices import topology_of
from fwlab.testbed.selection import TestbedRequest

app = typer.Typer(
    help="Publish runs, renew ranges and pages, pack bundles, measure repeatability.", no_args_is_help=True
)


app.command("bundle")(bundle_command)
app.command("waits")(waits_command)


@app.command("publish")
def publish_command(lab: LabName, run: SavedRun = None) -> None:
    """Keep a run under results/ and renew the pages that show its figures."""
    _write_from_run(lab, run, publish)


@app.command("ranges")
def ranges_command(lab: LabName, run: SavedRun = None) -> None:
    """Generate the lab's ranges.yml from a run."""
    _write_from_run(lab, run, ranges.write_ranges)


@app.command("pages")
def pages_command() -> None:
    """Renew the generated parts of all pages: the table of labs, figures, limits and pictures."""
    project = find_project()
    for page in refresh(project):
        typer.echo(f"written: {display_path(project, page)}")


@app.command("answers")
def answers_command(
    lab: LabName,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder per student, each with what was in work/.")],
) -> None:
    """Print what a class wrote into its workbooks, as CSV: numbers, whether they agree, and reasons."""
    project = find_project()
    typer.echo(explanations(project, load_lab(project, lab), folder), nl=False)


@app.command("repeatability")
def repeatability_command(
    lab: LabName,
    cases: Annotated[
        list[str] | None, typer.Argument(metavar="[CASE]...", help="Cases or sweeps (default: quick).")
    ] = None,
    also: AlsoMetrics = None,
    verbose: Verbose = False,
) -> None:
    """Measure how well the figures of a lab repeat over fresh boots, on an idle and on a busy host."""
    project = find_project()
    found = load_lab(project, lab)
    topology = topology_of(project, found)
    found = on_dut(found, topology, found)
    context = RunContext(project, topology, found, TestbedRequest("virtual"))
    chosen = [with_metrics(context, case, also or []) for case in benchmark_cases(found, cases or [])]
    with listener(Console(stderr=True), verbose=verbose) as tell:
        result = document(found, measure(context, chosen, tell), chosen)
    path = write_document(project, found, result)
    typer.echo(json.dumps(result["spreads"], indent=1))
    typer.echo(f"written: {display_path(project, path)}")


def _write_from_run(lab_id: str, path: Path | None, write: Callable[[Project, Lab, Run], list[Path]]) -> None:
    project = find_project()
    lab = load_lab(project, lab_id)
    run = load_run(path or latest_run(project, lab), lab.id)
    for written in write(project, lab, run):
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
