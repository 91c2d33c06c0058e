# SPDX-License-Identifier: GPL-2.0-or-later
"""What a metric declares in addition to its meaning: how it is measured."""

from collections.abc import Callable, Sequence
from typing import Protocol

from fwlab.metrics.measurement import MeasurementSpec, Step
from fwlab.model.metric import Metric, TrafficKind
from fwlab.model.results import Clock

CONNECTIONS: frozenset[TrafficKind] = frozenset({"connections"})
ANY_TRAFFIC: frozenset[TrafficKind] = frozenset({"packets", "connections"})
WITH_OR_WITHOUT: frozenset[TrafficKind] = frozenset({"packets", "connections", "none"})


class MeasurableMetric(Metric, Protocol):
    """A metric that can be registered. A subclass defines `name`, `unit`, `display` and `steps`, and what differs.

    steps          how it is measured while a kind of traffic is played, on a DUT with this clock; none if loading the
                   ruleset measures it
    keeps_ruleset  whether a case of this metric alone may use the ruleset as the previous case has left it
    times_loading  whether it is measured as the ruleset is loaded, so that the DUT must have nothing of it before
    takes_ruleset  whether the ruleset is gone from the DUT when this has been measured
    """

    steps: Callable[[MeasurementSpec, TrafficKind, Clock], Sequence[Step]]
    keeps_ruleset: bool = False
    takes_ruleset: bool = False
    times_loading: bool = False
