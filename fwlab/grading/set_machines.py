# SPDX-License-Identifier: GPL-2.0-or-later
"""Which machines a class is graded on, beside the first set: those of other labs, because all labs have the same."""

from fwlab.host.project import Project, lab_ids
from fwlab.measure.context import RunContext
from fwlab.measure.host_room import refuse_too_many
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Lab
from fwlab.testbed.dut_choice import topology_of
from fwlab.testbed.machine_record import dut_runs, machines_made
from fwlab.testbed.session_lock import in_use
from fwlab.testbed.testbeds import grading_testbed


def further_machines(context: RunContext, sets: int, *, force: bool) -> tuple[Lab, ...]:
    """The labs whose machines make further sets: those that run already first, then those that are to be started.

    force  do not ask whether the host is large enough
    Raises BadInput if it is not, or if there are not so many.
    """
    if sets < 1:
        raise BadInput(f"--sets {sets}: must be at least 1", "give the number of sets of machines")
    if context.testbed.name not in ("auto", grading_testbed().name):
        why = f"figures of the {context.testbed.name} testbed depend on what else the host does"
        raise BadInput(f"--sets is for the {grading_testbed().name} testbed: {why}", "leave out --sets")
    others = [lab for name in lab_ids(context.project) if (lab := _usable(context, name)) is not None]
    running = {lab.id for lab in (*others, context.machines_lab) if dut_runs(context.topology, lab.number)}
    chosen = sorted(others, key=lambda lab: lab.id not in running)[: sets - 1]
    if len(chosen) < sets - 1:
        raise BadInput(
            f"--sets {sets}: there are machines for {len(chosen) + 1} only: each set has those of another lab",
            f"--sets {len(chosen) + 1}; machines that are halted or measured on are left alone",
        )
    if not force:
        new = sum(lab.id not in running for lab in (*chosen, context.machines_lab))
        refuse_too_many(context.project, sets, new)
    return tuple(chosen)


def _usable(context: RunContext, name: str) -> Lab | None:
    """The lab, if its machines are or would be like this grading's, and nobody needs them as they are."""
    project = context.project
    if name == context.machines_lab.id or in_use(project, name):
        return None
    try:
        lab = load_lab(project, name)
        alike = set(lab.needs.nics) == set(context.machines_lab.needs.nics)
        alike &= topology_of(project, lab).nodes["dut"].system == context.topology.nodes["dut"].system
        return lab if alike and _free(project, context, lab) else None
    except (BadInput, CannotMeasure):  # what is wrong with another lab matters to whoever uses it
        return None


def _free(project: Project, context: RunContext, lab: Lab) -> bool:
    """Whether there are none, or they run on the testbed of gradings. Somebody may want the disks of halted ones."""
    made = machines_made(project, context.topology, lab.number, lab.id)
    return made is None or (dut_runs(context.topology, lab.number) and made.kind is grading_testbed())
