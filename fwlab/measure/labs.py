# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs as they are used: read from disk, and every name in them checked against what is registered."""

from types import MappingProxyType
from typing import Final

from fwlab.checkout.project import Project, display_path, lab_ids, validated
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.judge.checks import CHECKS
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.lab_file import completed
from fwlab.model.ranges import Ranges
from fwlab.model.systems import on_system, with_systems
from fwlab.model.topology import Topology
from fwlab.rulesets.files import systems_in
from fwlab.rulesets.registry import KINDS

#: The registries that a lab.yml is checked against, by concept.
REGISTRIES: Final = MappingProxyType({"metrics": METRICS, "ruleset_kinds": KINDS, "check_kinds": CHECKS})


def load_lab(project: Project, lab_id: str) -> Lab:
    """The lab in labs/<lab_id>, with its ranges and the system of each case.

    Raises BadInput naming the file and the field, also for a name that is registered nowhere.
    """
    there = lab_ids(project)
    if lab_id not in there:
        raise BadInput(f"unknown lab {lab_id}; there are: {', '.join(there) or 'none'}", "fwlab list")
    path = project.labs / lab_id / "lab.yml"
    where = display_path(project, path)
    lab = lab_in(read_yaml_file(path, where), where)
    if lab.id != lab_id:
        raise BadInput(f"{where}: id is {lab.id}, its folder is {lab_id}", "rename one of them")
    lab._folder = path.parent
    lab = lab.with_ranges(load_ranges(project, lab))
    try:
        return with_systems(lab, lambda ruleset: systems_in(lab.folder / "rulesets" / ruleset))
    except ValueError as error:
        raise BadInput(f"{where}: {error}", f"fix {where}, then `fwlab list`") from error


def lab_in(data: object, name: str) -> Lab:
    """The lab that a lab.yml declares, without its ranges. Raises BadInput, which calls the file `name`."""
    return validated(completed(data, METRICS), name, Lab, REGISTRIES)  # completed first: faults name items by their id


def load_ranges(project: Project, lab: Lab) -> Ranges:
    """The lab's ranges.yml; empty if there is none yet. Raises BadInput naming the field."""
    path = lab.folder / "ranges.yml"
    if not path.exists():
        return Ranges()
    name = display_path(project, path)
    hint = f"restore {name}, or delete it and run `make ranges LAB={lab.id}`"
    return validated(read_yaml_file(path, name, hint), name, Ranges, REGISTRIES, hint)


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
