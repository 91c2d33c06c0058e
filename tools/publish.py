# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep a run under results/, and renew the pages that show its figures."""

from pathlib import Path

import typer

from fwlab.checkout.project import Project, display_path, find_project
from fwlab.checkout.raw_results import write_document
from fwlab.cli.options import LabName, SavedRun
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import latest_run, load_run, published_path
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import AddedCases, Conditions, Run
from tools.pages import refresh
from tools.results_index import untraceable, write_index


def publish_command(lab: LabName, run: SavedRun = None) -> None:
    """Keep a run under results/ and renew the pages that show its figures."""
    project = find_project()
    found = load_lab(project, lab)
    for written in publish(project, found, load_run(run or latest_run(project, found), found.id)):
        typer.echo(f"written: {display_path(project, written)}")


def publish(project: Project, lab: Lab, run: Run) -> list[Path]:
    """Write results/LAB/published.json.gz and renew the stale pages; the paths written.

    Raises BadInput if a case of the run is in doubt, if its figures hold for this host alone, if it cannot be traced to
    a commit, or if it does not fit to what is published.
    """
    doubtful = [case.id for case in run.cases if case.problems or case.refused]
    if doubtful:
        raise BadInput(f"the run has cases in doubt: {', '.join(doubtful)}", f"fwlab run {lab.id}")
    if run.testbed.ranges != "portable" and run.host.host_class is None:
        what = f"the run was made on the {run.testbed.name} testbed, on a host without a class"
        raise BadInput(what, f"fwlab calibrate NAME, or FWLAB_HOST_CLASS=NAME fwlab run {lab.id}")
    if fault := untraceable(project, run):
        raise BadInput(f"the run of {run.started} cannot be published: {fault}", f"git commit, then fwlab run {lab.id}")
    host_class = None if run.testbed.ranges == "portable" else run.host.host_class
    path = published_path(project, lab, run.dut.system, host_class)
    kept = load_run(path, lab.id) if path.is_file() else None
    text = merged(lab, kept, run).model_dump_json(indent=1) + "\n"
    return [write_document(path, text), *refresh(project), *write_index(project)]


def merged(lab: Lab, kept: Run | None, run: Run) -> Run:
    """The published run with this one: a run of all its cases replaces it, one of some cases only replaces these.

    Raises BadInput for an older run, and for some cases from another testbed or kernel.
    """
    if kept is None or {case.id for case in kept.cases} & set(lab.whole.cases) <= {case.id for case in run.cases}:
        return run
    newest = max(one.started for one in (kept, *kept.added))
    if run.started < newest:
        raise BadInput(f"the run of {run.started} is older than the published one of {newest}", f"fwlab run {lab.id}")
    for what, one, other in (
        ("testbed", kept.testbed.name, run.testbed.name),
        ("kernel", kept.dut.kernel, run.dut.kernel),
    ):
        if one != other:
            message = f"the run has {what} {other}, the published one {one}: they cannot be shown together"
            raise BadInput(message, f"fwlab run {lab.id}, without cases")
    cases = {case.id: case for case in (*kept.cases, *run.cases)}
    renewed = {case.id for case in run.cases}
    earlier = [
        one.model_copy(update={"cases": left})
        for one in kept.added
        if (left := [case for case in one.cases if case not in renewed])
    ]
    conditions = {name: getattr(run, name) for name in Conditions.model_fields}
    added = AddedCases(**conditions, cases=[case for case in lab.whole.cases if case in renewed])
    order = [cases[case] for case in lab.whole.cases if case in cases]
    return kept.model_copy(update={"added": [*earlier, added], "cases": order})
