# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on disk: where reports go, and how an old run is read back."""

import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import SUFFIX, name_of, raw_result, read_document
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import first_fault
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.model.systems import several

#: Bounds of all counts, durations and rates but zero; arithmetic overflows beyond them.
MIN_NUMBER, MAX_NUMBER = 1e-12, 2.0**63


def reports_folder(project: Project, lab_id: str) -> Path:
    """Where the lab's runs are saved."""
    return project.root / "reports" / lab_id


def run_name(lab: Lab, system: str) -> str:
    """The name of the latest run's file; a lab for several systems keeps one of each."""
    return f"run-{system}.json" if several(lab) else "run.json"


def latest_run(project: Project, lab: Lab, part: str = "") -> Path:
    """The lab's latest run in reports/, or in its `check`. If there is none, the path that the next one gets."""
    folder = reports_folder(project, lab.id) / part
    paths = [folder / run_name(lab, system) for system in lab.whole.needs.systems]
    return max((path for path in paths if path.is_file()), key=lambda path: path.stat().st_mtime, default=paths[0])


def runs_of_other_systems(lab: Lab, system: str, folder: Path) -> list[Run]:
    """The latest run in this folder on each other system that the lab is for. Raises BadInput for a faulty file."""
    if not several(lab):
        return []
    others = [other for other in lab.whole.needs.systems if other != system]
    paths = (folder / name for other in others for name in (run_name(lab, other), f"published-{other}{SUFFIX}"))
    return [load_run(path, lab.id) for path in paths if path.is_file()]


def published_path(project: Project, lab: Lab, system: str, host_class: str | None = None) -> Path:
    """Where the lab's published run is kept: one of each system, and of each class of hosts on the real testbed."""
    parts = ["published", *([system] if several(lab) else []), *([host_class] if host_class else [])]
    return raw_result(project, f"{lab.id}/{'-'.join(parts)}")


def published_files(project: Project, lab: Lab) -> list[Path]:
    """The published run on the virtual testbed; of a lab for several systems one of each. Empty before the first."""
    paths = [published_path(project, lab, system) for system in lab.whole.needs.systems]
    return [path for path in paths if path.is_file()]


def published_runs(project: Project, lab: Lab) -> list[Run]:
    """These runs, without cases that the lab no longer has. Raises BadInput for a faulty file."""
    found = []
    for path in published_files(project, lab):
        run = load_run(path, lab.id)
        cases = {case.id: case for case in run.cases}
        found.append(run.model_copy(update={"cases": [cases[case] for case in lab.whole.cases if case in cases]}))
    return found


def report_folder(project: Project, lab_id: str, path: Path) -> Path:
    """The folder for the report of a saved run: that of the run, but not results/, which holds only raw results."""
    published = (project.root / "results").resolve()
    return reports_folder(project, lab_id) / name_of(path) if path.resolve().is_relative_to(published) else path.parent


def load_run(path: Path, lab_id: str) -> Run:
    """The run in a file. Raises BadInput naming the file if it is missing, not a run, or a run of another lab."""
    hint = f"fwlab run {lab_id}"
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadInput(f"{path}: not a regular file, so not a run of fwlab", hint)
        run = run_in(read_document(path), str(path), hint)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint) from error
    if run.lab != lab_id:
        raise BadInput(f"{path}: a run of {run.lab}, not of {lab_id}", f"fwlab report {run.lab} {path}")
    return run


def run_in(text: bytes | str, name: str, hint: str) -> Run:
    """Parse a run. Raises BadInput, which calls the file `name`; also for numbers that no measurement can have."""
    try:
        run = Run.model_validate_json(text, context={"metrics": METRICS})
    except ValidationError as error:
        no_json = error.errors()[0]["type"] == "json_invalid"
        raise BadInput(f"{name}: not a run of fwlab" + ("" if no_json else f": {first_fault(error)}"), hint) from error
    for place, number in _numbers(run.model_dump(mode="python"), ""):
        if not (number == 0 or MIN_NUMBER <= abs(number) <= MAX_NUMBER):
            raise BadInput(f"{name}: not a run of fwlab: {place}: {number} is out of range", hint)
    scale = run.testbed.ns_per_instruction
    if scale is not None and scale < 1:
        what = f"testbed.ns_per_instruction: {scale} is not above 0"
        raise BadInput(f"{name}: not a run of fwlab: {what}", hint)
    return run


def _numbers(data: object, place: str) -> Iterator[tuple[str, int | float]]:
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from _numbers(value, f"{place}.{str(key)[:40]}" if place else str(key)[:40])
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield place, data
