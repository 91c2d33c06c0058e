# SPDX-License-Identifier: GPL-2.0-or-later
"""What `vagrant up` made: read from .fwlab/LAB/machines.json and compared with the DUT's QEMU if that runs.

fwlab/machines/record.py writes the record. Judging depends on it: a DUT whose clock counts instructions has other
ranges than one that uses the host's clock, whatever testbed a command asked for.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from fwlab.checkout.project import Project, display_path
from fwlab.model.declared import Frozen
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Accelerator
from fwlab.model.topology import Role, Topology
from fwlab.testbed.link_kinds import as_qemu_shows, link_of
from fwlab.testbed.qemu_process import qemu_of
from fwlab.testbed.testbeds import TESTBEDS, TestbedKind

ACCELERATORS: dict[str, Accelerator] = {"tcg": "tcg", "kvm": "kvm"}


class MachineRecord(Frozen):
    """One machine, as libvirt defines it.

    icount_shift  2**shift ns per instruction; None: the host's clock
    link, links   kinds of its links, joined by "+", and by the link's name
    """

    domain: str
    box: str
    accelerator: Accelerator
    icount_shift: int | None
    link: str
    links: dict[str, str] = Field(default_factory=dict)


class Record(Frozen):
    """The file. `testbed` is None while there is no DUT."""

    format: Literal["fwlab-machines/1"]
    lab: str
    testbed: str | None
    machines: dict[Role, MachineRecord]


@dataclass(frozen=True)
class Made:
    """What the machines of a lab are, judged by their DUT.

    icount_shift  each instruction takes 2**shift ns of the DUT's clock; None: it is the host's clock
    link          kinds of the DUT's links, joined by "+" if they differ
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
        """The testbed that they were made for: the recorded one if it fits them, else the first that does."""
        fitting = [kind for kind in TESTBEDS.values() if kind.matches(self.accelerator, self.icount_shift)]
        if not fitting or (self.recorded and self.recorded not in TESTBEDS):
            what = f"testbed {self.recorded}" if self.recorded else _described(self)
            raise CannotMeasure(f"no testbed here fits the machines ({what})", "vagrant destroy -f LAB; vagrant up LAB")
        return next((kind for kind in fitting if kind.name == self.recorded), fitting[0])

    @property
    def testbed(self) -> str:
        """Name of the testbed."""
        return self.kind.name

    @property
    def ns_per_instruction(self) -> int | None:
        """Nanoseconds of the DUT's clock per instruction; None on the host's clock."""
        return None if self.icount_shift is None else 1 << self.icount_shift


def record_path(project: Project, lab_id: str) -> Path:
    """Where `vagrant up` records the lab's machines."""
    return project.state / lab_id / "machines.json"


def machines_made(project: Project, topology: Topology, lab_number: int, lab_id: str) -> Made | None:
    """The lab's machines, running or halted; None if there are none.

    Machines without a record (of an older checkout) are known by their QEMU alone. Raises CannotMeasure if record and
    QEMU differ.
    """
    recorded = _recorded(project, lab_id)
    running = _running(topology, lab_number)
    if recorded is None or running is None:
        return recorded or running
    facts = [(one.accelerator, one.icount_shift, as_qemu_shows(one.link)) for one in (recorded, running)]
    if facts[0] != facts[1]:
        path = display_path(project, record_path(project, lab_id))
        raise CannotMeasure(
            f"{path} says {_described(recorded)}, the DUT's QEMU {_described(running)}",
            f"vagrant destroy -f {lab_id}; vagrant up {lab_id}",
        )
    return recorded


def recorded_boxes(project: Project, lab_id: str) -> dict[str, str]:
    """By role, the box that each of the lab's machines was made from; empty without a record that can be read."""
    try:
        recorded = _recorded(project, lab_id)
    except CannotMeasure:
        return {}
    return recorded.boxes if recorded is not None else {}


def _recorded(project: Project, lab_id: str) -> Made | None:
    path = record_path(project, lab_id)
    try:
        record = Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise CannotMeasure(
            f"{display_path(project, path)}: not a record of machines", f"vagrant reload {lab_id}"
        ) from error
    dut = record.machines.get("dut")
    if dut is None:
        return None
    boxes: dict[str, str] = {role: machine.box for role, machine in record.machines.items()}
    return Made(dut.accelerator, dut.icount_shift, dut.link, boxes, record.testbed or "")


def _running(topology: Topology, lab_number: int) -> Made | None:
    """From the command line of the DUT's QEMU; None if no QEMU is seen."""
    try:
        pid = qemu_of(topology.ports.address, topology.ssh_port(lab_number, "dut"))
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (CannotMeasure, OSError):
        return None
    return from_command_line(line.decode(errors="replace").split("\0"))


def from_command_line(words: Sequence[str]) -> Made | None:
    """From a QEMU's command line as libvirt 7 to 11 writes it; None if accelerator or clock is not understood."""
    options: dict[str, list[str]] = {}
    for option, value in itertools.pairwise(words):
        options.setdefault(option, []).append(value)
    named = [accel.split(",")[0] for accel in options.get("-accel", [])]
    named += re.findall(r"\baccel=(\w+)", ",".join(options.get("-machine", [])))
    accelerators = {ACCELERATORS.get(name) for name in named}
    clocks = options.get("-icount", [])
    shifts = [int(found[1]) for clock in clocks if (found := re.search(r"\bshift=(\d{1,2})(?:,|$)", clock))]
    accelerator = accelerators.pop() if len(accelerators) == 1 else None
    if accelerator is None or len(clocks) > 1 or len(shifts) != len(clocks):
        return None
    found_types = [re.match(r'(?:\{"type":")?(\w+)', netdev) for netdev in options.get("-netdev", [])]
    found_types += [re.match(r'(?:\{"driver":")?(vfio-pci)', device) for device in options.get("-device", [])]
    # A user-mode network is for management; a port of a hub joins NICs to a link that another -netdev carries.
    links = {link_of(found[1]) for found in found_types if found and found[1] not in ("user", "hubport")}
    return Made(accelerator, shifts[0] if shifts else None, "+".join(sorted(links)))


def _described(made: Made) -> str:
    clock = "the host's clock" if made.icount_shift is None else f"-icount shift={made.icount_shift}"
    return f"{made.accelerator}, {clock}, link {made.link}"
