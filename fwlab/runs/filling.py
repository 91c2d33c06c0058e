# SPDX-License-Identifier: GPL-2.0-or-later
"""States: how many connections the DUT tracks after a counted number of packets, and the memory that they take."""

from __future__ import annotations

from fwlab.runs.light_load import play, real_rate
from fwlab.runs.task import Nodes, Task
from fwlab.words.results import Measured
from fwlab.words.trial import States

#: The load, as a share of what the DUT was seen to carry in real time. A packet that is lost in its ring leaves no
#: state, so a load that was too big is tried again smaller.
LOADS = (0.8, 0.4, 0.12)
#: Of the packets sent so many may be missing at the DUT before the count of states is in doubt: a host that is busy
#: with something else lets the ring run over now and then.
MOST_LOST = 0.005


def fill(nodes: Nodes, task: Task, found: Measured) -> None:
    """Play `task.fill` packets from the beginning of the traffic, then count. The ruleset is loaded anew for it.

    States time out while they are counted up: what shall be there at the end needs time-outs (net.netfilter.*) that
    are longer than the filling, which takes the DUT some ten seconds for every 100 000 packets.
    """
    carried = real_rate(nodes)
    for share in LOADS:
        # What was tried before has left states behind, and modules that hold them.
        nodes.dut.reset()
        nodes.dut.load(task.files)
        passage = play(nodes, max(20.0, share * carried), task.fill)
        sent, lost = passage.sent, passage.lost_before
        if lost <= MOST_LOST * sent:
            break
    found.states = States(played=sent, **nodes.dut.states())
    if sent < task.fill:
        found.problems.append(f"the generator sent {sent} of {task.fill} packets")
    if lost > MOST_LOST * sent:
        found.problems.append(f"{lost} of {sent} packets were lost before the DUT could track them")
