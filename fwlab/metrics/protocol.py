# SPDX-License-Identifier: GPL-2.0-or-later
"""What a metric declares beside its meaning: how it is measured. And a base with the usual values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, InvalidatedBy, Metric, TimedTrial, Tolerance, TrafficKind
from fwlab.model.results import Measured, TestbedFacts

PACKETS: frozenset[TrafficKind] = frozenset({"packets"})
CONNECTIONS: frozenset[TrafficKind] = frozenset({"connections"})
ANY_TRAFFIC: frozenset[TrafficKind] = frozenset({"packets", "connections"})
WITH_OR_WITHOUT: frozenset[TrafficKind] = frozenset({"packets", "connections", "none"})


class MeasurableMetric(Metric, Protocol):
    """A metric that can be registered.

    keeps_ruleset  whether a case of this metric alone may use the ruleset as the previous case has left it
    """

    keeps_ruleset: bool

    def steps(self, spec: MeasurementSpec, played: TrafficKind) -> Sequence[Step]:
        """How it is measured while this kind of traffic is played; nothing if loading the ruleset measures it."""


class BaseMetric:
    """A metric that needs packets, gives the same figure on every host, and does not need a saturated DUT.

    A subclass declares `name`, `unit` and `display`, defines `steps`, and overrides what differs.
    """

    name: str
    unit: str
    display: Display
    position: int = 1000
    tolerance: Tolerance = Tolerance()
    portable: bool = True
    needs_clock: bool = False
    traffic: frozenset[TrafficKind] = PACKETS
    needs: Mapping[str, str] = MappingProxyType({})
    by_class: bool = False
    invalidated_by: InvalidatedBy = "none"
    least_busy: float | None = None
    usual_spread: float | None = None
    keeps_ruleset: bool = False

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        """What the metric's steps recorded in `extra` under its name."""
        return list(measured.extra.get(self.name, []))

    def trials(self, measured: Measured) -> Sequence[TimedTrial]:
        """The trials behind the values; none by default."""
        return []

    def reservations(self, measured: Measured) -> list[str]:
        """Nothing by default."""
        return []
