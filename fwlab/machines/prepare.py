# SPDX-License-Identifier: GPL-2.0-or-later
"""What is checked and made on this host before machines start, cheapest first."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from fwlab.host.memory import require_memory
from fwlab.host.process import output_of, virsh
from fwlab.machines.plan import Machine, Plan, nic_of
from fwlab.machines.seed import Seed, public_key
from fwlab.model.errors import BadInput
from fwlab.testbed.choices import reject_missing_boxes
from fwlab.testbed.hardware import HOST_CHANGES

if TYPE_CHECKING:
    from fwlab.testbed.host_links.prepare import HostLinks


def prepare(plan: Plan, names: Iterable[str], *, restart: bool = False) -> None:
    """Do what these machines need before they start. Those that run already need nothing.

    restart  those that run are about to restart, and read their new seeds
    Raises BadInput, CannotMeasure. libvirt must run.
    """
    machines = [plan.machine(name) for name in names]
    labs = list(dict.fromkeys(machine.lab.id for machine in machines))
    for lab in labs:
        plan.reject_other_choices(lab)
    strays = {machine.name for machine in machines if not _is_vagrants(machine)}
    active = set(virsh("list", "--name").split())
    running = [machine for machine in machines if machine.domain in active and machine.name not in strays]
    starting = [machine for machine in machines if machine not in running]
    if starting:
        for lab in labs:
            of_lab = [machine for machine in starting if machine.lab.id == lab]
            _reject_missing_boxes(plan, of_lab)
            _reject_unfit_boxes(plan, lab, [machine for machine in of_lab if machine.name in strays])
        require_memory(machine.hardware["memory_mib"] for machine in starting)
        defined = virsh("list", "--all", "--name").split()
        for machine in starting:
            if machine.name in strays and machine.domain in defined:
                _remove(machine)
        for machine in starting:
            reject_taken_ports(machine)
        for lab in labs:
            _prepare_links(plan, lab)
    key = public_key(plan)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda machine: Seed(machine, key).write(), starting + (running if restart else [])))


def restore_links(plan: Plan, lab_id: str) -> None:
    """Undo what was changed on this host for the links of a lab. Raises CannotMeasure."""
    if _is_changed(plan, lab_id):
        _host_links(plan).restore(lab_id)


def reject_taken_ports(machine: Machine) -> None:
    """Raise BadInput for the first port of the machine that is taken. QEMU would only say that it could not start.

    Names the port and, if this user may see it, its holder.
    """
    address = machine.plan.address
    for protocol, port, purpose in machine.ports:
        with socket.socket(type=socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, protocol == "tcp")  # as QEMU does
            try:
                probe.bind((address, port))
                if protocol == "tcp":
                    probe.listen()
                continue
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        raise BadInput(
            f"{protocol} port {address}:{port} ({purpose} of {machine.name}) is taken{_holder(protocol, port)}",
            "`export FWLAB_PORT_OFFSET=100` for this and every later command, or end what holds the port "
            f"(a lab of another checkout: `vagrant destroy {machine.lab.id}` there)",
        )


def _holder(protocol: str, port: int) -> str:
    """ " by qemu-system-x86 (pid 123, fwlab-...-lab03-ipset)", or "" if it cannot be seen."""
    with contextlib.suppress(OSError):
        said = output_of(["ss", "-Hlnp", "-u" if protocol == "udp" else "-t", f"sport = :{port}"])
        if found := re.search(r'users:\(\("([^"]+)",pid=(\d+)', said):
            name, pid = found.groups()
            guest = re.search(r"guest=([^,\0]+)", Path(f"/proc/{pid}/cmdline").read_text(errors="replace"))
            return f" by {name} ({', '.join([f'pid {pid}', *(guest.groups() if guest else ())])})"
    return ""


def _is_vagrants(machine: Machine) -> bool:
    """Whether Vagrant knows the machine: the file in which its provider keeps the machine's id is there."""
    folder = Path(os.environ.get("VAGRANT_DOTFILE_PATH") or ".vagrant")
    return (machine.plan.root / folder / "machines" / machine.name / "libvirt" / "id").exists()


def _remove(machine: Machine) -> None:
    """Remove what a killed Vagrant left behind. The prefix belongs to this checkout alone."""
    for words in (["destroy", machine.domain], ["undefine", machine.domain, "--remove-all-storage"]):
        with contextlib.suppress(OSError):
            virsh(*words)


def _reject_missing_boxes(plan: Plan, machines: list[Machine]) -> None:
    """Raise BadInput if the boxes of these machines of one lab are not built."""
    missing = list(dict.fromkeys(machine.node["image"] for machine in machines if not machine.box))
    if missing:
        dut = next(machine for machine in plan.machines(machines[0].lab.id) if machine.role == "dut")
        reject_missing_boxes(dut.lab.id, missing, dut.node["image"], dut.lab.systems, dut.node["system"])


def _reject_unfit_boxes(plan: Plan, lab: str, machines: list[Machine]) -> None:
    """Raise BadInput if new machines cannot be made from their boxes, or this checkout would build others."""
    from fwlab.images.boxes import outdated
    from fwlab.images.disk_use import note_use, vagrant_boxes

    boxes = {machine.node["image"]: machine.image for machine in machines}
    if old := outdated(plan.root, plan.images, boxes):
        message = f"the boxes {', '.join(old)} were built from other files than are in {plan.root} now"
        raise BadInput(message, f"packer/build --lab {lab}")
    # Another checkout may have removed what was not used for long.
    if lost := [box["box"] for box in boxes.values() if not (vagrant_boxes() / box["box"]).is_dir()]:
        raise BadInput(f"Vagrant does not have the boxes {', '.join(lost)}", f"packer/build --lab {lab}")
    note_use(boxes)


def _is_changed(plan: Plan, lab_id: str) -> bool:
    return (HOST_CHANGES / f"{plan.key}-{lab_id}.json").exists()


def _prepare_links(plan: Plan, lab_id: str) -> None:
    ends = [end for machine in plan.machines(lab_id) for end in machine.ends]
    on_host = (nic_of(end.kind).host_device(end) or nic_of(end.kind).handed_over(end) is not None for end in ends)
    if any(on_host) or _is_changed(plan, lab_id):
        _host_links(plan).prepare(lab_id, plan.kinds(plan.lab(lab_id)))


def _host_links(plan: Plan) -> HostLinks:
    from fwlab.checkout.project import Project, load_topology
    from fwlab.testbed.host_links.prepare import HostLinks

    project = Project(plan.root)
    return HostLinks(project, load_topology(project))
