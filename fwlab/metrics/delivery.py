# SPDX-License-Identifier: GPL-2.0-or-later
"""A counted number of packets at a load that the DUT can carry; and delivered, which is what the sink gets of them.

A host that is busy with something else may leave a node standing for so long that a ring runs over. Nothing in the
firewall dropped those packets, and no mark may hang on them. The DUT counts what comes in and what goes out, so it is
known how many were lost on the way to it and behind it; a load that lost any is tried again smaller.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from fwlab.metrics.measurement import Nodes, Task
from fwlab.metrics.protocol import ANY_TRAFFIC, BaseMetric
from fwlab.metrics.traffic_guard import under_way
from fwlab.model.errors import CannotMeasure
from fwlab.model.metric import Display, Tolerance
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import Delivery

#: The load of a delivery trial, as a share of what the DUT was seen to carry in real time; the next where one lost.
LIGHT = (1 / 4, 1 / 10, 1 / 25, 1 / 60, 1 / 60)
#: A delivery trial takes about so long, in real seconds, and has so many packets.
DELIVERY_S = 4.0
DELIVERY_PACKETS = (256, 8192)
#: Before the flood nothing is known of what the DUT carries: so few packets that its ring holds them all, at this load.
FIRST_PACKETS, FIRST_LOAD = 960, 2000.0
#: What a DUT sends on may hold a few packets of its own (neighbour and group discovery), which the sink does not count.
STRAY = 2
#: What the DUT carries in real time is watched for so long (s) and for so many packets at least: they are counted in
#: bursts of 64. It begins with the first of them; a busy host may take seconds to start the engine.
RATE_S, RATE_PACKETS = 0.8, 256
#: Packets are looked for every so often, and for so long (s).
LOOK_S, PATIENCE_S = 0.05, 20.0
#: Packets on their way are in after so long at most (s).
SETTLED_S = 0.5


class Delivered(BaseMetric):
    """Share of a traffic class that reaches the sink at a load that the DUT can carry."""

    name = "delivered"
    unit = "ratio"
    position = 40
    display = Display("delivered", "%", 100.0, significant=5, trimmed=True)  # 100.05 % must not read 100.0 %
    tolerance = Tolerance(absolute=0.0005)
    traffic = ANY_TRAFFIC
    by_class = True
    invalidated_by = "own class"

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        """One share of all plays together: a median would hide what only one of them shows."""
        offered = sum(d.offered.get(traffic_class, 0) for d in measured.deliveries)
        arrived = sum(d.arrived.get(traffic_class, 0) for d in measured.deliveries)
        shares: list[float | None] = [arrived / offered] if offered else []
        if not traffic_class:  # of connections, and not of the packets beside them
            shares += [clients.delivered for clients in measured.clients if clients.intended_load is not None]
        return [share for share in shares if share is not None]


METRIC = Delivered()


@dataclass(frozen=True)
class Passage:
    """Packets that were sent, that the DUT took in on its first link, and that it sent on by its last."""

    sent: int
    taken: int
    sent_on: int
    limited: str | None

    @property
    def lost_before(self) -> int:
        return max(0, self.sent - self.taken)


def deliver_few(nodes: Nodes, task: Task, found: Measured) -> None:
    """Before the flood and again after it, the same few packets: a ruleset is not to know whether one has been."""
    _deliver(nodes, task, found, [(FIRST_LOAD / 2**again, FIRST_PACKETS) for again in range(len(LIGHT))])


def deliver(nodes: Nodes, task: Task, found: Measured) -> None:
    """Play lightly; what arrives is counted by class."""
    carried = real_rate(nodes)
    low, high = DELIVERY_PACKETS
    loads = [max(20.0, share * carried) for share in LIGHT]
    _deliver(nodes, task, found, [(load, int(min(high, max(low, load * DELIVERY_S)))) for load in loads])


def _deliver(nodes: Nodes, task: Task, found: Measured, plays: list[tuple[float, int]]) -> None:
    """(load, packets) of one play after the other, until none is lost but by the ruleset."""
    for load, count in plays:
        nodes.dut.drain()  # what a flood left in the ring would count
        nodes.sink.declare(nodes.classes)
        passage = play(nodes, load, count)
        arrived = nodes.sink.settled_counts(passage.sent_on)
        lost_behind = max(0, passage.sent_on - sum(arrived.values()))
        if passage.lost_before + lost_behind == 0:
            break
    if passage.limited:
        found.problems.append(passage.limited)
    if passage.sent < count:
        found.problems.append(f"the generator sent {passage.sent} of {count} packets")
    if passage.lost_before:
        found.problems.append(f"{passage.lost_before} of {passage.sent} packets were lost on their way to the DUT")
    if lost_behind > STRAY:
        found.problems.append(f"{lost_behind} of {passage.sent_on} packets were lost between the DUT and the sink")
    found.deliveries.append(
        Delivery(
            intended_load=round(load, 1),
            sent=passage.sent,
            offered=nodes.tables.offered(task.traffic, passage.sent),
            arrived=arrived,
        )
    )


def play(nodes: Nodes, load: float, count: int) -> Passage:
    """Play `count` packets from the beginning of the traffic, `load` in a real second, and see them through the DUT."""
    before = through(nodes)
    played = nodes.engine.start(load=load, count=count).wait(timeout=count / load * 4 + 60)
    taken, sent_on = _settled(nodes, before, played.sent)
    return Passage(played.sent, taken, sent_on, played.limited)


def _settled(nodes: Nodes, before: tuple[int, int], sent: int) -> tuple[int, int]:
    """Packets taken in and sent on since `before`, once all that were sent are through, or no more can be expected.

    What was taken in has been sent on or dropped by the next look: the DUT serves both in one go.
    """
    patience = time.monotonic() + SETTLED_S
    while True:
        taken, _sent_on = (after - then for after, then in zip(through(nodes), before, strict=True))
        if time.monotonic() > patience or (taken >= sent and taken == through(nodes)[0] - before[0]):
            return taken, through(nodes)[1] - before[1]
        time.sleep(LOOK_S)


def real_rate(nodes: Nodes, seconds: float = RATE_S) -> float:
    """Packets per real second that the DUT processes flat out and not slowed, seen for so long at least."""
    with under_way(nodes.engine.start()) as playing:
        before, began = _once_taken(nodes, STRAY, through(nodes)[0])
        time.sleep(seconds)
        after, ended = _once_taken(nodes, RATE_PACKETS, before)
        playing.stop()
    if after == before:
        raise CannotMeasure("no packet reached the DUT", "fwlab doctor")
    return (after - before) / (ended - began)


def _once_taken(nodes: Nodes, count: int, since: int) -> tuple[int, float]:
    """Wait until the DUT has taken in more than `count` packets since it had `since`: how many then, and when."""
    patience = time.monotonic() + PATIENCE_S
    while True:
        taken, now = through(nodes)[0], time.monotonic()
        if taken > since + count or now > patience:
            return taken, now
        time.sleep(LOOK_S)


def through(nodes: Nodes) -> tuple[int, int]:
    """Packets that the DUT took in on its first link, and sent on its last, since it booted."""
    counters = nodes.dut.counters()
    taken = next(name for name in counters if name.endswith(".rx_packets"))
    sent_on = [name for name in counters if name.endswith(".tx_packets")][-1]
    return counters[taken], counters[sent_on]
