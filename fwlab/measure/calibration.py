# SPDX-License-Identifier: GPL-2.0-or-later
"""The host class of this checkout: read, checked against a run, written."""

import datetime
import statistics
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, ValidationError

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, display_path
from fwlab.judge.clocks import clock_of
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import all_doubts
from fwlab.metrics.capacity import CAPACITY, GENERATOR_RATE
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import Identifier, Strict, first_fault
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.results import Accelerator, Measured, Run

#: A calibration is stale after this number of days.
MAX_DAYS = 90

Rates = Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]


class Setup(Strict):
    """Everything that a calibration holds for."""

    cpu: str
    cores: int
    kernel: str
    qemu: str
    accelerator: Accelerator
    link: str
    engine: str
    dut_kernel: str

    @classmethod
    def of(cls, run: Run) -> "Setup":
        """What a run was made on."""
        return cls(
            cpu=run.host.cpu,
            cores=run.host.cores,
            kernel=run.host.kernel,
            qemu=run.host.qemu,
            accelerator=run.testbed.accelerator,
            link=run.testbed.link,
            engine=run.testbed.engine,
            dut_kernel=run.dut.kernel,
        )


class HostClass(Strict):
    """The file that `fwlab calibrate` writes.

    name       of the host's class, by which ranges.yml names absolute ranges
    measured   when
    case       what was measured: LAB CASE
    ceiling_pps   packets per second that the generator sent flat out, trial by trial
    bare_dut_pps  packets per second that a DUT without any rule processed, trial by trial
    """

    format: Literal["fwlab-host-class/1"] = "fwlab-host-class/1"
    name: Identifier
    measured: AwareDatetime
    case: str
    setup: Setup
    ceiling_pps: Rates
    bare_dut_pps: Rates

    @property
    def ceiling(self) -> float:
        """The generator's ceiling (pps)."""
        return statistics.median(self.ceiling_pps)

    @property
    def bare_dut(self) -> float:
        """The bare DUT's capacity (pps)."""
        return statistics.median(self.bare_dut_pps)

    def stale(self, setup: Setup, now: datetime.datetime) -> list[str]:
        """Why it no longer holds for this setup; empty if it does."""
        then, today = self.setup.model_dump(), setup.model_dump()
        reasons = [f"{name} was {then[name]}, is {today[name]}" for name in then if then[name] != today[name]]
        age = (now - self.measured).days
        if age > MAX_DAYS:
            reasons.append(f"it is {age} days old, at most {MAX_DAYS} are allowed")
        if age < 0:
            reasons.append("it was made in the future, by this host's clock")
        return reasons


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
        fault = first_fault(error) if isinstance(error, ValidationError) else error.strerror
        raise BadInput(f"{display_path(project, path)}: {fault}", COMMAND.format(name="NAME")) from error


def calibrated(run: Run, found: HostClass | None, now: datetime.datetime) -> tuple[Run, list[str]]:
    """The run with this host's class and its generator's ceiling; without them, and why, if they no longer hold.

    A class that the environment names stays, but a ceiling is only that of a calibration.
    """
    if found is None or clock_of(run.testbed).repeats:
        return run, []
    reasons = found.stale(Setup.of(run), now)
    if reasons:
        again = COMMAND.format(name=found.name)
        return run, [f"the calibration of {found.name} is stale: {'; '.join(reasons)}. {again} renews it"]
    host = {"host_class": run.host.host_class or found.name, "ceiling_pps": found.ceiling}
    return run.model_copy(update={"host": run.host.model_copy(update=host)}), []


def host_class_of(name: str, run: Run, measured: Measured) -> HostClass:
    """The class of the host that this was measured on. Raises CannotMeasure if the figures are in doubt."""
    doubts = all_doubts(measured, run, METRICS)
    ceiling, bare = (figure(measured, metric, run.testbed) for metric in (GENERATOR_RATE, CAPACITY))
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
