# SPDX-License-Identifier: GPL-2.0-or-later
"""Load time: seconds of DUT time that the ruleset takes to load, on the reference CPU where virtual."""

from collections.abc import Sequence

from fwlab.judge.statistics import scale
from fwlab.metrics.measurement import WITH_OR_WITHOUT, MeasurableMetric, MeasurementSpec, Nodes, Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts

#: A ruleset below the first size (characters) is loaded up to three more times, one below the second once more, and a
#: larger one is loaded once: from 256 KiB on the times differ by less than 1 %.
TINY, SMALL = 1 << 18, 1 << 20


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
    times_loading = True
    traffic = WITH_OR_WITHOUT

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [seconds / scale(testbed) for seconds in measured.loads]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return []


METRIC = LoadTime()


def load(nodes: Nodes, spec: MeasurementSpec) -> list[float]:
    """Load the ruleset. Returns seconds of busy DUT time, for each time that all of it was loaded. Raises Refused.

    Without a request for the load time nothing is returned, and the ruleset is loaded faster.

    If the load time is asked for, a small ruleset is loaded again: the first time also loads kernel modules, so only
    the later ones count.
    """
    if not spec.files:
        return []
    if not spec.asks_for("load_time"):
        nodes.dut.load(spec.files, each=spec.each, timed=False)
        return []
    size = sum(len(file.text) for file in spec.files)
    most = 0 if spec.each or size >= SMALL else 3 if size < TINY else 1
    runs = nodes.dut.load(spec.files, each=spec.each, times=1 + min(most, spec.trial.count))
    return [sum(seconds) for seconds in runs[bool(most) :]]
