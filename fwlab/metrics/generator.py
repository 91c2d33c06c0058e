# SPDX-License-Identifier: GPL-2.0-or-later
"""Generator: packets per second that left the generator flat out, by the host's clock.

It says whether the generator was the limit, differs from host to host, and is never judged.
"""

from collections.abc import Sequence

from fwlab.metrics.capacity import FLOOD
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts


class Generator(MeasurableMetric):
    """Seen while the trials of capacity are measured."""

    name = "generator"
    unit = "pps"
    position = 90
    display = Display("generator", "kpps", 1e-3)
    portable = False

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [] if measured.generator_pps is None else [measured.generator_pps]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD]


METRIC = Generator()
