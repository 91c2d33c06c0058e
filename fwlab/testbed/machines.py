# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's three machines, through Vagrant: up, running, destroyed."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property

from fwlab.checkout.project import Project
from fwlab.host.environment import boot_timeout
from fwlab.host.process import piped, wait_or_kill
from fwlab.host.ssh import Ssh, write_ssh_config
from fwlab.images.boxes import built_boxes
from fwlab.model.errors import CannotMeasure
from fwlab.model.lab import Lab
from fwlab.model.topology import ROLES, Role, Topology
from fwlab.testbed.choices import link_kinds, reject_missing_boxes, reject_other_links
from fwlab.testbed.hardware import domain_prefix
from fwlab.testbed.host_links.prepare import HostLinks
from fwlab.testbed.machine_record import Made, machines_made
from fwlab.testbed.qemu_process import large_receive_buffers, qemu_of, virsh
from fwlab.testbed.selection import Testbed, TestbedRequest, settle
from fwlab.testbed.throttle import Throttle

#: For three machines to boot under emulation on a loaded host (s). After that something is broken.
UP_TIMEOUT_S = 1200
#: libvirt's words.
RUNNING, OFF = "running", "shut off"


def _domains(project: Project, labs: Iterable[str]) -> dict[str, tuple[str, Role]]:
    """By libvirt's name of each machine of these labs, the lab and the role."""
    prefix = domain_prefix(project.root)
    names: dict[Role, str] = {role: "" if role == "dut" else f"-{role}" for role in ROLES}
    return {f"{prefix}{lab}{suffix}": (lab, role) for lab in labs for role, suffix in names.items()}


def states(project: Project, labs: Iterable[str]) -> dict[str, dict[Role, str]]:
    """By lab and role, the state of each machine of these labs, in libvirt's words; none if it does not answer."""
    found = dict[str, dict[Role, str]]()
    domains = _domains(project, labs)
    for line in virsh("list", "--all", timeout_s=30).stdout.splitlines():  # number, name, state
        fields = line.split(maxsplit=2)
        if len(fields) == 3 and fields[1] in domains:
            lab, role = domains[fields[1]]
            found.setdefault(lab, {})[role] = fields[2].strip()
    return found


def memory_of_machines(project: Project, labs: Iterable[str]) -> dict[str, int]:
    """By lab, how much of the host's memory the QEMUs of its running machines have (MiB)."""
    found = dict[str, int]()
    domains, lab = _domains(project, labs), None
    for line in virsh("domstats", "--balloon", "--list-running", timeout_s=30).stdout.splitlines():
        name, _, value = line.strip().partition("=")
        if line.startswith("Domain:"):
            lab, _ = domains.get(line.split("'")[1], (None, ""))
        elif name == "balloon.rss" and lab is not None:
            found[lab] = found.get(lab, 0) + int(value) // 1024
    return found


class Machines:
    """The three nodes of one lab."""

    def __init__(self, project: Project, topology: Topology, lab: Lab, request: TestbedRequest) -> None:
        self._project = project
        self._topology = topology
        self._lab = lab
        self._request = request
        link_kinds(topology)
        config = write_ssh_config(project, topology, lab.number, lab.id)
        self.ssh_config = config
        self._ssh = {role: Ssh(config, role) for role in ROLES}

    def ssh(self, role: Role) -> Ssh:
        """The connection to a node."""
        return self._ssh[role]

    def running(self) -> bool:
        """Whether all three run and let us in; False if none runs.

        libvirt is asked, and no port is tried: another user's machine may listen there. Raises CannotMeasure, with the
        command that helps, if only some run.
        """
        name, states = self._lab.id, self._states()
        if not states or set(states.values()) == {OFF}:
            return False
        idle = [role for role in ROLES if states.get(role) != RUNNING]
        if idle:
            said = ", ".join(f"{role} ({states.get(role, 'not there')})" for role in idle)
            raise CannotMeasure(f"{name}: not running: {said}", f"vagrant up {name}")
        with ThreadPoolExecutor() as pool:  # a login takes a second on an emulated node
            missing = [role for role, there in zip(ROLES, pool.map(self._answers, ROLES), strict=True) if not there]
        if missing:
            raise CannotMeasure(
                f"{name}: no answer from: {', '.join(missing)}", f"vagrant destroy -f {name}; vagrant up {name}"
            )
        return True

    def _states(self) -> dict[Role, str]:
        """By role, the state of each of the lab's machines; none if libvirt does not answer."""
        return states(self._project, [self._lab.id]).get(self._lab.id, {})

    def _answers(self, role: Role) -> bool:
        return self._ssh[role].answers()

    @cached_property
    def made(self) -> Made:
        """What `vagrant up` made, once the machines run. Raises CannotMeasure if that is unknown."""
        made = self._made()
        if made is None:
            name = self._lab.id
            raise CannotMeasure(f"what `vagrant up {name}` made is not known", f"vagrant reload {name}")
        reject_other_links(made.link, self._lab.id)
        return made

    @cached_property
    def testbed(self) -> Testbed:
        """The testbed of the machines that run. Raises CannotMeasure if another was asked for."""
        return settle(self._request, self.made, self._lab.id)

    def throttle(self) -> Throttle:
        """What throttles the DUT, by the levels of its testbed."""
        forwarded = self._topology.ports.address, self._topology.ssh_port(self._lab.number, "dut")
        return Throttle(self.testbed.kind.throttle, *forwarded)

    def large_receive_buffers(self) -> AbstractContextManager[None]:
        """What lets the links of all machines hold more frames for a while. Raises CannotMeasure."""
        address, number = self._topology.ports.address, self._lab.number
        return large_receive_buffers([qemu_of(address, self._topology.ssh_port(number, role)) for role in ROLES])

    def lost_link(self) -> CannotMeasure | None:
        """What the host lost of the links since the machines started, as an error; None if nothing."""
        return HostLinks(self._project, self._topology).lost(self._lab.id)

    def _made(self) -> Made | None:
        return machines_made(self._project, self._topology, self._lab.number, self._lab.id)

    def up(self, on_line: Callable[[str], None]) -> None:
        """`vagrant up` of the lab, for the testbed of its halted machines, else for one chosen now.

        Each line that Vagrant prints goes to `on_line`. Raises BadInput if the DUT's box is not built, CannotMeasure.
        """
        made = self._made()
        testbed = settle(self._request, made, self._lab.id)
        if made is not None:
            reject_other_links(made.link, self._lab.id)
        else:
            self._reject_missing_boxes()
        self._vagrant(["up", self._lab.id], on_line, UP_TIMEOUT_S, testbed.environment())
        silent = [role for role in ROLES if not self._ssh[role].answers()]
        if silent:
            raise CannotMeasure(f"{self._lab.id}: no SSH answer from: {', '.join(silent)}", "fwlab doctor")

    def _reject_missing_boxes(self) -> None:
        nodes, boxes = self._topology.nodes, built_boxes(self._project)
        missing = [node.image for node in nodes.values() if node.image not in boxes]
        dut = nodes["dut"]
        reject_missing_boxes(self._lab.id, missing, dut.image, self._lab.needs.systems, dut.system)

    def destroy(self, on_line: Callable[[str], None]) -> None:
        """Destroy the lab's machines. `on_line` receives Vagrant's output line by line."""
        for ssh in self._ssh.values():
            ssh.close()
        self._vagrant(["destroy", "-f", self._lab.id], on_line, 300)

    def _vagrant(
        self,
        arguments: list[str],
        on_line: Callable[[str], None],
        timeout: float,
        chosen: Mapping[str, str] | None = None,
    ) -> None:
        if shutil.which("vagrant") is None:
            raise CannotMeasure("vagrant is not installed", "make setup")
        environment = {**os.environ, **(chosen or {}), "VAGRANT_NO_COLOR": "1"}
        process = subprocess.Popen(
            ["vagrant", *arguments],
            cwd=self._project.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        lines: list[str] = []
        try:
            for line in piped(process.stdout):
                lines.append(line.rstrip())
                on_line(line.rstrip())
            process.wait(timeout)
        except BaseException:
            # An interrupted Vagrant undoes what it began: give it time.
            process.terminate()
            wait_or_kill(process, 60)
            raise
        if process.returncode:
            tail = "\n".join(line for line in lines[-12:] if line)
            slow = any("Timed out while waiting for the machine to boot" in line for line in lines)
            longer = f"export FWLAB_BOOT_TIMEOUT={6 * boot_timeout()}, then the same command again"
            raise CannotMeasure(f"`vagrant {' '.join(arguments)}` failed:\n{tail}", longer if slow else "fwlab doctor")
