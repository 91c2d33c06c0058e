# SPDX-License-Identifier: GPL-2.0-or-later
"""A calibrated host: what its generator and its bare DUT can do, and of what it consisted then."""

import datetime
import statistics
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from fwlab.model.declared import Identifier, Strict
from fwlab.model.results import Accelerator, Run

#: A calibration is stale after so many days.
MOST_DAYS = 90

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
        if age > MOST_DAYS:
            reasons.append(f"it is {age} days old, at most {MOST_DAYS} are allowed")
        if age < 0:
            reasons.append("it was made in the future, by this host's clock")
        return reasons
