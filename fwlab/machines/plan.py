# SPDX-License-Identifier: GPL-2.0-or-later
"""Which machines each lab has and what they are made of, from topology.yml, the labs and the environment.

Vagrant reads the result (`Machine.plan`) and decides nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from fwlab.checkout.version import reject_other_version
from fwlab.checkout.yaml_files import parse_yaml, read_yaml_file
from fwlab.dut.registry import DUTS
from fwlab.dut.system import UNINDEXED, DutSystem
from fwlab.host import environment
from fwlab.host.ports import settle_ports
from fwlab.model.errors import BadInput
from fwlab.model.port_numbers import chosen_shift, lab_ports, port_number
from fwlab.testbed import hardware
from fwlab.testbed.choices import chosen_system, is_known_link, reject_other_links, reject_other_system, requested_kinds
from fwlab.testbed.hardware import LinkEnd

#: Of every box. Without it, libvirt takes the host's, and an arm64 host has no such machine type.
ARCHITECTURE = "x86_64"
#: libvirt's word for each of QEMU's accelerators.
DRIVERS = {"tcg": "qemu", "kvm": "kvm"}
#: For QEMU's translated code (MiB), all of which is resident soon; by default up to 1 GiB a machine. The DUT runs more
#: code than the others.
TRANSLATION_CACHE_MIB, OF_THE_DUT_MIB = 64, 128
#: How long a machine that is still booting may take to answer a connection (s).
CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True)
class Lab:
    """One lab: what the planner has to know of it. `made`: the record of its machines by role, as plain data."""

    id: str
    systems: list[str]
    nics: tuple[str, ...]
    made: Mapping[str, Any]

    @property
    def number(self) -> int:
        """NN of labNN-name."""
        return int(self.id[3:5])


@dataclass(frozen=True)
class Machine:
    """One machine of one lab. `name` is Vagrant's, `role` the topology's, `node` what topology.yml says of it."""

    plan: Plan
    lab: Lab
    role: str
    node: Mapping[str, Any]
    ends: list[LinkEnd] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The lab's name is that of its DUT."""
        return self.lab.id if self.role == "dut" else f"{self.lab.id}-{self.role}"

    @property
    def domain(self) -> str:
        """libvirt's name for it."""
        return self.plan.prefix + self.name

    @property
    def system(self) -> DutSystem:
        """Its operating system."""
        return DUTS[self.node["system"]]

    @property
    def ssh_port(self) -> int:
        """The TCP port on the loopback address that leads to its SSH server."""
        return self.plan.port("ssh_base", self.lab, self.node["ssh_offset"])

    @property
    def ports(self) -> list[tuple[str, int, str]]:
        """Everything that it listens on: protocol, port, and what the port is for."""
        links = [(kind, port, end.name) for end in self.ends for kind, port in nic_of(end.kind).ports(end)]
        return [("tcp", self.ssh_port, "SSH"), *((kind, port, f"link {name}") for kind, port, name in links)]

    @property
    def image(self) -> Mapping[str, Any]:
        """What is known of the image that was built for it; empty if none was."""
        found = self.plan.images.get(self.node["image"])
        return found if isinstance(found, dict) else {}

    @property
    def box(self) -> str | None:
        """The box that new machines are made from; None if it is not built."""
        return self.image.get("box")

    @property
    def hardware(self) -> Mapping[str, Any]:
        """memory_mib and cpu_model. An image with TRex needs more than the usual."""
        more = self.node.get("with_trex", {}) if self.image.get("trex") else {}
        return {"memory_mib": self.node["memory_mib"], "cpu_model": self.plan.board["cpu_model"], **more}

    @property
    def accelerator(self) -> str:
        """QEMU's."""
        return self.plan.accelerator_of(self.role)

    @property
    def management_device(self) -> str:
        """The NIC behind those of the links, as its system names it."""
        return f"{self.node.get('nic', 'eth')}{len(self.ends)}"

    @property
    def several_nics(self) -> bool:
        """Whether it has several NICs on a link, which only QEMU's own arguments can express."""
        return any(end.nics for end in self.ends)

    @property
    def seed(self) -> Path:
        """The CD with its seed."""
        return environment.cache_directory() / "seeds" / self.plan.key / f"{self.name}.iso"

    @property
    def savable(self) -> bool:
        """Whether it may continue from a saved state: no part of it is the host's, or lasts only while it runs."""
        parts = [self.plan.testbed, self.system, *(nic_of(end.kind) for end in self.ends)]
        wanted = environment.continues_from_saved_states() and self.plan.accelerator == "tcg"
        return wanted and all(part.savable for part in parts)

    def qemu_arguments(self) -> list[str]:
        """What libvirt cannot express: management on the loopback address, and what testbed, system and links need."""
        board, dut = self.plan.board, self.role == "dut"
        guest = board["management_address"].split("/")[0]
        forward = f"hostfwd=tcp:{self.plan.address}:{self.ssh_port}-{guest}:22"
        words = ["-netdev", f"user,id=management,net={board['management_network']},restrict=on,{forward}"]
        words += ["-device", f"virtio-net-pci,netdev=management,addr={board['management_pci_slot']:#x}"]
        # A full ring must last for one slice in which a throttled DUT runs.
        words += ["-global", f"virtio-net-pci.rx_queue_size={board['receive_ring']}"]
        # Nobody boots from the network. Without the NICs' boot code a machine starts sooner.
        words += ["-global", "virtio-net-pci.romfile="]
        # TCG leaves out the barriers of a guest with one CPU (QEMU commit c914d46d0a64 says why that is wrong), so a
        # notification can be lost. A Linux DUT keeps the indexes: its figures were measured with them.
        if not dut and self.accelerator == "tcg":
            words += UNINDEXED
        if self.several_nics:
            words += hardware.hub_arguments(board, self.ends)
        for kind in dict.fromkeys(end.kind for end in self.ends):
            words += nic_of(kind).qemu_arguments
        words += self.system.arguments
        return words + self.plan.testbed.dut_arguments(self.plan.topology) if dut else words

    def planned(self) -> dict[str, Any]:
        """The machine as the Vagrantfile reads it.

        libvirt      settings of the provider, by name
        networks     for `vm.network`: kind, options
        pci          PCI devices that are handed to it, by part of the address
        """
        kvm = self.accelerator == "kvm"
        networks = [] if self.several_nics else [nic_of(end.kind).network(end) for end in self.ends]
        handed = [address for end in self.ends if (address := nic_of(end.kind).handed_over(end))]
        cache = OF_THE_DUT_MIB if self.role == "dut" else TRANSLATION_CACHE_MIB
        libvirt: dict[str, Any] = {
            "uri": environment.libvirt_uri(),
            "qemu_use_session": "/session" in environment.libvirt_uri(),
            "default_prefix": self.plan.prefix,
            "driver": DRIVERS[self.accelerator],
            "machine_arch": ARCHITECTURE,
            "machine_type": self.plan.board["type"],
            "cpu_mode": "host-passthrough" if kvm else "custom",
            # The provider cannot limit the cache, so the XML element is written as part of a feature's name.
            "features": ["acpi", "apic", "pae" if kvm else f"tcg><tb-cache unit='MiB'>{cache}</tb-cache></tcg><pae"],
            "cpus": self.node["cpus"],
            "memory": self.hardware["memory_mib"],
            "nic_model_type": self.plan.board["nic_model"],
            # The address of a machine without an interface comes from QEMU's agent.
            "qemu_use_agent": not any(networks),
        }
        if not kvm:
            libvirt["cpu_model"] = self.hardware["cpu_model"]
        if self.role == "dut":
            own = libvirt["qemu_use_session"] and not kvm
            program = environment.dut_qemu() or (qemu_traceable(self.plan.root) if own else None)
            libvirt |= {"emulator_path": program} if program else {}
        return {
            "lab": self.lab.id,
            "box": self.box or f"fwlab-{self.node['image']}",
            "guest": self.system.guest,
            "shell": self.system.shell,
            "ssh_port": self.ssh_port,
            "networks": [network for network in networks if network],
            "pci": handed,
            "libvirt": libvirt,
            "qemu_arguments": self.qemu_arguments(),
            "seed": str(self.seed),
            "console": str(self.plan.root / ".fwlab" / "console" / f"{self.name}.log"),
            "savable": self.savable,
        }


def qemu_traceable(root: Path) -> str:
    """What starts an ordinary user's QEMU, so that it can be throttled. Root needs nothing for that."""
    return str(root / "provision" / "host" / "qemu-traceable")


class Plan:
    """The checkout at `root`, seen through the environment. Raises BadInput for what is wrong in either."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        reject_other_version(self.root)
        self.key = hardware.checkout_key(self.root)
        self.prefix = hardware.domain_prefix(self.root)
        topology = read_yaml_file(self.root / "topology.yml", "topology.yml")
        self.topology: Mapping[str, Any] = topology if isinstance(topology, dict) else {}
        try:
            self.board: Mapping[str, Any] = self.topology["machine"]
            self.address: str = self.topology["ports"]["address"]
            self._kinds = requested_kinds({name: link["kind"] for name, link in self.topology["links"].items()})
        except (KeyError, TypeError, AttributeError):
            self._explain()
            raise

    @cached_property
    def labs(self) -> list[str]:
        """Labs are found, not listed."""
        return sorted(path.name for path in (self.root / "labs").glob("lab[0-9][0-9]-*") if path.is_dir())

    @property
    def private_key(self) -> Path:
        """With which `vagrant ssh` and fwlab log in. Made once per checkout, never part of a box."""
        return self.root / ".fwlab" / "ssh" / "id_ed25519"

    @cached_property
    def images(self) -> Mapping[str, Any]:
        """The images that were built for this checkout, by name."""
        return json_object(self.root / ".fwlab" / "images.json")

    @cached_property
    def accelerator(self) -> str:
        """QEMU's: kvm only where the caller found that it works."""
        return environment.accelerator() or "tcg"

    @cached_property
    def testbed(self) -> Any:
        """The testbed of new machines."""
        name = os.environ.get("FWLAB_TESTBED") or "virtual"
        if (kind := testbed_of(name)) is not None:
            return kind
        from fwlab.testbed.testbeds import unknown

        raise unknown(name)

    def accelerator_of(self, role: str) -> str:
        """QEMU's accelerator for a machine. Only the DUT depends on the testbed."""
        return str(self.testbed.dut_accelerator(self.accelerator)) if role == "dut" else self.accelerator

    def port(self, base: str, lab: Lab, offset: int) -> int:
        """A port of a lab on this host."""
        ports = self.topology["ports"]
        return port_number(ports[base], ports["per_lab"], lab.number, offset, self._port_shift)

    @cached_property
    def _port_shift(self) -> int:
        return chosen_shift(self.root / ".fwlab")

    def settle_ports(self) -> None:
        """Choose ports that are free, if this checkout has no machines. Raises BadInput, CannotMeasure."""
        ports = self.topology["ports"]
        used = lab_ports(ports["ssh_base"], ports["link_base"], ports["per_lab"], self.labs)
        settle_ports(self.root, self.address, used)

    def lab(self, lab_id: str) -> Lab:
        """Reads the lab's `needs` and the record of its machines. fwlab reports what is wrong with either."""
        needs = _needs(self.root / "labs" / lab_id / "lab.yml")
        systems, nics = needs.get("systems"), needs.get("nics")
        usual = [self.topology["nodes"]["dut"].get("system", "linux")]
        named = [nic for nic in nics if re.fullmatch(r"[a-z][a-z0-9-]*", str(nic))] if isinstance(nics, list) else []
        made = json_object(self.root / ".fwlab" / lab_id / "machines.json").get("machines")
        machines = {role: one for role, one in made.items() if isinstance(one, dict)} if isinstance(made, dict) else {}
        return Lab(lab_id, systems if isinstance(systems, list) and systems else usual, tuple(named), machines)

    def machines(self, lab_id: str) -> list[Machine]:
        """The machines of a lab, in the topology's order."""
        try:
            return self._machines(self.lab(lab_id))
        except (KeyError, TypeError, AttributeError):
            self._explain()
            raise

    def machine(self, name: str) -> Machine:
        """A machine by Vagrant's name. Raises BadInput if there is none of that name."""
        labs = [lab for lab in self.labs if name == lab or name.startswith(f"{lab}-")]
        found = [machine for lab in labs for machine in self.machines(lab) if machine.name == name]
        if not found:
            raise BadInput(f"there is no machine {name}; the labs are: {', '.join(self.labs)}", "fwlab list")
        return found[0]

    def reject_other_choices(self, lab_id: str) -> None:
        """Raise CannotMeasure if a variable asks for another DUT or other links than those of machines that exist."""
        lab = self.lab(lab_id)
        reject_other_system(lab_id, self._made_system(lab), lab.systems, list(self._dut_images))
        if made := sorted(set(self._made_kinds(lab).values())):
            reject_other_links("+".join(made), lab_id)

    def kinds(self, lab: Lab) -> dict[str, str]:
        """The kind of each link, by the link's name. Machines keep the links that they were made with."""
        made = {
            name: kind for name, kind in self._made_kinds(lab).items() if name in self._kinds and is_known_link(kind)
        }
        return {**self._kinds, **made}

    def planned(self, labs: list[str]) -> dict[str, Any]:
        """What the Vagrantfile reads: these labs, or all if none is named."""
        machines = [machine for lab in labs or self.labs for machine in self.machines(lab)]
        devices = (nic_of(end.kind).host_device(end) for machine in machines for end in machine.ends)
        return {
            "labs": self.labs,
            "address": self.address,
            "private_key": str(self.private_key),
            "boot_timeout": environment.boot_timeout(),
            "libvirt_uri": environment.libvirt_uri(),
            "libvirt_lock": _libvirt_lock(),
            "connect_timeout": int(CONNECT_TIMEOUT_S * environment.timeout_scale()),
            "host_devices": [device for device in dict.fromkeys(devices) if device],
            "machines": {machine.name: machine.planned() for machine in machines},
        }

    @property
    def _dut_images(self) -> dict[str, str]:
        """By system, the usual one first."""
        dut = self.topology["nodes"]["dut"]
        others = {name: other["image"] for name, other in dut.get("other_systems", {}).items()}
        return {dut.get("system", "linux"): dut["image"], **others}

    def _made_system(self, lab: Lab) -> str | None:
        box = str(lab.made.get("dut", {}).get("box", ""))
        return next((name for name, image in self._dut_images.items() if box.startswith(f"fwlab-{image}-")), None)

    @staticmethod
    def _made_kinds(lab: Lab) -> dict[str, str]:
        found: dict[str, str] = {}
        for machine in lab.made.values():
            links = machine.get("links")
            found |= links if isinstance(links, dict) else {}
        return found

    def _machines(self, lab: Lab) -> list[Machine]:
        nodes = {role: {"system": "linux", **usual} for role, usual in self.topology["nodes"].items()}
        dut = nodes["dut"]
        system = self._made_system(lab) or chosen_system(lab.systems, list(self._dut_images))
        if system not in DUTS or system not in self._dut_images:
            known = ", ".join(self._dut_images)
            raise BadInput(f"{lab.id}: no DUT runs {system}; there are: {known}", f"fix labs/{lab.id}/lab.yml: needs")
        wanted = environment.dut_cpus()
        cpus = min(wanted, self.testbed.max_cpus) if wanted else dut["cpus"]
        nodes["dut"] = {**dut, **dut.get("other_systems", {}).get(system, {}), "system": system, "cpus": cpus}
        kinds = self.kinds(lab)
        return [Machine(self, lab, role, node, self._ends(lab, role, node, kinds)) for role, node in nodes.items()]

    def _ends(self, lab: Lab, role: str, node: Mapping[str, Any], kinds: Mapping[str, str]) -> list[LinkEnd]:
        hubs = all(nic_of(kind).interface == hardware.CARRIER for kind in kinds.values())
        ends = []
        for index, (name, link) in enumerate(self.topology["links"].items()):
            if role not in link["ends"]:
                continue
            far_role = next(other for other in link["ends"] if other != role)
            near, far = link["ends"][role], link["ends"][far_role]
            if "nic" in node:
                near = {**near, "dev": node["nic"] + re.sub(r"\A[a-z]+", "", near["dev"])}
            end = LinkEnd(
                name=name,
                kind=kinds[name],
                mtu=link["mtu"],
                near=near,
                far=far,
                behind_far=link.get("behind", {}).get(far_role, []),
                address=self.address,
                local_port=self.port("link_base", lab, near["port_offset"]),
                remote_port=self.port("link_base", lab, far["port_offset"]),
                role=role,
                queues=node["cpus"],
                accelerator=self.accelerator_of(role),
                device=hardware.device_name(self.key, lab.id, index),
                host=self._host_file.get(kinds[name], {}).get(name, {}),
                nics=lab.nics if role == "dut" and DUTS[node["system"]].other_nics and hubs else (),
            )
            ends.append(end)
        return ends

    @cached_property
    def _host_file(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What host.yml says of each link, by kind. HostLinks reports what is wrong with the file."""
        path = self.root / "host.yml"
        try:
            data = read_yaml_file(path, path.name) if path.exists() else {}
        except BadInput:
            return {}
        kinds = (
            {kind: links for kind, links in data.items() if isinstance(links, dict)} if isinstance(data, dict) else {}
        )
        return {kind: {n: link for n, link in links.items() if isinstance(link, dict)} for kind, links in kinds.items()}

    def _explain(self) -> None:
        """Raise BadInput that names the fault, if the fault is in topology.yml."""
        from fwlab.checkout.project import Project, load_topology

        load_topology(Project(self.root))


def _libvirt_lock() -> str | None:
    """Who uses a libvirt that no service manager started holds this lock (provision/host/libvirt)."""
    if os.getuid() == 0 and Path("/run/systemd/system").is_dir():
        return None
    folder = environment.user_cache() / "fwlab" / "run" if os.getuid() else Path("/run/fwlab")
    return str(folder / "use.lock")


def nic_of(kind: str) -> Any:
    """The machine's side of a link kind that is known."""
    if kind in hardware.NICS:
        return hardware.NICS[kind]
    from fwlab.testbed.link_kinds import LINKS

    return LINKS[kind]


def testbed_of(name: str) -> Any:
    """The DUT's side of a testbed; None if it is not known."""
    if name in hardware.DUTS:
        return hardware.DUTS[name]
    from fwlab.testbed.testbeds import TESTBEDS  # those of plug-ins, too

    return TESTBEDS.get(name)


def _needs(path: Path) -> Mapping[str, Any]:
    """What lab.yml says under `needs`; nothing if that cannot be read.

    The field alone is parsed, which takes a thirtieth of the time, unless it refers to other fields.
    """
    try:
        text = path.read_text()
        block = re.search(r"^needs:.*\n(?:[ #].*\n|\n)*", text, re.MULTILINE)
        try:
            data = parse_yaml(block[0]) if block else {}
        except yaml.YAMLError:
            data = parse_yaml(text)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    needs = data.get("needs") if isinstance(data, dict) else None
    return needs if isinstance(needs, dict) else {}


def json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is none."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
