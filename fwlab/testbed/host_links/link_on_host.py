# SPDX-License-Identifier: GPL-2.0-or-later
"""One link of one lab as this host has to carry it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from fwlab.host.devices import Devices
from fwlab.host.iproute import Ip
from fwlab.model.topology import Role
from fwlab.testbed.host_file import HostFile
from fwlab.testbed.host_links.changes import Change


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
        """What `ip link` shows beside a NIC that the project made."""
        return f"fwlab {self.lab} {self.name}"


@runtime_checkable
class HostLinkKind(Protocol):
    """A kind of link that needs something on the host before machines start."""

    def changes(self, link: LinkOnHost) -> tuple[Change, ...]:
        """What has to be changed. Raises BadInput for a wrong host.yml, CannotMeasure if the host cannot carry it."""
