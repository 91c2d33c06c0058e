# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory: what the DUT's kernel holds for a ruleset, its sets and its tables, in bytes.

The ruleset is loaded, then removed; its modules stay. The figure is the difference. It includes neither code nor
empty tables. Where a case gives `state_packets`, that number of packets fills the ruleset's tables first, as it
fills the connection table for `states`.
"""

from collections.abc import Sequence

from typing_extensions import TypedDict  # pydantic validates no other on Python 3.11

from fwlab.dut.protocol import Dut, UnknownOperation
from fwlab.metrics.load_time import SMALL
from fwlab.metrics.measurement import WITH_OR_WITHOUT, MeasurableMetric, MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.metrics.state_table import FILL
from fwlab.model.errors import CannotMeasure
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, Values

#: Maximum number of memory measurements per ruleset. A large ruleset, or one whose tables packets have filled, is
#: measured once.
MAX_TIMES = 3


class Memory(MeasurableMetric):
    """Bytes that the kernel holds for the ruleset. Measuring removes the ruleset, so this comes last."""

    name = "memory"
    unit = "bytes"
    position = 65
    display = Display(
        "kernel memory", "KiB", 1 / 1024, caption="Memory that the kernel holds for the ruleset and its tables."
    )
    # A block more or less of a page counts much for a small ruleset.
    tolerance = Tolerance(share=0.05, ratio=0.1)
    traffic = WITH_OR_WITHOUT
    takes_ruleset = True

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FILL, WEIGH] if spec.state_packets else [WEIGH]


METRIC = Memory()


class Held(TypedDict):
    """What the kernel holds for rulesets and for everything else, and whether the figure had settled."""

    bytes: int
    settled: bool


def _held(dut: Dut) -> Held:
    try:
        return dut.ask(METRIC.name, Held, timeout=300)
    except UnknownOperation:
        message = "the kernel memory of rulesets is measured on Linux only"
        raise CannotMeasure(message, "leave the metric `memory` out") from None


def times(spec: MeasurementSpec) -> int:
    """How often the ruleset's memory is measured."""
    small = sum(len(file.text) for file in spec.files) < SMALL
    return min(MAX_TIMES, spec.trial.count) if small and not spec.state_packets else 1


def _weigh(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    dut = session.nodes.dut
    found, settled = [], True
    for turn in range(times(spec)):
        if turn:
            dut.load(spec.files, each=spec.each)
        loaded = _held(dut)
        dut.unload()
        empty = _held(dut)
        found.append(float(loaded["bytes"] - empty["bytes"]))
        settled = settled and loaded["settled"] and empty["settled"]
    doubt = "the memory of the DUT's kernel kept changing, so what the ruleset takes is in doubt"
    return so_far.plus(Values(extra={METRIC.name: found})).troubled([] if settled else [doubt])


WEIGH = Step(Phase.WITHOUT_RULESET, _weigh)
