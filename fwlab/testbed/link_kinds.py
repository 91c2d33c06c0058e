# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kind of link is, and the registry of all kinds.

A kind is one module in links/, which declares its object as LINK. Others are entry points of the group `fwlab.links`.
Vagrant's side of a kind is provision/vagrant/links/NAME.rb; a plug-in puts that file into the checkout's
.fwlab/vagrant/links/. topology.yml names the kind of each link.
"""

from typing import Protocol

from fwlab.host.requirement import Requirement
from fwlab.model.errors import BadInput
from fwlab.model.registry import Registry, discover
from fwlab.model.topology import Topology


class LinkKind(Protocol):
    """How the two ends of a link are joined.

    name     as topology.yml, the record of the machines and the results call it
    summary  what carries the frames, in a few words
    netdevs  types of QEMU's -netdev that carry it: they identify the links of machines that run
    """

    name: str
    summary: str
    netdevs: tuple[str, ...]

    def requirements(self) -> tuple[Requirement, ...]:
        """What the host must have."""


LINKS: Registry[LinkKind] = discover("link kind", "fwlab.testbed.links", "LINK", "fwlab.links", LinkKind)


def link_kinds(topology: Topology) -> tuple[LinkKind, ...]:
    """The kinds of the topology's links, each once. Raises BadInput for a kind that does not exist."""
    for name, link in topology.links.items():
        if link.kind not in LINKS:
            raise BadInput(
                f"topology.yml: links.{name}.kind: unknown link kind {link.kind}; there are: {', '.join(LINKS)}",
                "fix topology.yml",
            )
    return tuple(LINKS[name] for name in dict.fromkeys(link.kind for link in topology.links.values()))


def link_of(netdev: str) -> str:
    """The kind of link that a -netdev of this type carries; the type itself if no kind is known."""
    return next((kind.name for kind in LINKS.values() if netdev in kind.netdevs), netdev)
