# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kind of link is, and the registry of all kinds.

A kind is one module in links/, which declares its object as LINK. Others are entry points of the group `fwlab.links`.
choices.py says which link has which kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fwlab.model.registry import Registry, discover
from fwlab.testbed.hardware import LinkEnd, Network


@dataclass(frozen=True)
class Requirement:
    """Something that the host must have: what it is, whether it is there, and the command that provides it."""

    what: str
    met: bool
    next: str = ""


class LinkKind(Protocol):
    """How the two ends of a link are joined.

    name     as topology.yml, the record of the machines and the results call it
    summary  what carries the frames, in a few words
    netdevs  what carries it in QEMU's arguments, a type of -netdev or a driver of -device: it identifies the links of
             machines that run
    interface       libvirt's type of the interface: it identifies the links of machines that are defined
    savable         whether a machine with such links can continue from a saved state
    qemu_arguments  for all NICs of a machine with such links

    A kind that needs something on the host before machines start is also a HostLinkKind (host_links/changes.py).
    """

    name: str
    summary: str
    netdevs: tuple[str, ...]
    interface: str
    savable: bool
    qemu_arguments: tuple[str, ...]

    def network(self, end: LinkEnd) -> Network | None:
        """What Vagrant's `vm.network` takes for an end; None if the provider makes no interface for it."""

    def ports(self, end: LinkEnd) -> list[tuple[str, int]]:
        """What an end listens on: protocol and port."""

    def host_device(self, end: LinkEnd) -> str | None:
        """The NIC of the host that an end is attached to."""

    def handed_over(self, end: LinkEnd) -> dict[str, str] | None:
        """The PCI device that the machine gets in place of an interface, by part of its address."""

    def requirements(self, kernels: Sequence[str]) -> tuple[Requirement, ...]:
        """What the host must have. `kernels`: those of the boxes that were built."""


LINKS: Registry[LinkKind] = discover("link kind", "fwlab.testbed.links", "LINK", "fwlab.links", LinkKind)


def link_of(netdev: str) -> str:
    """The kind of link that a -netdev of this type carries; the type itself if no kind is known, or several are."""
    kinds = [kind.name for kind in LINKS.values() if netdev in kind.netdevs]
    return kinds[0] if len(kinds) == 1 else netdev


def as_qemu_shows(links: str) -> str:
    """Kinds of links, joined by "+", as far as QEMU's arguments tell them apart: a tap device carries several."""
    shown = {link_of(LINKS[name].netdevs[0]) if name in LINKS else name for name in links.split("+")}
    return "+".join(sorted(shown))
