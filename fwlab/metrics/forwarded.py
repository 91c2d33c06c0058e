# SPDX-License-Identifier: GPL-2.0-or-later
"""Forwarded: how much of what the DUT takes from its receive ring it sends on, under overload.

Where all packets should pass, this needs no sink. A sink that is too slow for large frames would lose some of them.
"""

from collections.abc import Sequence

from fwlab.metrics.capacity import FLOOD
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts


class Forwarded(MeasurableMetric):
    """One share of all trials of capacity together: a packet may be taken in one and sent in the next."""

    name = "forwarded"
    unit = "ratio"
    position = 45
    display = Display("forwarded", "%", 100.0)
    tolerance = Tolerance(absolute=0.01)

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        processed = sum(trial.processed for trial in measured.trials)
        return [sum(trial.forwarded for trial in measured.trials) / processed] if processed else []

    def counts(self, measured: Measured, traffic_class: str = "") -> tuple[int, int] | None:
        processed = sum(trial.processed for trial in measured.trials)
        return (min(processed, sum(trial.forwarded for trial in measured.trials)), processed) if processed else None

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD]


METRIC = Forwarded()
