# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtio links: both machines are ports of a bridge without address or uplink. Under KVM, vhost carries them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fwlab.host.environment import libvirt_uri
from fwlab.host.nics import Devices
from fwlab.model.errors import CannotMeasure
from fwlab.testbed.hardware import BridgeNic
from fwlab.testbed.host_links.changes import LinkOnHost, NewBridge
from fwlab.testbed.link_kinds import Requirement


@dataclass(frozen=True)
class Virtio(BridgeNic):
    """Each link is a bridge."""

    devices: Devices = field(default_factory=Devices)
    name: str = "virtio"
    summary: str = "a bridge of its own on the host, without address or uplink; vhost under KVM"
    netdevs: tuple[str, ...] = ("tap",)

    def requirements(self, kernels: Sequence[str]) -> tuple[Requirement, ...]:
        filters = [
            self.devices.proc / "sys/net/bridge" / f"bridge-nf-call-{name}" for name in ("iptables", "ip6tables")
        ]
        filtered = any(path.exists() and path.read_text().strip() != "0" for path in filters)
        said = "the host's own firewall sees bridged frames, and would filter and slow what is measured"
        command = "sysctl " + " ".join(f"net.bridge.{path.name}=0" for path in filters)
        return (*host_network(self.devices), Requirement(said, not filtered, command))

    def changes(self, link: LinkOnHost) -> tuple[NewBridge, ...]:
        reject_taken(link)
        return (NewBridge(name=link.device, mtu=link.mtu, alias=link.alias),)


def host_network(devices: Devices) -> tuple[Requirement, ...]:
    """What every kind needs whose frames pass through the host's network stack."""
    system = system_libvirt("attach machines to the host's NICs")
    tun = Requirement("there is no /dev/net/tun", (devices.dev / "net" / "tun").exists(), "modprobe tun")
    vhost = Requirement("there is no /dev/vhost-net, which KVM machines need", _vhost(devices), "modprobe vhost_net")
    return system, tun, vhost


def system_libvirt(privilege: str) -> Requirement:
    """The libvirt of the system, which may do this; a user's own may not."""
    hint = "export FWLAB_LIBVIRT_URI=qemu:///system (as root, or in the group libvirt)"
    return Requirement(f"libvirt at {libvirt_uri()} may not {privilege}", libvirt_uri().endswith("/system"), hint)


def reject_taken(link: LinkOnHost) -> None:
    """Raise CannotMeasure if something else has the name of the NIC that the link needs."""
    if link.devices.has_nic(link.device):
        raise CannotMeasure(
            f"link {link.name}: the name {link.device} is taken by a NIC that {link.lab} did not make",
            f"`ip -details link show dev {link.device}` says what it is; if nobody needs it: "
            f"ip link delete dev {link.device}",
        )


def _vhost(devices: Devices) -> bool:
    return (devices.dev / "vhost-net").exists() or not (devices.dev / "kvm").exists()


LINK = Virtio()
