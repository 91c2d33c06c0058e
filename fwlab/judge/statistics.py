# SPDX-License-Identifier: GPL-2.0-or-later
"""From trials to one figure: median and spread, and the scale of the virtual testbed."""

import statistics
from dataclasses import dataclass

from fwlab.model.metric import Metric
from fwlab.model.results import Measured, TestbedFacts


def scale(testbed: TestbedFacts) -> int:
    """Instructions-per-nanosecond scale: 2**shift on the virtual testbed, 1 on the host's clock.

    The reference CPU executes one instruction per nanosecond; a virtual clock that passes s ns per
    instruction runs s times slower, so rates are multiplied by s and times divided by it.
    """
    return testbed.ns_per_instruction or 1


@dataclass(frozen=True)
class Figure:
    """Median and spread of some trials. `spread` is (max - min) / median, as a ratio."""

    values: list[float]

    @property
    def median(self) -> float:
        """Median of the values."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """Smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """Largest value."""
        return max(self.values)

    @property
    def spread(self) -> float:
        """Largest less smallest value, as a share of the median; 0 if that is 0."""
        return (self.high - self.low) / self.median if self.median else 0.0


def figure(measured: Measured, metric: Metric, testbed: TestbedFacts, traffic_class: str = "") -> Figure | None:
    """The metric's figure in this measurement, in its own unit; None where it was not measured."""
    values = metric.values(measured, testbed, traffic_class)
    return Figure(values) if values else None


def nanoseconds_per_packet(pps: float) -> float:
    """Cost of one packet; on the reference CPU also the number of instructions."""
    return 1e9 / pps
