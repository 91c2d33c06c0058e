# SPDX-License-Identifier: GPL-2.0-or-later
"""What the built-in link kinds and testbeds ask of Vagrant's libvirt provider and of QEMU.

The kinds in links/ and kinds/ extend these classes, whose methods LinkKind and TestbedKind document. This module
imports next to nothing, because `vagrant` needs it at each command.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

#: What was changed on this host for links. Emptied at each boot, as is what it describes.
HOST_CHANGES = Path("/run/fwlab/links")
#: libvirt's type of the interfaces whose frames can reach several NICs.
CARRIER = "udp"
#: What the NICs of a machine can do on a socket link, and no more. Otherwise a tap device would let the guest send and
#: receive TCP segments of 64 KiB, and rules would see fewer packets.
OFFLOADS = "csum gso guest_csum guest_tso4 guest_tso6 guest_ecn guest_ufo host_tso4 host_tso6 host_ecn host_ufo"
WITHOUT_OFFLOADS = tuple(word for name in OFFLOADS.split() for word in ("-global", f"virtio-net-pci.{name}=off"))
_VF = re.compile(r"(?i)(?P<domain>[0-9a-f]{4}):(?P<bus>[0-9a-f]{2}):(?P<slot>[0-9a-f]{2})\.(?P<function>[0-7])")


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link, as its own machine has it.

    kind          by name
    near, far     the two ends in topology.yml; `behind_far`: networks behind the far one
    local_port    UDP port on the loopback address at which this end receives; `remote_port`: that of the far end
    queues        one for each CPU of the machine
    accelerator   QEMU's, for the machine
    device        the NIC that the project may make for the link on the host
    host          what host.yml says about the link
    nics          models that the machine has on the link in addition to the usual one
    """

    name: str
    kind: str
    mtu: int
    near: Mapping[str, Any]
    far: Mapping[str, Any]
    behind_far: list[str]
    address: str
    local_port: int
    remote_port: int
    role: str
    queues: int
    accelerator: str
    device: str
    host: Mapping[str, Any]
    nics: tuple[str, ...] = ()


def checkout_key(root: Path) -> str:
    """Tells this checkout's machines, seeds and devices from those of every other one on this host."""
    return hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:8]


def domain_prefix(root: Path) -> str:
    """What libvirt's names of this checkout's machines begin with. The name of the machine in Vagrant follows."""
    return f"fwlab-{checkout_key(root)}-"


def device_name(key: str, lab_id: str, index: int) -> str:
    """The NIC that the project makes for link `index` of a lab. `key`: the checkout's."""
    return f"fwl-{key[:6]}-{lab_id[3:5]}{index}"


#: The provider's kind of network, and its options.
Network = tuple[Literal["private_network", "public_network"], dict[str, Any]]


class SocketNic:
    """An interface whose frames travel in UDP datagrams. A saved machine can continue with other ports."""

    interface = CARRIER
    savable = True
    qemu_arguments: tuple[str, ...] = ()

    def network(self, end: LinkEnd) -> Network | None:
        options = {"ip": end.near["ipv6"].split("/")[0], "mac": end.near["mac"], "auto_config": False}
        options |= {"libvirt__tunnel_type": "udp"}
        options |= {"libvirt__tunnel_local_ip": end.address, "libvirt__tunnel_local_port": end.local_port}
        options |= {"libvirt__tunnel_ip": end.address, "libvirt__tunnel_port": end.remote_port}
        return "private_network", options

    def ports(self, end: LinkEnd) -> list[tuple[str, int]]:
        return [("udp", end.local_port)]

    def host_device(self, _end: LinkEnd) -> str | None:
        return None

    def handed_over(self, _end: LinkEnd) -> dict[str, str] | None:
        return None


class BridgeNic(SocketNic):
    """An interface on a bridge of the host."""

    interface = "bridge"
    savable = False
    qemu_arguments = WITHOUT_OFFLOADS

    def network(self, end: LinkEnd) -> Network | None:
        # Under KVM the kernel carries the frames (vhost), else QEMU itself.
        options = {"dev": self.host_device(end), "type": self.interface, "mac": end.near["mac"], "auto_config": False}
        carrier = "vhost" if end.accelerator == "kvm" else "qemu"
        return "public_network", {**options, "libvirt__driver_name": carrier, "libvirt__driver_queues": end.queues}

    def ports(self, _end: LinkEnd) -> list[tuple[str, int]]:
        return []

    def host_device(self, end: LinkEnd) -> str | None:
        return end.device


class MacvtapNic(BridgeNic):
    """A macvtap device on a NIC that host.yml names; "dummy" is one that the project makes."""

    interface = "direct"

    def network(self, end: LinkEnd) -> Network | None:
        # In mode "bridge" the two ends reach each other through the NIC's driver.
        made = super().network(end)
        return made and (made[0], {**made[1], "mode": "bridge"})

    def host_device(self, end: LinkEnd) -> str | None:
        nic = end.host.get("nic")
        return end.device if nic in (None, "dummy") else str(nic)


class VfNic(BridgeNic):
    """A virtual function of a NIC, handed to the machine as a PCI device."""

    interface = "hostdev"
    qemu_arguments = ()

    def network(self, _end: LinkEnd) -> Network | None:
        return None

    def host_device(self, _end: LinkEnd) -> str | None:
        return None  # the provider checks only NICs

    def handed_over(self, end: LinkEnd) -> dict[str, str] | None:
        # Empty if host.yml names none, which HostLinks reports.
        ends = end.host.get("ends")
        found = _VF.fullmatch(str(ends.get(end.role, ""))) if isinstance(ends, dict) else None
        return {part: f"0x{digits}" for part, digits in found.groupdict().items()} if found else {}


class EmulatedDut:
    """A DUT whose clock counts instructions, which only emulation can do, and on one CPU only."""

    max_cpus = 1
    savable = True  # what its machines see does not depend on the host

    def dut_accelerator(self, _usual: str) -> str:
        return "tcg"

    def dut_arguments(self, topology: Mapping[str, Any]) -> list[str]:
        # QEMU's main loop sends packets, and learns of packets to send, when the host schedules it; and a full transmit
        # ring costs the DUT instructions. With a timer on the DUT's own clock, and notification in the CPU's own
        # thread, both happen at the same instruction each time.
        clock = f"shift={topology['clock']['icount_shift']},sleep=on"
        return ["-icount", clock, "-global", "virtio-net-pci.tx=timer", "-global", "virtio-net-pci.ioeventfd=off"]

    def matches(self, _accelerator: str, icount_shift: int | None) -> bool:
        return icount_shift is not None


class HostClockDut:
    """A DUT by the host's clock."""

    max_cpus = 64
    savable = False

    def dut_accelerator(self, usual: str) -> str:
        return usual

    def dut_arguments(self, _topology: Mapping[str, Any]) -> list[str]:
        return []

    def matches(self, _accelerator: str, icount_shift: int | None) -> bool:
        return icount_shift is None


#: The machine's side of the built-in kinds.
NICS = {"socket": SocketNic(), "virtio": BridgeNic(), "macvtap": MacvtapNic(), "sriov": VfNic()}
DUTS = {"virtual": EmulatedDut(), "real": HostClockDut()}


def hub_arguments(board: Mapping[str, Any], ends: list[LinkEnd]) -> list[str]:
    """QEMU's arguments for a machine with several NICs on each link.

    The socket and all NICs of a link are ports of one hub, so every NIC hears the same frames; the DUT uses one at a
    time (fwlab/rulesets/kinds/nic.py). libvirt knows no hubs. The usual NICs come first on the PCI bus, so that the
    guest counts them first.
    """
    words = []
    for hub, end in enumerate(ends):
        socket = f"socket,id={end.name},udp={end.address}:{end.remote_port},localaddr={end.address}:{end.local_port}"
        words += ["-netdev", socket, "-netdev", f"hubport,id={end.name}-wire,hubid={hub},netdev={end.name}"]
        for place, model in enumerate((f"{board['nic_model']}-net-pci", *end.nics)):
            slot = board["link_pci_slot"] + place * len(ends) + hub
            mac = end.near["mac"].split(":")
            mac[2] = f"{place:02x}"  # counts the NICs
            device = f"{model},netdev={end.name}-{place},mac={':'.join(mac)},addr={slot:#x}"
            words += ["-netdev", f"hubport,id={end.name}-{place},hubid={hub}", "-device", device]
    return words


def links_on_hubs(words: list[str]) -> list[str]:
    """The names of the links that QEMU's arguments join to hubs."""
    found = (re.match(r"socket,id=([\w-]+),udp=", word) for word in words)
    return [name[1] for name in found if name]
