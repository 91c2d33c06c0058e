# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks: the DUT sampled under the same overload that its capacity was measured with.

A DUT whose clock counts instructions is as regular as clockwork: one batch of packets takes as long as the next. A
sampler of one rate can fall into step with it, and then meets the same few places of a batch again and again. That
need not be a rare chance: a sample takes time of the DUT's clock as well, and more of it where the stack is deep, so
the two draw each other into step, as two pendulum clocks on one wall do. At 4999 Hz ip_output had 51 % of the samples
of plain forwarding, where the differences between cases leave it a third at most.

So the DUT is sampled at many rates at once, all in the same window. No two of them have a common measure, each moves
the others out of step, and one that falls into step all the same has a small part of the samples.
tests/offline/test_sampling_rates.py has a model of it.
"""

from __future__ import annotations

from fwlab.metrics.call_stacks import of_packets
from fwlab.metrics.measurement import Nodes
from fwlab.metrics.traffic_guard import under_way
from fwlab.model.results import Measured

#: About 3000 samples: a function with a tenth of them is known to half a percent.
SECONDS = 0.6
#: Samples in a second of the DUT's clock: primes, far enough from each other to drift apart within that time.
RATES = (211, 227, 241, 257, 271, 283, 293, 307, 317, 331, 347, 359, 373, 383, 397, 409)
#: Fewer than this are no sample of anything.
FEWEST = 500


def sample(nodes: Nodes, found: Measured) -> None:
    """After the trials of capacity: the DUT is slowed as much as it was for them."""
    nodes.dut.prepare_stacks(RATES)
    with nodes.slowed(found.slowed):
        nodes.dut.arm_stacks(seconds=SECONDS)
        with under_way(nodes.engine.start()) as playing:
            nodes.dut.collect_stacks(timeout=600)
    playing.stop()
    found.stacks = of_packets(nodes.dut.read_stacks())
    seen = sum(found.stacks.values())
    if seen < FEWEST:
        found.problems.append(f"the DUT was sampled {seen} times at work; at least {FEWEST} say something")
