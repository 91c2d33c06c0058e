# SPDX-License-Identifier: GPL-2.0-or-later
"""A metric of a plug-in: cache misses per packet, as a DUT with such a counter reports them."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import TypedDict

from fwlab.dut.protocol import Dut
from fwlab.metrics.measurement import MeasurableMetric, MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, Values

PACKETS = 1000


class Counted(TypedDict):
    """The answer of the DUT's agent."""

    misses: int


def _misses(dut: Dut) -> int:
    return dut.ask("cache_misses", Counted, timeout=60)["misses"]


def _play(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    nodes, values = session.nodes, []
    for _ in range(spec.trial.count):
        before = _misses(nodes.dut)
        nodes.engine.start(load=100.0, count=PACKETS).wait(timeout=60)
        values.append((_misses(nodes.dut) - before) / PACKETS)
    return so_far.plus(Values(extra={"cache_misses": values}))


PLAY = Step(Phase.AFTER_FLOOD, _play)


class CacheMisses(MeasurableMetric):
    """Its values are in `extra` of the result, under its name."""

    name = "cache_misses"
    unit = "misses"
    display = Display("cache misses", "misses/packet", caption="Cache misses. Bars reach from the best to the worst.")
    tolerance = Tolerance(share=0.1, ratio=0.2)

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [PLAY]


METRIC = CacheMisses()
