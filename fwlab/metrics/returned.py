# SPDX-License-Identifier: GPL-2.0-or-later
"""Returned: how much of a traffic class the DUT sends back by its first link, at a light load.

All packets are played into the first link, even those of hosts behind the DUT. Their way leads back, so the sink never
sees them, and a ruleset that drops them would go unnoticed. They are counted by class, like those that reach the sink:
ICMP errors and copies of other packets are none of them.
"""

from collections.abc import Sequence
from typing import Any

from fwlab.metrics.capacity import FLOOD
from fwlab.metrics.delivery import first_plays, with_losses
from fwlab.metrics.measurement import MeasurableMetric, MeasurementSpec, MeasuringSession, Nodes, Phase, Step
from fwlab.metrics.plays import play, play_recorded
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Deliveries, Measured, TestbedFacts
from fwlab.model.trial import Delivery


class Returned(MeasurableMetric):
    """Share of a traffic class that leaves the DUT where it came in. No other class may do that."""

    name = "returned"
    unit = "ratio"
    position = 46
    display = Display("returned", "%", 100.0)
    tolerance = Tolerance(absolute=0.01)
    by_class = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        plays = [(play, play.offered[traffic_class]) for play in measured.returned if play.offered.get(traffic_class)]
        # Where QEMU records nothing, and before it did: all packets that the DUT sent back.
        return [min(1.0, self.counted(play).get(traffic_class, play.sent_on or 0) / offered) for play, offered in plays]

    def counted(self, play: Delivery) -> dict[str, int]:
        """What of a play counts, by class."""
        return play.returned

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD, RETURN]


class IcmpErrors(Returned):
    """Share of a traffic class that the DUT answers by the ICMP error that names the largest packet."""

    name = "icmp_errors"
    position = 47
    display = Display("answered by ICMP errors", "%", 100.0)

    def counted(self, play: Delivery) -> dict[str, int]:
        return play.errors


METRIC = (Returned(), IcmpErrors())


def count_returned(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Play a few packets, at a smaller load if some were lost before the DUT, and count what it sends back."""
    nodes, back = session.nodes, dict[str, Any]()
    for load, count in first_plays(nodes, spec):
        if nodes.recording is not None:
            passage, sent = play_recorded(nodes, spec.traffic_name, load, count)
            back = {"returned": sent.returned, "errors": sent.errors, "foreign": sent.foreign}
        else:
            nodes.dut.drain()  # what an earlier load left in the ring would be counted
            nodes.sink.count_returned(nodes.classes)
            before = sent_back(nodes)
            passage = play(nodes, spec.traffic_name, load, count)
            back = {"returned": nodes.sink.returned(), "sent_on": sent_back(nodes) - before}
        if not passage.lost_before:
            break
    else:
        return with_losses(nodes, so_far, passage.losses())
    counted = Delivery(
        intended_load=load,
        sent=passage.sent,
        offered=nodes.store.offered(spec.traffic_name, passage.sent),
        arrived={},
        **back,
    )
    return so_far.plus(Deliveries(returned=[counted])).troubled([passage.limited] if passage.limited else [])


def sent_back(nodes: Nodes) -> int:
    """Packets that the DUT has sent by its first link since it booted."""
    return next(count for name, count in nodes.dut.counters().items() if name.endswith(".tx_packets"))


RETURN = Step(Phase.AFTER_FLOOD, count_returned, despite_problems=False)
