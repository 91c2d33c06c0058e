# SPDX-License-Identifier: GPL-2.0-or-later
"""What is chosen for new machines: which operating system the DUT runs, and which kind each link has.

Machines that exist keep what they were made with. Of new ones, FWLAB_DUT names the DUT's system if the lab can use it,
else it is the first that the lab's `needs` name; FWLAB_LINK names the kind of all links, else topology.yml does.

This module imports next to nothing, because `vagrant` needs it at each command.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed.hardware import NICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fwlab.checkout.project import Project
    from fwlab.model.lab import Lab
    from fwlab.model.topology import Topology
    from fwlab.testbed.link_kinds import LinkKind


def wanted_system(known: Sequence[str]) -> str | None:
    """The system that $FWLAB_DUT asks for; None if it is unset. Raises BadInput unless it is one of `known`."""
    wanted = os.environ.get("FWLAB_DUT") or None
    if wanted is not None and wanted not in known:
        message = f"FWLAB_DUT={wanted}: no DUT runs that; there are: {', '.join(known)}"
        raise BadInput(message, f"export FWLAB_DUT={known[0]}")
    return wanted


def chosen_system(usable: Sequence[str], known: Sequence[str]) -> str:
    """The system of a new DUT of a lab that can use the systems `usable`. Raises BadInput."""
    wanted = wanted_system(known)
    return wanted if wanted is not None and wanted in usable else usable[0]


def reject_other_system(lab_id: str, made: str | None, usable: Sequence[str], known: Sequence[str]) -> None:
    """Raise CannotMeasure if the DUT that exists runs another system than $FWLAB_DUT asks for."""
    if made is None or wanted_system(known) is None or (chosen := chosen_system(usable, known)) == made:
        return
    raise CannotMeasure(
        f"the DUT of {lab_id} runs {made}; FWLAB_DUT asks for {chosen}",
        f"vagrant destroy -f {lab_id}, then the same command again (or unset FWLAB_DUT)",
    )


def topology_of(project: Project, lab: Lab) -> Topology:
    """topology.yml with the DUT and the ports that the machines of `lab` have, or would have.

    Raises BadInput, CannotMeasure.
    """
    from fwlab.checkout.project import lab_ids, load_topology
    from fwlab.host.ports import settle_ports
    from fwlab.testbed.machine_record import recorded_boxes

    topology = load_topology(project)
    shift = settle_ports(project.root, topology.ports.address, topology.ports.of_labs(lab_ids(project)))
    topology = topology.model_copy(update={"port_shift": shift})
    known, usable = topology.nodes["dut"].systems, lab.needs.systems
    made = topology.system_of(recorded_boxes(project, lab.id).get("dut", ""))
    chosen = chosen_system(usable, known)
    reject_other_system(lab.id, made, usable, known)
    return topology.with_dut(made or chosen)


def reject_missing_boxes(lab_id: str, missing: Sequence[str], dut: str, usable: Sequence[str], system: str) -> None:
    """Raise BadInput if boxes are not built.

    missing  their images
    dut      the image of the lab's DUT, which runs `system` and could run those that are `usable`
    """
    if not missing:
        return
    if list(missing) != [dut]:
        raise BadInput(f"boxes are not built ({', '.join(missing)}): run `make boxes`", "make boxes")
    hint = f"packer/build {dut}"
    if others := [other for other in usable if other != system]:
        hint += f"; or without it, on {others[0]} only: FWLAB_DUT={others[0]} and the same command"
    raise BadInput(f"{lab_id}: its DUT runs {system}, and the box {dut} is not built", hint)


def requested_kinds(usual: Mapping[str, str]) -> dict[str, str]:
    """The kind of each link of new machines, by the link's name. Raises BadInput for a kind that does not exist.

    usual  what topology.yml says, in the same form
    """
    forced = os.environ.get("FWLAB_LINK")
    if forced:
        if not is_known_link(forced):
            raise BadInput(f"FWLAB_LINK={forced}: unknown link kind; {_there_are()}", "export FWLAB_LINK=socket")
        return dict.fromkeys(usual, forced)
    for name, kind in usual.items():
        if not is_known_link(kind):
            message = f"topology.yml: links.{name}.kind: unknown link kind {kind}; {_there_are()}"
            raise BadInput(message, "fix topology.yml")
    return dict(usual)


def link_kinds(topology: Topology) -> tuple[LinkKind, ...]:
    """The kinds of new machines' links, each once. Raises BadInput for a kind that does not exist."""
    from fwlab.testbed.link_kinds import LINKS

    usual = {name: link.kind for name, link in topology.links.items()}
    return tuple(LINKS[kind] for kind in dict.fromkeys(requested_kinds(usual).values()))


def reject_other_links(made: str, lab_id: str) -> None:
    """Raise CannotMeasure if $FWLAB_LINK asks for other links than the machines have. `made`: as results record it."""
    forced = os.environ.get("FWLAB_LINK")
    if forced and made != forced:
        raise CannotMeasure(
            f"the links of {lab_id} are {made}; FWLAB_LINK asks for {forced}",
            f"vagrant destroy -f {lab_id}, then the same command again (or unset FWLAB_LINK)",
        )


def is_known_link(kind: str) -> bool:
    """Whether there is such a kind."""
    if kind in NICS:
        return True
    from fwlab.testbed.link_kinds import LINKS  # those of plug-ins, too

    return kind in LINKS


def _there_are() -> str:
    from fwlab.testbed.link_kinds import LINKS

    return f"there are: {', '.join(LINKS)}"
