# SPDX-License-Identifier: GPL-2.0-or-later
"""The host class of this checkout: read, checked against a run, written."""

import datetime
from pathlib import Path

from pydantic import ValidationError

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, display_path
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import all_doubts
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.host_class import HostClass, Setup
from fwlab.model.results import Measured, Run

COMMAND = "fwlab calibrate {name}"


def path_of(project: Project) -> Path:
    """Where the host class is kept: with the checkout's state, which is no part of the repository."""
    return project.state / "host-class.json"


def load_host_class(project: Project) -> HostClass | None:
    """The host class; None without a calibration. Raises BadInput for a file that is none."""
    path = path_of(project)
    try:
        return HostClass.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise BadInput(f"{display_path(project, path)}: {_fault(error)}", COMMAND.format(name="NAME")) from error


def calibrated(run: Run, found: HostClass | None, now: datetime.datetime) -> tuple[Run, list[str]]:
    """The run with this host's class and its generator's ceiling; without them, and why, if they no longer hold.

    A class that the environment names stays, but a ceiling is only that of a calibration.
    """
    if found is None or run.testbed.clock != "host":
        return run, []
    reasons = found.stale(Setup.of(run), now)
    if reasons:
        return run, [
            f"the calibration of {found.name} is stale: {'; '.join(reasons)}. {COMMAND} renews it".format(
                name=found.name
            )
        ]
    host = {"host_class": run.host.host_class or found.name, "ceiling_pps": found.ceiling}
    return run.model_copy(update={"host": run.host.model_copy(update=host)}), []


def host_class_of(name: str, run: Run, measured: Measured) -> HostClass:
    """The class of the host that this was measured on. Raises CannotMeasure if the figures are in doubt."""
    doubts = all_doubts(measured, run, METRICS)
    rates = {metric: figure(measured, METRICS[metric], run.testbed) for metric in ("generator", "capacity")}
    ceiling, bare = rates["generator"], rates["capacity"]
    if doubts or ceiling is None or bare is None:
        reasons = doubts or ["nothing was measured"]
        raise CannotMeasure(f"not calibrated: {'; '.join(reasons)}", f"fwlab doctor, then {COMMAND.format(name=name)}")
    return HostClass(
        name=name,
        measured=datetime.datetime.fromisoformat(run.started),
        case=f"{run.lab} {measured.id}",
        setup=Setup.of(run),
        ceiling_pps=ceiling.values,
        bare_dut_pps=bare.values,
    )


def write_host_class(project: Project, found: HostClass) -> Path:
    """Write the file. Raises BadInput if that is not possible."""
    return write_atomically(path_of(project), found.model_dump_json(indent=1) + "\n")


def _fault(error: OSError | ValidationError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])
