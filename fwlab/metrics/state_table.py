# SPDX-License-Identifier: GPL-2.0-or-later
"""States: how many connections the DUT tracks after a counted number of packets, and the memory that they take."""

from __future__ import annotations

from types import MappingProxyType

from fwlab.metrics.delivery import RATE_S, play, real_rate
from fwlab.metrics.measurement import Nodes, Task
from fwlab.metrics.protocol import BaseMetric
from fwlab.model.metric import Display, Tolerance
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import States

#: The load, as a share of what the DUT was seen to carry in real time. A packet that is lost in its ring leaves no
#: state, so where too many were, the same are played once more on top: what is tracked already stays as it is.
LOADS = (0.65, 0.65, 0.3, 0.1)
#: What a host carries goes up and down from second to second: before a long filling one looks longer (s), a second for
#: so many packets. Too small a load is a long wait, too big a load is two.
PACKETS_A_LOOK, LONGEST_LOOK_S = 125_000, 4.0
#: A host that is busy with something else lets the ring run over now and then. Where a larger share of the packets has
#: not reached the DUT, they are played again. (That takes as long once more, so not for each one.)
PLAYED_AGAIN = 0.001
#: After the last play there is no further: above this the count of states is in doubt. What a lab asks to be tracked
#: is to leave so many room.
MOST_LOST = 0.005


class TrackedStates(BaseMetric):
    """Connections that the DUT tracks after a counted number of packets."""

    name = "states"
    unit = "count"
    position = 70
    display = Display("tracked connections", whole=True)
    needs = MappingProxyType({"state_packets": "state_packets, the number of packets to play"})

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [] if measured.states is None else [float(measured.states.held)]


class StateBytes(BaseMetric):
    """Kernel memory that one tracked connection takes."""

    name = "state_bytes"
    unit = "bytes"
    position = 80
    display = Display("memory of a tracked connection", "bytes")
    tolerance = Tolerance(share=0.015, ratio=0.03)
    needs = TrackedStates.needs

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        each = measured.states.bytes_each if measured.states else None
        return [] if each is None else [each]


METRIC = (TrackedStates(), StateBytes())


def fill(nodes: Nodes, task: Task, found: Measured) -> None:
    """Play `task.fill` packets from the beginning of the traffic, then count. The ruleset is loaded anew for it.

    States time out while they are counted up: what shall be there at the end needs time-outs (net.netfilter.*) that
    are longer than all its plays.
    """
    carried = real_rate(nodes, min(LONGEST_LOOK_S, max(RATE_S, task.fill / PACKETS_A_LOOK)))
    # What was tried before has left states behind, and modules that hold them.
    nodes.dut.reset()
    nodes.dut.load(task.files)
    missing = 1.0
    # What is sent on is of no use here, and would cost the DUT and the sink more of the host than an entry does.
    with nodes.dut.blackhole():
        for share in LOADS:
            passage = play(nodes, max(20.0, share * carried), task.fill)
            # Which ones are lost is chance: those of one play that are lost in the next as well.
            missing *= passage.lost_before / max(passage.sent, 1)
            if missing <= PLAYED_AGAIN:
                break
    found.states = States(played=passage.sent, **nodes.dut.states())
    if passage.sent < task.fill:
        found.problems.append(f"the generator sent {passage.sent} of {task.fill} packets")
    if missing > MOST_LOST:
        lost = round(missing * passage.sent)
        found.problems.append(f"{lost} of {passage.sent} packets were lost before the DUT could track them")
