# SPDX-License-Identifier: GPL-2.0-or-later
"""A play at an exact load of the DUT's own time, as a step of a measurement."""

from fwlab.generator.pacing.paced_load import Load
from fwlab.metrics.nodes import Nodes, through
from fwlab.model.errors import CannotMeasure
from fwlab.model.paced import PacedPlay

#: A play whose load was not as it should have been is repeated so often.
TRIES = 2


def play_paced(nodes: Nodes, traffic: str, load: Load) -> PacedPlay:
    """Play this traffic, which the engine need not have, at this load. Raises CannotMeasure."""
    if nodes.pacing is None:
        raise CannotMeasure("a load in the DUT's own time needs a DUT whose clock counts instructions", "fwlab doctor")
    for _ in range(TRIES):
        nodes.dut.drain()  # what an earlier play left in the ring would be counted
        before, _ = through(nodes)
        with nodes.dut.never_idle():
            play = nodes.pacing.play(nodes.store, traffic, load, until_done=nodes.dut.drain)
        taken = through(nodes)[0] - before
        play = play.model_copy(update={"taken": taken})
        if not play.problems:
            break
    return play
