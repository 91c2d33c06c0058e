# SPDX-License-Identifier: GPL-2.0-or-later
"""SR-IOV links: each machine has a virtual function (VF) of a NIC for itself; the NIC switches between them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fwlab.host.nics import NO_ADMINISTRATION, VFIO, Devices, VfSettings, VirtualFunction
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.topology import Role
from fwlab.testbed.hardware import VfNic
from fwlab.testbed.host_file import HINT, NAME, SriovLink
from fwlab.testbed.host_links.changes import LinkOnHost, VfAsIs, VfSet
from fwlab.testbed.link_kinds import Requirement
from fwlab.testbed.links.macvtap import reject_unfit
from fwlab.testbed.links.virtio import system_libvirt


@dataclass(frozen=True)
class Sriov(VfNic):
    """Links as VFs of one NIC, handed to the machines by VFIO."""

    devices: Devices = field(default_factory=Devices)
    name: str = "sriov"
    summary: str = "VFs of a NIC, handed to the machines; host.yml names them"
    netdevs: tuple[str, ...] = ("vfio-pci",)

    def requirements(self, kernels: Sequence[str]) -> tuple[Requirement, ...]:
        physical = self.devices.physical_functions()
        have = any(now for now, _ in physical.values())
        where = next(iter(physical), "")
        driven = not any("-cloud-" in kernel for kernel in kernels)
        make = self.devices.vfs_command(where) if where else "use a NIC with SR-IOV"
        return (
            system_libvirt("hand PCI devices to machines"),
            Requirement(NO_IOMMU, self.devices.iommu_groups() > 0, IOMMU_HINT),
            Requirement("no NIC has virtual functions", have, make),
            Requirement(NO_DRIVER, driven, "FWLAB_KERNEL=full make boxes"),
        )

    def changes(self, link: LinkOnHost) -> tuple[VfSet | VfAsIs, ...]:
        named = link.file.sriov.get(link.name)
        if named is None:
            raise BadInput(f"{NAME}: sriov.{link.name}: this field is missing", HINT)
        return tuple(self._change(link, named, role, address) for role, address in named.ends.items())

    def _change(self, link: LinkOnHost, named: SriovLink, role: Role, address: str) -> VfSet | VfAsIs:
        place = f"{NAME}: sriov.{link.name}.ends.{role}: {address}"
        vf = _found(link, place, address)
        reject_unfit(link, f"{place}: its physical function {vf.nic}", vf.nic)
        if vf.group is None:
            raise CannotMeasure(f"{place} is in no IOMMU group: {NO_IOMMU}", IOMMU_HINT)
        before = link.ip.vf(vf.nic, vf.index)
        if before is None:
            _reject_unkept(link, named, vf.nic)
            return VfAsIs(address=address, nic=vf.nic)
        wanted = VfSettings(
            mac=link.macs[role],
            vlan=named.vlan,
            spoof_check=None if before.spoof_check is None else named.spoof_check,
            trust=None if before.trust is None else named.trust,
        )
        return VfSet(address=address, nic=vf.nic, index=vf.index, before=before, wanted=wanted)


def _reject_unkept(link: LinkOnHost, named: SriovLink, nic: str) -> None:
    """Raise BadInput for a setting of host.yml that the driver of the physical function `nic` cannot make."""
    unkept = [name for name in ("vlan", "trust", "spoof_check") if getattr(named, name)]
    if unkept:
        which = " and ".join(f"{NAME}: sriov.{link.name}.{name}" for name in unkept)
        hint = f"in {NAME}: vlan 0, trust false, spoof_check false, and a NIC of its own for each link"
        raise BadInput(f"{which}: the driver of {nic} {NO_ADMINISTRATION}", hint)


def _found(link: LinkOnHost, place: str, address: str) -> VirtualFunction:
    """The VF, if it is one and no machine of another lab has it."""
    vf = link.devices.virtual_function(address)
    if vf is None and not link.devices.has_pci(address):
        raise BadInput(f"{place}: there is no such PCI device on this host", HINT)
    if vf is None or not vf.nic:
        raise BadInput(f"{place} is no virtual function of a NIC that this host can see", HINT)
    if vf.driver == VFIO:
        holders = [name for name in link.devices.machines_with(address) if not name.startswith(link.machines)]
        if holders:
            message = f"{place} is taken by the machine {holders[0]}"
            raise CannotMeasure(message, f"name another VF in {NAME}, or end that machine: virsh shutdown {holders[0]}")
    return vf


NO_DRIVER = "the boxes have Debian's cloud kernel, which has no driver for virtual functions"
NO_IOMMU = "this host has no IOMMU groups, without which no PCI device can be handed to a machine"
IOMMU_HINT = "switch on VT-d or AMD-Vi in the firmware, add intel_iommu=on (Intel) to the kernel's command line, reboot"

LINK = Sriov()
