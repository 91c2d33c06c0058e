# SPDX-License-Identifier: GPL-2.0-or-later
"""Macvtap links: both machines share one NIC of the host, which switches between them (macvtap's mode "bridge")."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fwlab.host.nics import Devices
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed.hardware import MacvtapNic
from fwlab.testbed.host_file import DUMMY, HINT, NAME
from fwlab.testbed.host_links.changes import HostNic, LinkOnHost, NewDummy
from fwlab.testbed.link_kinds import Requirement
from fwlab.testbed.links.virtio import host_network, reject_taken


@dataclass(frozen=True)
class Macvtap(MacvtapNic):
    """Links as two macvtap devices on one NIC."""

    devices: Devices = field(default_factory=Devices)
    name: str = "macvtap"
    summary: str = "two macvtap devices on one NIC of the host, which host.yml names; vhost under KVM"
    netdevs: tuple[str, ...] = ("tap",)

    def requirements(self, kernels: Sequence[str]) -> tuple[Requirement, ...]:
        return host_network(self.devices)

    def changes(self, link: LinkOnHost) -> tuple[NewDummy | HostNic, ...]:
        named = link.file.macvtap.get(link.name)
        if named is None:
            raise BadInput(f"{NAME}: macvtap.{link.name}: this field is missing", HINT)
        if named.nic == DUMMY:
            reject_taken(link)
            return (NewDummy(name=link.device, mtu=link.mtu, alias=link.alias),)
        reject_unfit(link, f"{NAME}: macvtap.{link.name}.nic: {named.nic}", named.nic)
        return (HostNic(name=named.nic),)


def reject_unfit(link: LinkOnHost, place: str, nic: str) -> None:
    """Raise unless test traffic on this NIC gets to the machines, and to nothing else. `place` begins the message."""
    devices = link.devices
    if not devices.has_nic(nic):
        raise BadInput(f"{place}: there is no such NIC; there are: {', '.join(devices.nics())}", HINT)
    if devices.is_wireless(nic):
        why = "is wireless, and an access point drops frames from a machine's own MAC address"
        raise BadInput(f"{place} {why}", f"name a wired NIC, or {DUMMY}, in {NAME}")
    if master := devices.master(nic):
        raise BadInput(f"{place} is a port of {master}: test traffic would leave this host", HINT)
    if addresses := link.ip.addresses(nic):
        why = f"has the host's address {addresses[0]}: test traffic would leave this host"
        raise BadInput(f"{place} {why}", f"name a NIC that nothing else uses, in {NAME}")
    if not devices.is_up(nic):
        raise CannotMeasure(f"{place} is down", f"ip link set dev {nic} up, and look at its cable")


LINK = Macvtap()
