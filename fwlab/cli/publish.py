# SPDX-License-Identifier: GPL-2.0-or-later
"""Publish a run: keep it under results/ and renew the pages that show its figures."""

from __future__ import annotations

from pathlib import Path

from fwlab.host.atomic_write import write_atomically
from fwlab.host.project import Project
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.pages import refresh


def publish(project: Project, lab: Lab, run: Run) -> list[Path]:
    """Write results/LAB/DATE-full.json and renew the stale pages; the paths written.

    Raises BadInput if a case of the run is in doubt.
    """
    doubtful = [case.id for case in run.cases if case.problems or case.refused]
    if doubtful:
        raise BadInput(f"the run has cases in doubt: {', '.join(doubtful)}", f"fwlab run {lab.id}")
    kept = project.root / "results" / lab.id / f"{run.started[:10]}-full.json"
    return [write_atomically(kept, run.model_dump_json(indent=1) + "\n"), *refresh(project)]
