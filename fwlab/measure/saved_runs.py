# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on disk: where reports go, and how an old run is read back."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from fwlab.host.project import Project
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.results import Run

#: A whole run has some 2 MiB.
LARGEST_FILE = 64 << 20
#: Counts, seconds and rates lie between these, zero aside; beyond them arithmetic overflows.
SMALLEST, LARGEST = 1e-12, 2.0**63


def reports_folder(project: Project, lab_id: str) -> Path:
    return project.root / "reports" / lab_id


def folder_beside(project: Project, lab_id: str, path: Path) -> Path:
    """Where the report of a saved run goes: beside it, but not into results/, which holds raw results alone."""
    published = (project.root / "results").resolve()
    return reports_folder(project, lab_id) / path.stem if path.resolve().is_relative_to(published) else path.parent


def load_run(path: Path, lab_id: str) -> Run:
    """Raises BadInput naming the file where it is missing, not a run, or another lab's."""
    hint = f"fwlab run {lab_id}"
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise BadInput(f"{path}: not a plain file, so no run of fwlab", hint)
        if facts.st_size > LARGEST_FILE:
            raise BadInput(f"{path}: more than {LARGEST_FILE >> 20} MiB, not a run of fwlab", hint)
        run = run_in(path.read_bytes(), str(path), hint)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint) from error
    if run.lab != lab_id:
        raise BadInput(f"{path}: a run of {run.lab}, not of {lab_id}", f"fwlab report {run.lab} {path}")
    return run


def run_in(text: bytes | str, name: str, hint: str) -> Run:
    """The run that a file says. Raises BadInput, which calls the file `name`, also for numbers that none can have."""
    try:
        run = Run.model_validate_json(text, context={"metrics": METRICS})
    except ValidationError as error:
        raise BadInput(f"{name}: not a run of fwlab{_where(error)}", hint) from error
    for place, number in _numbers(run.model_dump(mode="python"), ""):
        if not (number == 0 or SMALLEST <= abs(number) <= LARGEST):
            raise BadInput(f"{name}: not a run of fwlab: {place}: {number} is beyond what is measured", hint)
    scale = run.testbed.ns_per_instruction
    if scale is not None and scale < 1:
        what = f"testbed.ns_per_instruction: {scale} is not above 0"
        raise BadInput(f"{name}: not a run of fwlab: {what}", hint)
    return run


def _where(error: ValidationError) -> str:
    """The first fault by its place; a file that is no JSON has none."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return ""
    place = ".".join(str(part)[:40] for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return f": {place}: {what}" if place else f": {what}"


def _numbers(data: object, place: str) -> Iterator[tuple[str, int | float]]:
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from _numbers(value, f"{place}.{str(key)[:40]}" if place else str(key)[:40])
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield place, data
