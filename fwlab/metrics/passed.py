# SPDX-License-Identifier: GPL-2.0-or-later
"""Passed: the share of a fixed number of packets, whatever their class, that reaches the sink.

The packets are the first ones of the traffic, and few enough for the DUT's ring to hold. Flows that send in turn have
equally many of them if their number divides FIRST_PACKETS; then the share is that of the flows that pass.
"""

from collections.abc import Sequence

from fwlab.metrics.delivery import BEFORE_FLOOD
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts


class Passed(MeasurableMetric):
    """Share of the first packets of a traffic that reaches the sink, 0 to 1."""

    name = "passed"
    unit = "ratio"
    position = 42
    display = Display("packets that pass", "%", 100.0, significant=5, trimmed=True)
    tolerance = Tolerance(absolute=0.0005)

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        """One share, of the first play: later ones may be longer."""
        return [sum(play.arrived.values()) / play.sent for play in measured.deliveries[:1] if play.sent]

    def counts(self, measured: Measured, traffic_class: str = "") -> tuple[int, int] | None:
        plays = [play for play in measured.deliveries[:1] if play.sent]
        return (min(plays[0].sent, sum(plays[0].arrived.values())), plays[0].sent) if plays else None

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [BEFORE_FLOOD]


METRIC = Passed()
