# SPDX-License-Identifier: GPL-2.0-or-later
"""Updates: what it costs the DUT to change a ruleset that it has loaded, and what the ruleset did before the change.

Files whose names begin with `update` are loaded last, by the tool of their kind, as a program would that keeps a
ruleset up to date. Everything else is measured with the update in force. In the end the ruleset is loaded without it,
and then the update alone. The figure is the busy time of that second loading: the tool's work, and the kernel's.
"""

from collections.abc import Sequence
from typing import ClassVar

from fwlab.judge.statistics import scale
from fwlab.metrics.delivery import counted, first_plays
from fwlab.metrics.load_time import TINY
from fwlab.metrics.measurement import WITH_OR_WITHOUT, MeasurableMetric, MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, Part, TestbedFacts
from fwlab.model.trial import Delivery
from fwlab.rulesets.kind import is_update

#: Times that the update is measured; once for a large ruleset, which takes long to load again.
TIMES = 3


class Updates(Part):
    """Updates of the ruleset.

    seconds  of busy DUT time, for each time; 0 for a ruleset without an update
    before   what became of a few packets before the first of them
    """

    key: ClassVar[str] = "update"
    seconds: list[float]
    before: Delivery | None = None


class UpdateTime(MeasurableMetric):
    """Seconds of DUT time that an update takes, on the reference CPU where virtual."""

    name = "update"
    unit = "s"
    position = 31
    display = Display("update", "ms", 1e3)
    tolerance = Tolerance(share=0.03, ratio=0.06)
    needs_clock = True
    traffic = WITH_OR_WITHOUT
    takes_ruleset = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        found = measured.part(Updates)
        return [seconds / scale(testbed) for seconds in found.seconds] if found else []

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [UPDATE]


class DeliveredBefore(MeasurableMetric):
    """Share of a traffic class that reaches the sink before the update.

    A ruleset that has had the change from the beginning would otherwise pass with an update that does nothing.
    """

    name = "before_update"
    unit = "ratio"
    position = 41
    display = Display("delivered before the update", "%", 100.0)
    tolerance = Tolerance(absolute=0.01)
    by_class = True
    takes_ruleset = True

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        found = measured.part(Updates)
        share = found.before.delivered(traffic_class) if found and found.before else None
        return [] if share is None else [share]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [UPDATE]


METRIC = (UpdateTime(), DeliveredBefore())


def _update(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    nodes = session.nodes
    rules = [file for file in spec.files if not is_update(file.name)]
    updates = [file for file in spec.files if is_update(file.name)]
    small = sum(len(file.text) for file in spec.files) < TINY
    seconds, before, problems = list[float](), None, list[str]()
    for turn in range(min(TIMES, spec.trial.count) if small and updates else 1):
        nodes.dut.unload()
        if rules:
            nodes.dut.load(rules, timed=False)
        if not turn and spec.asks_for(DeliveredBefore.name):
            nodes.dut.drain()
            nodes.dut.forget_states()  # which would send packets where the update has sent their flow
            before, problems = counted(nodes, spec, first_plays(nodes, spec))
        seconds.append(sum(nodes.dut.load(updates)[0]) if updates else 0.0)
    return so_far.plus(Updates(seconds=seconds, before=before)).troubled(problems)


UPDATE = Step(Phase.UPDATE, _update, despite_problems=False)
