# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kind of link is, and the registry of all kinds.

A kind is one module in links/, which declares its object as LINK. Others are entry points of the group `fwlab.links`.
Vagrant's side of a kind is provision/vagrant/links/NAME.rb; a plug-in puts that file into the checkout's
.fwlab/vagrant/links/. link_choice.py says which link has which kind.
"""

from typing import Protocol

from fwlab.host.requirement import Requirement
from fwlab.model.registry import Registry, discover


class LinkKind(Protocol):
    """How the two ends of a link are joined.

    name     as topology.yml, the record of the machines and the results call it
    summary  what carries the frames, in a few words
    netdevs  what carries it in QEMU's arguments, a type of -netdev or a driver of -device: it identifies the links of
             machines that run

    A kind that needs something on the host before machines start is also a HostLinkKind (host_links/link_on_host.py).
    """

    name: str
    summary: str
    netdevs: tuple[str, ...]

    def requirements(self) -> tuple[Requirement, ...]:
        """What the host must have."""


LINKS: Registry[LinkKind] = discover("link kind", "fwlab.testbed.links", "LINK", "fwlab.links", LinkKind)


def link_of(netdev: str) -> str:
    """The kind of link that a -netdev of this type carries; the type itself if no kind is known, or several are."""
    kinds = [kind.name for kind in LINKS.values() if netdev in kind.netdevs]
    return kinds[0] if len(kinds) == 1 else netdev


def as_qemu_shows(links: str) -> str:
    """Kinds of links, joined by "+", as far as QEMU's arguments tell them apart: a tap device carries several."""
    shown = {link_of(LINKS[name].netdevs[0]) if name in LINKS else name for name in links.split("+")}
    return "+".join(sorted(shown))
