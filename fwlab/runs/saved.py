# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on disk: where reports go, and an old run read back."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from fwlab.outside.project import Project
from fwlab.words.errors import BadInput
from fwlab.words.results import Run


def reports_folder(project: Project, lab_id: str) -> Path:
    return project.root / "reports" / lab_id


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
