# SPDX-License-Identifier: GPL-2.0-or-later
"""What `vagrant up` made: read from .fwlab/LAB/machines.json, and held against the DUT's QEMU where that runs.

The record is written by provision/vagrant/record.rb. Figures hang on it: a DUT whose clock counts instructions is
judged by other ranges than one that goes by the host's clock, whatever a command was asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fwlab.host.project import Project, shown
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Accelerator
from fwlab.model.topology import Role, Topology
from fwlab.testbed.qemu_process import qemu_of
from fwlab.testbed.testbeds import TESTBEDS, TestbedKind


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Machine(_Strict):
    """One machine, as libvirt has it. `icount_shift`: its clock goes 2**shift ns an instruction, if it counts them."""

    domain: str
    box: str
    accelerator: Accelerator
    icount_shift: int | None
    link: str


class Record(_Strict):
    format: Literal["fwlab-machines/1"]
    lab: str
    testbed: str | None
    machines: dict[Role, Machine]


@dataclass(frozen=True)
class Made:
    """What the machines of a lab are, by their DUT.

    icount_shift  the DUT's clock advances 2**shift ns per instruction; None: it is the host's clock
    boxes         by role; empty if only QEMU could be asked
    recorded      the testbed that the record names; empty without a record
    """

    accelerator: Accelerator
    icount_shift: int | None
    link: str
    boxes: dict[str, str] = field(default_factory=dict)
    recorded: str = field(default="", compare=False)

    @property
    def kind(self) -> TestbedKind:
        """The testbed that they were made for: the recorded one if it fits the machines, else the first that fits."""
        fitting = [kind for kind in TESTBEDS.values() if kind.matches(self.accelerator, self.icount_shift)]
        named = [kind for kind in fitting if kind.name == self.recorded]
        if not fitting or (self.recorded and self.recorded not in TESTBEDS):
            what = self.recorded or f"{self.accelerator}, icount shift {self.icount_shift}"
            raise CannotMeasure(f"no testbed fits the machines ({what})", "install the testbed, or vagrant destroy LAB")
        return (named or fitting)[0]

    @property
    def testbed(self) -> str:
        return self.kind.name

    @property
    def ns_per_instruction(self) -> int | None:
        return None if self.icount_shift is None else 1 << self.icount_shift


def record_path(project: Project, lab_id: str) -> Path:
    return project.state / lab_id / "machines.json"


def machines_made(project: Project, topology: Topology, lab_number: int, lab_id: str) -> Made | None:
    """What is there under the lab's name, running or halted; None where nothing is.

    Machines without a record (of an older checkout) tell by their QEMU alone. Where the two differ: CannotMeasure.
    """
    recorded = _recorded(project, lab_id)
    running = _running(topology, lab_number)
    if recorded is None or running is None:
        return recorded or running
    facts = [(one.accelerator, one.icount_shift, one.link) for one in (recorded, running)]
    if facts[0] != facts[1]:
        raise CannotMeasure(
            f"{shown(project, record_path(project, lab_id))} says {_words(recorded)}, the DUT's QEMU {_words(running)}",
            f"vagrant destroy -f {lab_id}; vagrant up {lab_id}",
        )
    return recorded


def _recorded(project: Project, lab_id: str) -> Made | None:
    path = record_path(project, lab_id)
    try:
        record = Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise CannotMeasure(f"{shown(project, path)}: not a record of machines", f"vagrant reload {lab_id}") from error
    dut = record.machines.get("dut")
    if dut is None:
        return None
    boxes = {role: machine.box for role, machine in record.machines.items()}
    return Made(dut.accelerator, dut.icount_shift, dut.link, boxes, record.testbed or "")


def _running(topology: Topology, lab_number: int) -> Made | None:
    """By the command line of the QEMU that runs the DUT; None where none can be seen."""
    try:
        pid = qemu_of(topology.ports.address, topology.ssh_port(lab_number, "dut"))
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (CannotMeasure, OSError):
        return None
    return from_command_line(line.decode(errors="replace").split("\0"))


def from_command_line(words: Sequence[str]) -> Made | None:
    """A QEMU's words as libvirt 7 to 11 gives them; None where its accelerator or its clock is not understood."""
    options: dict[str, list[str]] = {}
    for option, value in itertools.pairwise(words):
        options.setdefault(option, []).append(value)
    accelerators = [a.split(",")[0] for a in options.get("-accel", [])]
    accelerators += re.findall(r"\baccel=(\w+)", ",".join(options.get("-machine", [])))
    clocks = [re.search(r"\bshift=(\d{1,2})(?:,|$)", clock) for clock in options.get("-icount", [])]
    if len(set(accelerators)) != 1 or accelerators[0] not in ("tcg", "kvm") or len(clocks) > 1 or None in clocks:
        return None
    kinds = [re.match(r'(?:\{"type":")?(\w+)', netdev)[1] for netdev in options.get("-netdev", []) if netdev[:1]]
    links = {"socket" if kind == "dgram" else kind for kind in kinds} - {"user"}
    return Made(accelerators[0], int(clocks[0][1]) if clocks else None, "+".join(sorted(links)))


def _words(made: Made) -> str:
    clock = "the host's clock" if made.icount_shift is None else f"-icount shift={made.icount_shift}"
    return f"{made.accelerator}, {clock}, link {made.link}"
