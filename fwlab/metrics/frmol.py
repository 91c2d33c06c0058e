# SPDX-License-Identifier: GPL-2.0-or-later
"""FRMOL: packets per second that the DUT sends on while the generator sends flat out (RFC 2285, 3.6.2)."""

from collections.abc import Sequence

from fwlab.judge.statistics import scale
from fwlab.metrics.capacity import FLOOD
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts
from fwlab.model.trial import Trial


class ForwardingRate(MeasurableMetric):
    """From the trials of capacity, by the clock: idle time and filtered packets do not count as forwarding."""

    name = "frmol"
    unit = "pps"
    position = 14
    display = Display("forwarding rate at maximum offered load (FRMOL)", "kpps", 1e-3)
    tolerance = Tolerance(share=0.05, ratio=0.1)
    needs_clock = True
    interleaved = True
    below_ceiling = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [
            trial.forwarded / trial.duration_s * scale(testbed) for trial in measured.trials if trial.duration_s > 0
        ]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD]

    def trials(self, measured: Measured) -> Sequence[Trial]:
        return measured.trials


METRIC = ForwardingRate()
