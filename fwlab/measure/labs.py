# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs as they are used: read from disk, and every name in them checked against what is registered."""

from types import MappingProxyType
from typing import Final

from fwlab.checkout import project as files
from fwlab.checkout.project import Project, display_path
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system, with_systems
from fwlab.model.topology import Topology
from fwlab.rulesets.files import systems_in
from fwlab.rulesets.registry import KINDS

#: The registries that a lab.yml is checked against, by concept.
REGISTRIES: Final = MappingProxyType({"metrics": METRICS, "ruleset_kinds": KINDS})


def load_lab(project: Project, lab_id: str) -> Lab:
    """The lab in labs/<lab_id>, with the system of each case. Raises BadInput naming the file and the field.

    It does so for an unregistered name, too.
    """
    lab = files.load_lab(project, lab_id, REGISTRIES)
    try:
        return with_systems(lab, lambda ruleset: systems_in(lab.folder / "rulesets" / ruleset))
    except ValueError as error:
        where = display_path(project, lab.folder / "lab.yml")
        raise BadInput(f"{where}: {error}", f"fix {where}, then `fwlab list`") from error


def on_dut(lab: Lab, topology: Topology, machines: Lab) -> Lab:
    """What the DUT of these machines measures of the lab. Raises BadInput if it runs none of the lab's systems."""
    system = topology.nodes["dut"].system
    if system not in lab.needs.systems:
        needed = " or ".join(lab.needs.systems)
        hint = f"fwlab run {lab.id}, on its own machines"
        raise BadInput(f"{lab.id} needs a DUT with {needed}; that of {machines.id} runs {system}", hint)
    return on_system(lab, system)


def measured_elsewhere(lab: Lab, name: str, system: str | None) -> BadInput:
    """The error for a case or an exercise that another system measures than the machines' DUT runs."""
    hint = f"vagrant destroy -f {lab.id}, then FWLAB_DUT={system} and the same command"
    hint += f" (its box: packer/build dut-{system})"
    return BadInput(f"{name} is measured on a DUT with {system}; this one runs another system", hint)
