# SPDX-License-Identifier: GPL-2.0-or-later
"""What a metric declares, with the usual answers; a metric's file overrides what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, TimedTrial, Tolerance, TrafficKind
from fwlab.model.results import Measured, TestbedFacts

PACKETS: frozenset[TrafficKind] = frozenset({"packets"})
CONNECTIONS: frozenset[TrafficKind] = frozenset({"connections"})
ANY_TRAFFIC: frozenset[TrafficKind] = frozenset({"packets", "connections"})
WITH_OR_WITHOUT: frozenset[TrafficKind] = frozenset({"packets", "connections", "none"})


class BaseMetric:
    """A metric that needs packets, gives the same figure on every host, and says nothing about saturation.

    A metric must declare `name`, `unit` and `display` and define `steps`; the registry refuses one that lacks a value.

    keeps_ruleset  whether a case of this metric alone may use the ruleset as the previous case has left it
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
    invalidated_by: Literal["own class", "any class", "none"] = "none"
    least_busy: float | None = None
    usual_spread: float | None = None
    keeps_ruleset: bool = False

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        """What a metric from elsewhere has recorded under its name."""
        return list(measured.extra.get(self.name, []))

    def steps(self, spec: MeasurementSpec, played: TrafficKind) -> Sequence[Step]:
        """How it is measured while this kind of traffic is played; nothing if loading the ruleset measures it."""
        raise NotImplementedError

    def trials(self, measured: Measured) -> Sequence[TimedTrial]:
        return []

    def reservations(self, measured: Measured) -> list[str]:
        return []
