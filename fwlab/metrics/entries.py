# SPDX-License-Identifier: GPL-2.0-or-later
"""Entries: rules that a passing packet can meet, and addresses in the sets and maps that rules ask."""

from collections.abc import Sequence

from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession
from fwlab.metrics.protocol import WITH_OR_WITHOUT, MeasurableMetric
from fwlab.metrics.step import Phase, Step
from fwlab.model.metric import Display, TrafficKind
from fwlab.model.results import Clock, Loading, Measured, TestbedFacts


def _count(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    return so_far.plus(Loading(entries=session.nodes.dut.entries()))


COUNT = Step(Phase.LAST, _count)


class Entries(MeasurableMetric):
    """A count, taken when everything else has been measured."""

    name = "entries"
    unit = "count"
    position = 60
    display = Display("entries", whole=True)
    traffic = WITH_OR_WITHOUT

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [] if measured.entries is None else [float(measured.entries)]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [COUNT]


METRIC = Entries()
