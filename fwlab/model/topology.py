# SPDX-License-Identifier: GPL-2.0-or-later
"""topology.yml as data: nodes, links and ports."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase
from typing import Literal

from pydantic import Field

from fwlab.model.declared import Frozen
from fwlab.model.errors import BadInput
from fwlab.model.port_numbers import lab_ports, port_number

Role = Literal["generator", "dut", "sink"]
ROLES: tuple[Role, ...] = ("generator", "dut", "sink")


class Ports(Frozen):
    """Ports on the host: base + per_lab * number of the lab + offset of the node or link end."""

    address: str
    ssh_base: int
    link_base: int
    per_lab: int

    def of_labs(self, labs: Iterable[str]) -> list[int]:
        """All that these labs' machines may use, before they are shifted."""
        return lab_ports(self.ssh_base, self.link_base, self.per_lab, labs)


class Clock(Frozen):
    """The virtual testbed's clock: each instruction takes 2**icount_shift ns."""

    icount_shift: int


class HardwareDefaults(Frozen):
    """The virtual hardware that all nodes have in common.

    receive_ring   packets
    link_pci_slot  where the NICs of a DUT with several on each link begin (fwlab/testbed/hardware.py)
    """

    type: str
    cpu_model: str
    nic_model: str
    receive_ring: int
    management_pci_slot: int
    link_pci_slot: int
    management_network: str
    management_address: str


class WithTrex(Frozen):
    """What a node's machine has instead if its image contains TRex."""

    memory_mib: int
    cpu_model: str


class OtherSystem(Frozen):
    """What a node's machine has instead if it runs another system. `nic`: its NICs are nic0, nic1, ... by PCI slot."""

    image: str
    nic: str


class Node(Frozen):
    """One machine. `image`: the box, by name; `system`: a DUT's operating system (fwlab/dut)."""

    image: str
    system: str = "linux"
    cpus: int
    memory_mib: int
    ssh_offset: int
    with_trex: WithTrex | None = None
    other_systems: dict[str, OtherSystem] = {}

    @property
    def systems(self) -> list[str]:
        """Every system that the node can run, the usual one first."""
        return [self.system, *self.other_systems]


class LinkEnd(Frozen):
    """One end of a link: the NIC, as its machine names it, and its addresses."""

    dev: str
    mac: str
    ipv4: str
    ipv6: str
    port_offset: int


class Link(Frozen):
    """One link. `kind`: how its two ends are joined, by name (fwlab/testbed/links)."""

    kind: str
    mtu: int
    ends: dict[Role, LinkEnd]
    behind: dict[Role, list[str]]

    def with_dut_nics(self, nic: str) -> Link:
        """The same link with the DUT's NIC under another name: eth1 is vtnet1, for example."""
        end = self.ends.get("dut")
        if end is None:
            return self
        renamed = end.model_copy(update={"dev": nic + end.dev.lstrip(ascii_lowercase)})
        return self.model_copy(update={"ends": {**self.ends, "dut": renamed}})


class Topology(Frozen):
    """The whole file. `port_shift`: what this checkout has chosen, which the file does not say."""

    ports: Ports
    clock: Clock
    machine: HardwareDefaults
    nodes: dict[Role, Node]
    links: dict[str, Link]
    port_shift: int = Field(default=0, exclude=True)

    def with_dut(self, system: str) -> Topology:
        """The same topology with a DUT that runs `system`. Raises BadInput if there is no such DUT."""
        dut = self.nodes["dut"]
        if system == dut.system:
            return self
        other = dut.other_systems.get(system)
        if other is None:
            raise BadInput(f"topology.yml: no DUT runs {system}", f"use one of: {', '.join(dut.systems)}")
        node = dut.model_copy(update={"system": system, "image": other.image, "other_systems": {}})
        links = {name: link.with_dut_nics(other.nic) for name, link in self.links.items()}
        return self.model_copy(update={"nodes": {**self.nodes, "dut": node}, "links": links})

    def system_of(self, box: str) -> str | None:
        """The system of a DUT that was made from this box; None if no DUT's image has that name."""
        dut = self.nodes["dut"]
        images = {dut.system: dut.image, **{name: other.image for name, other in dut.other_systems.items()}}
        return next((name for name, image in images.items() if box.startswith(f"fwlab-{image}-")), None)

    def ssh_port(self, lab_number: int, role: Role) -> int:
        """TCP port on the loopback address that leads to the node's SSH server."""
        return self._port(self.ports.ssh_base, lab_number, self.nodes[role].ssh_offset)

    def link_port(self, lab_number: int, link: str, role: Role) -> int:
        """UDP port on which that end of the link receives frames."""
        return self._port(self.ports.link_base, lab_number, self.links[link].ends[role].port_offset)

    def _port(self, base: int, lab_number: int, offset: int) -> int:
        return port_number(base, self.ports.per_lab, lab_number, offset, self.port_shift)

    def end(self, link: str, role: Role) -> LinkEnd:
        """The node's end of a link. Raises KeyError."""
        return self.links[link].ends[role]
