# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kind each link of a lab has: that of the machines that exist, else FWLAB_LINK's, else topology.yml's.

Machines keep the links that they were made with.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed.hardware import NICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fwlab.model.topology import Topology
    from fwlab.testbed.link_kinds import LinkKind


def requested_kinds(usual: Mapping[str, str]) -> dict[str, str]:
    """The kind of each link of new machines, by the link's name. Raises BadInput for a kind that does not exist.

    usual  what topology.yml says, in the same form
    """
    forced = os.environ.get("FWLAB_LINK")
    if forced:
        if not is_known(forced):
            raise BadInput(f"FWLAB_LINK={forced}: unknown link kind; {_there_are()}", "export FWLAB_LINK=socket")
        return dict.fromkeys(usual, forced)
    for name, kind in usual.items():
        if not is_known(kind):
            message = f"topology.yml: links.{name}.kind: unknown link kind {kind}; {_there_are()}"
            raise BadInput(message, "fix topology.yml")
    return dict(usual)


def link_kinds(topology: Topology) -> tuple[LinkKind, ...]:
    """The kinds of new machines' links, each once. Raises BadInput for a kind that does not exist."""
    from fwlab.testbed.link_kinds import LINKS

    usual = {name: link.kind for name, link in topology.links.items()}
    return tuple(LINKS[kind] for kind in dict.fromkeys(requested_kinds(usual).values()))


def refuse_other_links(made: str, lab_id: str) -> None:
    """Raise CannotMeasure if $FWLAB_LINK asks for other links than the machines have. `made`: as results record it."""
    forced = os.environ.get("FWLAB_LINK")
    if forced and made != forced:
        raise CannotMeasure(
            f"the links of {lab_id} are {made}; FWLAB_LINK asks for {forced}",
            f"vagrant destroy -f {lab_id}, then the same command again (or unset FWLAB_LINK)",
        )


def is_known(kind: str) -> bool:
    """Whether there is such a kind."""
    if kind in NICS:
        return True
    from fwlab.testbed.link_kinds import LINKS  # those of plug-ins, too

    return kind in LINKS


def _there_are() -> str:
    from fwlab.testbed.link_kinds import LINKS

    return f"there are: {', '.join(LINKS)}"
