# SPDX-License-Identifier: GPL-2.0-or-later
"""From trials to one figure: median, spread and confidence interval, and the scale of the virtual testbed."""

import math
import statistics
from dataclasses import dataclass

from fwlab.model.metric import Metric
from fwlab.model.results import Measured, TestbedFacts

#: An interval contains the median of all trials that could have been made with at least this probability.
CONFIDENCE = 0.95
#: So many standard deviations to each side hold that share of a normal distribution.
NORMAL = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def scale(testbed: TestbedFacts) -> int:
    """Instructions-per-nanosecond scale: 2**shift on the virtual testbed, 1 on the host's clock.

    The reference CPU executes one instruction per nanosecond; a virtual clock that passes s ns per
    instruction runs s times slower, so rates are multiplied by s and times divided by it.
    """
    return testbed.ns_per_instruction or 1


@dataclass(frozen=True)
class Figure:
    """Median and spread of some trials. `spread` is (max - min) / median, as a ratio.

    counts  of a share: packets that count, and packets of all trials together; None for other figures
    """

    values: list[float]
    counts: tuple[int, int] | None = None

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

    @property
    def several(self) -> bool:
        """Whether there is more than one trial: one has no spread."""
        return len(self.values) > 1

    @property
    def chance(self) -> tuple[float, float] | None:
        """Of a share of few packets: where the share of many lies; None for other figures."""
        return None if self.counts is None or not self.counts[1] else binomial_interval(*self.counts)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The confidence interval of the median; None if there are too few values for one."""
        return median_interval(self.values)

    @property
    def uncertainty(self) -> float | None:
        """Length of that interval, as a share of the median; None if there is none."""
        if self.interval is None:
            return None
        low, high = self.interval
        return (high - low) / self.median if self.median else 0.0


def median_interval(values: list[float]) -> tuple[float, float] | None:
    """The confidence interval of the median by order statistics, whatever the values' distribution.

    The k-th smallest and the k-th largest of n values enclose the median unless fewer than k values lie on one side of
    it, and that number is binomial (n, 1/2). The largest k that gives CONFIDENCE is taken. None below 6 values.
    (David and Nagaraja, Order Statistics, section 7.1.)
    """
    ranked, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < count // 2:
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        rank += 1
    return (ranked[rank - 1], ranked[count - rank]) if rank else None


def binomial_interval(counted: int, of: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share of which `counted` of `of` were seen (Wilson's score interval).

    Brown, Cai, DasGupta, Interval Estimation for a Binomial Proportion, Statistical Science 16 (2001), section 3.1.1.
    """
    z2 = NORMAL**2
    middle = (counted + z2 / 2) / (of + z2)
    half = NORMAL / (of + z2) * math.sqrt(counted * (of - counted) / of + z2 / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


def min_values() -> int:
    """How many values such an interval of the median needs at least."""
    return 1 + math.ceil(-math.log2(1 - CONFIDENCE))


def figure(measured: Measured, metric: Metric, testbed: TestbedFacts, traffic_class: str = "") -> Figure | None:
    """The metric's figure in this measurement, in its own unit; None where it was not measured."""
    values = metric.values(measured, testbed, traffic_class)
    return Figure(values, metric.counts(measured, traffic_class)) if values else None


def paired_ratio(measured: Measured, metric: Metric, testbed: TestbedFacts, base: str) -> Figure | None:
    """The ratio to the case `base`, round by round, if the two were interleaved; None if they were not.

    What changes slowly on the host changes both trials of a round alike, and not their ratio.
    """
    interleaved = measured.interleaved
    if interleaved is None or interleaved.id != base:
        return None
    own, other = metric.values(measured, testbed), metric.values(interleaved, testbed)
    if not own or len(own) != len(other) or not all(other):
        return None
    return Figure([one / two for one, two in zip(own, other, strict=True)])


def nanoseconds_per_packet(pps: float) -> float:
    """Cost of one packet; on the reference CPU also the number of instructions."""
    return 1e9 / pps
