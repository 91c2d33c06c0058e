# SPDX-License-Identifier: GPL-2.0-or-later
"""Price: instructions for a packet, on average by the rules' own counters.

Of an exercise, the classes, their packets and their weights are those of the start, so that two rulesets are priced by
the same packets. Of a case they are those of its own rules. fwlab/own/prices.py says how a packet is timed.
"""

from collections.abc import Sequence

from fwlab.metrics.differences import rules_of
from fwlab.metrics.measurement import MeasurableMetric, MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.model.events import ItemPhase
from fwlab.model.metric import Display, NeedsClock, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, Values
from fwlab.own.bench_client import opened
from fwlab.own.layout import layout_of
from fwlab.own.prices import means, side_by_side
from fwlab.own.reach import reach


class Price(MeasurableMetric):
    """The mean of single packets' prices. A packet comes by a tap device, so it is not the cost behind `capacity`."""

    name = "price"
    unit = "instructions"
    position = 67
    display = Display("price", "instructions", significant=5)
    tolerance = Tolerance(share=0.005, ratio=0.01)
    needs_clock = True
    clock = NeedsClock("instructions", "a single packet's price is counted by it")
    traffic = frozenset({"none"})
    apart = True
    ranked = True

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [PRICE]


METRIC = Price()


def _price(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    nodes = session.nodes
    start = nodes.bench()

    def notify(words: str) -> None:
        nodes.emit(ItemPhase(spec.id, words))

    with opened(start, "the start") as old, opened(start, "yours") as new:
        rules = rules_of(old, spec.compared_with or spec.files)
        rules_of(new, spec.files)
        layout = layout_of([rules], ())
        for bench in (old, new):
            bench.prepare(layout)
        reached = reach(old, rules, layout, None, notify)
        pairs = side_by_side(old, new, reached, nodes.ns_per_instruction, notify)
    if not pairs:
        return so_far.troubled(["no packet that these rules decide about could be timed"])
    return so_far.plus(Values(extra={METRIC.name: [means(pairs)[1]]}))


PRICE = Step(Phase.PRICING, _price)
