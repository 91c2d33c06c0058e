# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kind each link gets: $FWLAB_LINK for all of them, else what topology.yml says.

Machines keep the links that they were made with. As in provision/vagrant/link_choice.rb.
"""

import os

from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.topology import Topology
from fwlab.testbed.link_kinds import LINKS, LinkKind

VARIABLE = "FWLAB_LINK"


def requested_kinds(topology: Topology) -> dict[str, str]:
    """The kind of each link of new machines, by the link's name. Raises BadInput for a kind that does not exist."""
    forced = os.environ.get(VARIABLE)
    if forced:
        if forced not in LINKS:
            raise BadInput(
                f"{VARIABLE}={forced}: unknown link kind; there are: {', '.join(LINKS)}", f"export {VARIABLE}=socket"
            )
        return dict.fromkeys(topology.links, forced)
    for name, link in topology.links.items():
        if link.kind not in LINKS:
            raise BadInput(
                f"topology.yml: links.{name}.kind: unknown link kind {link.kind}; there are: {', '.join(LINKS)}",
                "fix topology.yml",
            )
    return {name: link.kind for name, link in topology.links.items()}


def link_kinds(topology: Topology) -> tuple[LinkKind, ...]:
    """The kinds of new machines' links, each once. Raises BadInput for a kind that does not exist."""
    return tuple(LINKS[kind] for kind in dict.fromkeys(requested_kinds(topology).values()))


def refuse_other_links(made: str, lab_id: str) -> None:
    """Raise CannotMeasure if $FWLAB_LINK asks for other links than the machines have. `made`: as results record it."""
    forced = os.environ.get(VARIABLE)
    if forced and made != forced:
        raise CannotMeasure(
            f"the links of {lab_id} are {made}; {VARIABLE} asks for {forced}",
            f"vagrant destroy -f {lab_id}, then the same command again (or unset {VARIABLE})",
        )
