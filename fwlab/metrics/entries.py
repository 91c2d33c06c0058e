# SPDX-License-Identifier: GPL-2.0-or-later
"""Entries: addresses that the DUT holds in sets, maps and rules after loading."""

from __future__ import annotations

from fwlab.metrics.protocol import WITH_OR_WITHOUT, BaseMetric
from fwlab.model.metric import Display
from fwlab.model.results import Measured, TestbedFacts


class Entries(BaseMetric):
    """A count, taken when everything else has been measured."""

    name = "entries"
    unit = "count"
    position = 60
    display = Display("entries", whole=True)
    traffic = WITH_OR_WITHOUT

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [] if measured.entries is None else [float(measured.entries)]


METRIC = Entries()
