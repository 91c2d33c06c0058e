# SPDX-License-Identifier: GPL-2.0-or-later
"""Returned: how much of a traffic class the DUT sends back by its first link, at a light load.

All packets are played into the first link, even those of hosts behind the DUT. Their way leads back, so the sink never
sees them, and a ruleset that drops them would go unnoticed. The DUT counts what it sends by that link.
"""

from collections.abc import Sequence

from fwlab.metrics.capacity import FLOOD
from fwlab.metrics.delivery import first_plays, play
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession, Nodes
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Phase, Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts
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
        plays = [play for play in measured.returned if play.offered.get(traffic_class)]
        # The DUT may send a few packets of its own.
        return [min(1.0, (play.sent_on or 0) / play.offered[traffic_class]) for play in plays]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD, RETURN]


METRIC = Returned()


def count_returned(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Play a few packets, at a smaller load if some were lost before the DUT, and count what it sends back."""
    nodes = session.nodes
    nodes.dut.drain()  # what the flood left in the ring would be counted
    for load, count in first_plays(nodes):
        before = sent_back(nodes)
        passage = play(nodes, spec.traffic_name, load, count)
        back = sent_back(nodes) - before
        if not passage.lost_before:
            break
    else:
        lost = f"{passage.lost_before} of {passage.sent} packets were lost on their way to the DUT"
        return so_far.plus(problems=[lost])
    offered = nodes.store.offered(spec.traffic_name, passage.sent)
    counted = Delivery(intended_load=load, sent=passage.sent, offered=offered, arrived={}, sent_on=back)
    return so_far.plus(returned=[counted], problems=[passage.limited] if passage.limited else [])


def sent_back(nodes: Nodes) -> int:
    """Packets that the DUT has sent by its first link since it booted."""
    return next(count for name, count in nodes.dut.counters().items() if name.endswith(".tx_packets"))


RETURN = Step(Phase.AFTER_FLOOD, count_returned, despite_problems=False)
