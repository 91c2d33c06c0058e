# SPDX-License-Identifier: GPL-2.0-or-later
"""All metrics by name: one module of this package each, and the entry points of the group `fwlab.metrics`."""

from __future__ import annotations

from typing import Final

from fwlab.metrics.protocol import MeasurableMetric
from fwlab.model.metric import Metric
from fwlab.model.registry import Registry, discover

#: The attributes and methods of the protocol.
REQUIRED = tuple(
    name
    for protocol in (Metric, MeasurableMetric)
    for name in dict.fromkeys((*protocol.__annotations__, *vars(protocol)))
    if not name.startswith("_")
)

METRICS: Final[Registry[MeasurableMetric]] = discover("metric", "fwlab.metrics", "METRIC", "fwlab.metrics", REQUIRED)
