# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on disk: where reports go, an old run read back, and the programs that make something of one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from fwlab.outside.project import Project, find_project, load_lab, shown
from fwlab.words.errors import EXIT_PASS, BadInput, FwlabError
from fwlab.words.lab import Lab
from fwlab.words.results import Run


def reports_folder(project: Project, lab_id: str) -> Path:
    return project.root / "reports" / lab_id


def folder_beside(project: Project, lab_id: str, path: Path) -> Path:
    """Where the report of a saved run goes: beside it, but not into results/, which holds raw results alone."""
    published = (project.root / "results").resolve()
    return reports_folder(project, lab_id) / path.stem if path.resolve().is_relative_to(published) else path.parent


def load_run(path: Path, lab_id: str) -> Run:
    """Raises BadInput naming the file where it is missing, not a run, or another lab's."""
    try:
        run = Run.model_validate_json(path.read_text())
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", f"fwlab run {lab_id}") from error
    except (ValidationError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not a run of fwlab", f"fwlab run {lab_id}") from error
    if run.lab != lab_id:
        raise BadInput(f"{path}: a run of {run.lab}, not of {lab_id}", f"fwlab report {run.lab} {path}")
    return run


def command(name: str, about: str, write: Callable[[Project, Lab, Run], list[Path]]) -> int:
    """`python -m fwlab.runs.NAME LAB [RUN.json]`: `write` makes files of the run, and they are named.

    Without a file it is the lab's latest run. Returns the exit code; trouble goes to standard error.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("lab")
    parser.add_argument("run", nargs="?", type=Path)
    chosen = parser.parse_args()
    try:
        project = find_project()
        lab = load_lab(project, chosen.lab)
        run = load_run(chosen.run or reports_folder(project, lab.id) / "run.json", lab.id)
        for path in write(project, lab, run):
            print(f"written: {shown(project, path)}")
    except FwlabError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code
    return EXIT_PASS
