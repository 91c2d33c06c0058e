# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks: the DUT sampled under the same overload that its capacity was measured with."""

from __future__ import annotations

from fwlab.logic.stacks import of_packets
from fwlab.runs.task import Nodes
from fwlab.words.results import Measured

#: About 3000 samples: a function with a tenth of them is known to half a percent. A prime rate, so that nothing
#: that is done every so many packets is always met at the same place.
SECONDS = 0.6
HERTZ = 4999
#: Fewer than this are no sample of anything.
FEWEST = 500


def sample(nodes: Nodes, found: Measured) -> None:
    """After the trials of capacity: the DUT is slowed as much as it was for them."""
    nodes.dut.prepare_stacks(HERTZ)
    with nodes.slowed(found.slowed):
        nodes.dut.arm_stacks(seconds=SECONDS)
        playing = nodes.engine.start()
        try:
            nodes.dut.collect_stacks(timeout=600)
        except BaseException:
            playing.abandon()
            raise
    playing.stop()
    found.stacks = of_packets(nodes.dut.read_stacks())
    seen = sum(found.stacks.values())
    if seen < FEWEST:
        found.problems.append(f"the DUT was sampled {seen} times at work; at least {FEWEST} say something")
