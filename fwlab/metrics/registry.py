# SPDX-License-Identifier: GPL-2.0-or-later
"""All metrics by name: one module of this package each, and the entry points of the group `fwlab.metrics`."""

from __future__ import annotations

from typing import Final

from fwlab.metrics.protocol import BaseMetric
from fwlab.model.registry import Registry, discover

REQUIRED = (
    "unit",
    "display",
    "position",
    "tolerance",
    "portable",
    "needs_clock",
    "traffic",
    "needs",
    "by_class",
    "invalidated_by",
    "least_busy",
    "usual_spread",
    "keeps_ruleset",
    "steps",
    "values",
    "trials",
    "reservations",
)

METRICS: Final[Registry[BaseMetric]] = discover("metric", "fwlab.metrics", "METRIC", "fwlab.metrics", REQUIRED)
