# SPDX-License-Identifier: GPL-2.0-or-later
"""How many sets of a lab's three machines this host can run side by side."""

import os

from fwlab.checkout.project import Project, load_topology
from fwlab.generator.trex.engine import trex_in_image
from fwlab.host.memory import memory_left, needed_mib
from fwlab.model.errors import BadInput

#: Of a set, the DUT and the generator are busy all the time. With fewer cores the sets take turns and save no time.
CORES_PER_SET = 2


def memory_of_a_set(project: Project) -> int:
    """MiB that three machines and the programs that drive them need."""
    nodes = load_topology(project).nodes.values()
    trex = trex_in_image(project) is not None
    return needed_mib(n.with_trex.memory_mib if trex and n.with_trex else n.memory_mib for n in nodes)


def reject_too_many(project: Project, workers: int) -> None:
    """Raise BadInput if the host is too small for this number of workers, each with a set of machines."""
    cores = len(os.sched_getaffinity(0))
    hint = "use fewer workers, or add --force-workers"
    if cores < CORES_PER_SET * workers:
        raise BadInput(f"{workers} workers need {CORES_PER_SET * workers} cores, this host has {cores}", hint)
    needed, room = workers * memory_of_a_set(project), memory_left()
    if room.mib < needed:
        raise BadInput(f"{workers} workers need {needed} MiB of memory; {room} are available", hint)
