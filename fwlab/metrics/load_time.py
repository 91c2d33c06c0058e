# SPDX-License-Identifier: GPL-2.0-or-later
"""Load time: seconds of DUT time that the ruleset takes to load, on the reference CPU where virtual."""

from __future__ import annotations

from fwlab.judge.statistics import scale
from fwlab.metrics.protocol import WITH_OR_WITHOUT, BaseMetric
from fwlab.model.metric import Display, Tolerance
from fwlab.model.results import Measured, TestbedFacts


class LoadTime(BaseMetric):
    """Every ruleset is loaded before anything else; a case that asks for its load time loads it more than once."""

    name = "load_time"
    unit = "s"
    position = 30
    display = Display("load time", "s", caption="Load time. Bars reach from the fastest to the slowest loading.")
    tolerance = Tolerance(share=0.03, ratio=0.06)
    needs_clock = True
    traffic = WITH_OR_WITHOUT

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [seconds / scale(testbed) for seconds in measured.loads]


METRIC = LoadTime()
