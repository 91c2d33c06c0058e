# SPDX-License-Identifier: GPL-2.0-or-later
"""All metrics by name: METRIC of each module of this package, and the entry points of the group `fwlab.metrics`."""

from fwlab.metrics.measurement import MeasurableMetric
from fwlab.model.registry import Registry, discover

METRICS: Registry[MeasurableMetric] = discover("metric", "fwlab.metrics", "METRIC", "fwlab.metrics", MeasurableMetric)
