# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes that links make to this host, and what a kind of link is asked for them.

Each change knows how it is undone, and undoing it twice changes nothing more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import Field

from fwlab.host.nics import Devices, Ip, VfSettings
from fwlab.model.declared import Frozen
from fwlab.model.topology import Role
from fwlab.testbed.host_file import HostFile


class _MadeNic(Frozen):
    """A NIC that the project makes. `change` is also what `ip link` calls its type."""

    change: str
    name: str
    mtu: int
    alias: str

    options: ClassVar[tuple[str, ...]] = ()
    what: ClassVar[str] = "NIC"

    @property
    def device(self) -> str:
        """The NIC that it makes."""
        return self.name

    def apply(self, ip: Ip) -> None:
        """Make it: up, and without the IPv6 address that the kernel would give it. The host itself must never speak on
        a link."""
        ip.run(["link", "add", "name", self.name, "type", self.change, *self.options])
        quiet = ["addrgenmode", "none", "arp", "off"]
        ip.run(["link", "set", "dev", self.name, "alias", self.alias, "mtu", str(self.mtu), *quiet])
        ip.run(["link", "set", "dev", self.name, "up"])

    def undo(self, ip: Ip, devices: Devices) -> None:
        """Remove it if it is there."""
        if devices.has_nic(self.name):
            ip.run(["link", "delete", "dev", self.name, "type", self.change])

    def missing(self, _ip: Ip, devices: Devices) -> str | None:
        """What of it is gone, in words."""
        return None if devices.has_nic(self.name) else f"the {self.what} {self.name} is gone"


class NewBridge(_MadeNic):
    """A bridge without address, uplink, spanning tree or multicast snooping: frames go from port to port only."""

    change: Literal["bridge"] = "bridge"
    options = ("stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
    what = "bridge"


class NewDummy(_MadeNic):
    """A NIC that leads nowhere: what is sent to it is dropped. Two macvtap devices on it reach each other only."""

    change: Literal["dummy"] = "dummy"


class _AsItIs(Frozen):
    """What a link uses as it is. No other lab may use it meanwhile, and it may get lost."""

    def apply(self, ip: Ip) -> None:
        """Nothing to do."""

    def undo(self, ip: Ip, devices: Devices) -> None:
        """Nothing to do."""


class HostNic(_AsItIs):
    """A NIC of the host."""

    change: Literal["nic"] = "nic"
    name: str

    @property
    def device(self) -> str:
        """The NIC."""
        return self.name

    def missing(self, _ip: Ip, devices: Devices) -> str | None:
        """Whether it is gone or down, in words."""
        if not devices.has_nic(self.name):
            return f"the NIC {self.name} is gone"
        return None if devices.is_up(self.name) else f"the NIC {self.name} is down"


class VfAsIs(_AsItIs):
    """A VF whose physical function cannot administer it: nothing is set."""

    change: Literal["vf-as-is"] = "vf-as-is"
    address: str
    nic: str

    @property
    def device(self) -> str:
        """The VF's PCI address."""
        return self.address

    def missing(self, _ip: Ip, devices: Devices) -> str | None:
        """Whether the VF is gone or its physical function is down, in words."""
        if devices.virtual_function(self.address) is None:
            return f"the VF {self.address} of {self.nic} is gone"
        return (
            None if devices.is_up(self.nic) else f"{self.nic}, the physical function of the VF {self.address}, is down"
        )


class VfSet(VfAsIs):
    """What a physical function enforces for one VF: before, and while the machines have it."""

    change: Literal["vf"] = "vf"  # type: ignore[assignment]  # another member of the union
    index: int
    before: VfSettings
    wanted: VfSettings

    def apply(self, ip: Ip) -> None:
        """Set it."""
        ip.set_vf(self.nic, self.index, self.wanted)

    def undo(self, ip: Ip, devices: Devices) -> None:
        """Set it back. A VF that no longer exists has nothing to set back."""
        vf = devices.virtual_function(self.address)
        if vf is not None and (vf.nic, vf.index) == (self.nic, self.index):
            ip.set_vf(self.nic, self.index, self.before)


Change = Annotated[NewBridge | NewDummy | HostNic | VfSet | VfAsIs, Field(discriminator="change")]


@dataclass(frozen=True)
class LinkOnHost:
    """A link and what its kind may ask.

    device   name of the NIC that the project makes for it, if the kind needs one
    mtu      bytes
    macs     by end
    machines start of libvirt's names of the lab's machines
    read     reads host.yml; raises BadInput
    """

    name: str
    lab: str
    device: str
    mtu: int
    macs: dict[Role, str]
    machines: str
    read: Callable[[], HostFile]
    devices: Devices
    ip: Ip

    @cached_property
    def file(self) -> HostFile:
        """host.yml."""
        return self.read()

    @property
    def alias(self) -> str:
        """What `ip link` shows as the alias of a NIC that the project made."""
        return f"fwlab {self.lab} {self.name}"


@runtime_checkable
class HostLinkKind(Protocol):
    """A kind of link that needs something on the host before machines start."""

    def changes(self, link: LinkOnHost) -> tuple[Change, ...]:
        """What has to be changed. Raises BadInput for a wrong host.yml, CannotMeasure if the host cannot carry it."""
