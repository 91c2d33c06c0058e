# SPDX-License-Identifier: GPL-2.0-or-later
"""Load time: seconds of DUT time that the ruleset takes to load, on the reference CPU where virtual."""

from collections.abc import Sequence

from fwlab.judge.statistics import scale
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import Nodes
from fwlab.metrics.protocol import WITH_OR_WITHOUT, MeasurableMetric
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Measured, TestbedFacts

#: A ruleset below this size (characters) is loaded up to three more times; a larger one is loaded once.
SMALL = 1 << 20


class LoadTime(MeasurableMetric):
    """The ruleset is loaded before any other step; a case that asks for the load time loads it more than once."""

    name = "load_time"
    unit = "s"
    position = 30
    display = Display(
        "load time", "s", listed=False, caption="Load time. Bars reach from the fastest to the slowest loading."
    )
    tolerance = Tolerance(share=0.03, ratio=0.06)
    needs_clock = True
    traffic = WITH_OR_WITHOUT

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [seconds / scale(testbed) for seconds in measured.loads]

    def steps(self, spec: MeasurementSpec, played: TrafficKind) -> Sequence[Step]:
        return []


METRIC = LoadTime()


def load(nodes: Nodes, spec: MeasurementSpec) -> list[float]:
    """Load the ruleset. Returns seconds of busy DUT time, for each time that all of it was loaded. Raises Refused.

    If the load time is asked for, a small ruleset is loaded again: the first time also loads kernel modules, so only
    the later ones count.
    """
    if not spec.files:
        return []
    again = spec.asks_for("load_time") and not spec.each and sum(len(file.text) for file in spec.files) < SMALL
    times = 1 + (max(1, min(3, spec.trial.count)) if again else 0)
    runs = nodes.dut.load(spec.files, each=spec.each, times=times)
    return [sum(seconds) for seconds in runs[int(again) :]]
