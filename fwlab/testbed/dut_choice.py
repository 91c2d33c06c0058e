# SPDX-License-Identifier: GPL-2.0-or-later
"""Which operating system the DUT of a lab runs. provision/vagrant/dut_systems.rb decides by the same rules.

The machine that exists decides, by its box. Without one, FWLAB_DUT does if the lab can use that system, else the first
that the lab's `needs` name.
"""

import os

from fwlab.host.project import Project, load_topology
from fwlab.images.built_boxes import built_boxes
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Lab
from fwlab.model.topology import Topology
from fwlab.testbed.machine_record import recorded_boxes

WANTED = "FWLAB_DUT"


def topology_of(project: Project, lab: Lab) -> Topology:
    """topology.yml with the DUT that the machines of `lab` have, or would have. Raises BadInput, CannotMeasure."""
    topology = load_topology(project)
    wanted = os.environ.get(WANTED) or None
    known = topology.nodes["dut"].systems
    if wanted is not None and wanted not in known:
        message = f"{WANTED}={wanted}: no DUT runs that; there are: {', '.join(known)}"
        raise BadInput(message, f"export {WANTED}={known[0]}")
    chosen = wanted if wanted in lab.needs.systems else lab.needs.systems[0]
    exists = topology.system_of(recorded_boxes(project, lab.id).get("dut", ""))
    if exists is not None and wanted is not None and exists != chosen:
        raise CannotMeasure(
            f"the DUT of {lab.id} runs {exists}; {WANTED} asks for {chosen}",
            f"vagrant destroy -f {lab.id}, then the same command again (or unset {WANTED})",
        )
    return topology.with_dut(exists or chosen)


def refuse_missing_box(project: Project, topology: Topology, lab: Lab) -> None:
    """Raise BadInput if the box of the lab's DUT is not built, although other boxes are."""
    dut = topology.nodes["dut"]
    try:
        if dut.image in built_boxes(project):
            return
    except CannotMeasure:
        return  # no box at all: Vagrant says so
    others = [system for system in lab.needs.systems if system != dut.system]
    hint = f"packer/build {dut.image}"
    if others:
        hint += f"; or without it, on {others[0]} only: {WANTED}={others[0]} and the same command"
    raise BadInput(f"{lab.id}: its DUT runs {dut.system}, and the box {dut.image} is not built", hint)
