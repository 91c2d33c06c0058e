# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival on fake nodes: the share that follows from the counts, and the problems that are reported."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from fwlab.generator.protocol import PlaybackResult
from fwlab.metrics import survival
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes
from fwlab.metrics.registry import METRICS
from fwlab.metrics.survival import survive
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured
from fwlab.model.trial import Trial
from tests.fakes.factories import a_lab, measured, testbed

#: One packet in so many belongs to the victim class. The rest is attack.
ONE_IN = 10
#: Packets that the baseline forwards per busy second, on the DUT's own clock and on the reference CPU.
UNIT, SHOWN = 30_000, 120_000


class Clock:
    """A fake clock for real time."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(survival, "time", clock)
    return clock


@dataclass
class World:
    """`sent` packets reach a DUT that takes `taken` of them and forwards `passes` of the class, or everything.

    `sink` is the most that the sink counts at each throttle level. `pace` is how many more packets the DUT has taken,
    and dropped, at each reading.
    """

    sent: int = 100_000
    taken: int = 50_000
    passes: float = 1.0
    dropped: bool = True
    sink: list[float] = field(default_factory=lambda: [float("inf")] * 4)
    steps: list[int] = field(default_factory=list)
    received: int = 7
    sent_on: int = 5
    pace: int = 0

    @contextlib.contextmanager
    def slowed(self, step: int) -> Iterator[None]:
        self.steps.append(step)
        yield

    def start(self) -> SimpleNamespace:
        legitimate = round(self.taken / ONE_IN * self.passes)
        attack = 0 if self.dropped else self.taken - self.taken // ONE_IN
        self.received += self.taken
        self.sent_on += legitimate + attack
        share = min(1.0, self.sink[self.steps[-1]] / max(1, legitimate + attack))
        self.counts = {"legitimate": round(legitimate * share), "attack": round(attack * share)}
        return SimpleNamespace(stop=lambda: PlaybackResult(self.sent, 1.0))

    def counters(self) -> dict[str, int]:
        self.received += self.pace
        others = {"eth0.tx_packets": 1, "eth1.rx_packets": 1}
        return {"eth0.rx_packets": self.received, **others, "eth1.tx_packets": self.sent_on}

    def nodes(self, steps: int = 4) -> Nodes:
        dut = SimpleNamespace(counters=self.counters)
        sink = SimpleNamespace(load_counters=lambda classes: None, settled_counts=lambda: self.counts)
        tables = SimpleNamespace(
            offered=lambda traffic, sent: {"legitimate": sent // ONE_IN, "attack": sent - sent // ONE_IN}
        )
        return Nodes(dut, SimpleNamespace(start=self.start), sink, tables, {}, self.slowed, steps)


TASK = MeasurementSpec(
    id="alive",
    title="Alive",
    ruleset="drop",
    files=[],
    metrics=["survival"],
    traffic="beside",
    victim_class="legitimate",
    offered=2.0,
    baseline="raw-drop",
)


def found(*rates: int, slowed: int = 0) -> Measured:
    """Measure with a given capacity of the mix, in packets per busy second of the DUT's clock."""
    trials = [Trial(duration_s=1, busy_s=1, processed=rate) for rate in rates]
    return Measured(
        id="alive",
        title="Alive",
        ruleset="drop",
        ruleset_hash="0",
        metric="survival",
        tracked="legitimate",
        trials=trials,
        slowed=slowed,
    )


BASE = measured(a_lab(), "raw-drop", SHOWN, SHOWN - 4, SHOWN + 4)


def measured_on(world: World, result: Measured, base: Measured | None = BASE, ring: int = 1024) -> Measured:
    session = MeasuringSession(dataclasses.replace(world.nodes(), ring=ring))
    if base is not None:
        session.keep(base)
    return survive(session, TASK, result)


def survived(world: World, result: Measured) -> list[float]:
    return METRICS["survival"].values(measured_on(world, result), testbed())


def test_above_its_capacity_the_dut_loses_an_equal_share_of_each_class() -> None:
    """The load is twice the unit. A DUT that processes 1, 0.5 and 0.1 units takes a half, a quarter, a twentieth."""
    result = measured_on(World(), found(UNIT, UNIT // 2, UNIT // 10))
    assert METRICS["survival"].values(result, testbed()) == pytest.approx([0.5, 0.25, 0.05])
    assert result.problems == []
    assert result.survivals[0].intended_load == 2 * UNIT


def test_below_its_capacity_nothing_is_lost() -> None:
    assert survived(World(), found(2 * UNIT, 5 * UNIT)) == [1.0, 1.0]


def test_the_generators_excess_does_not_matter() -> None:
    """Nor does host load: in one second or in ten, the same share of the taken packets arrives."""
    for sent, taken in [(60_000, 50_000), (900_000, 20_000)]:
        assert survived(World(sent=sent, taken=taken), found(UNIT)) == [pytest.approx(0.5)]


def test_packets_of_the_class_that_the_ruleset_drops_are_lost() -> None:
    assert survived(World(passes=0.25), found(UNIT)) == [pytest.approx(0.125)]
    assert survived(World(passes=0.25), found(5 * UNIT)) == [pytest.approx(0.25)]


def test_a_check_asks_for_the_survival_of_its_own_class() -> None:
    """An exercise may limit one class and spare another. Each has its share of one play."""
    result = measured_on(World(passes=0.25, dropped=False), found(5 * UNIT))
    values = METRICS["survival"].values
    assert values(result, testbed(), "attack") == [pytest.approx(1.0)]
    assert values(result, testbed(), "legitimate") == values(result, testbed()) == [pytest.approx(0.25)]


def test_a_class_that_is_dropped_completely() -> None:
    assert survived(World(passes=0), found(5 * UNIT)) == [0]


def test_without_a_filter_the_attack_arrives_too_and_is_not_counted() -> None:
    assert survived(World(dropped=False), found(UNIT)) == [pytest.approx(0.5)]


def test_playback_uses_the_throttle_level_of_the_trials() -> None:
    world = World()
    survived(world, found(UNIT, slowed=2))
    assert world.steps == [2]


def test_the_dut_is_throttled_for_a_slow_sink() -> None:
    world = World(dropped=False, sink=[20_000, 44_000, float("inf"), float("inf")])
    assert survived(world, found(UNIT)) == [pytest.approx(0.5)]
    assert world.steps == [0, 1, 2]


def test_occasional_losses_at_the_sink_are_independent_of_the_class() -> None:
    world = World(dropped=False, sink=[49_000] * 4)
    assert survived(world, found(UNIT)) == [pytest.approx(0.5, rel=0.001)]
    assert world.steps == [0]


def test_a_sink_that_never_keeps_up_is_reported() -> None:
    result = measured_on(World(dropped=False, sink=[20_000] * 4), found(UNIT))
    assert result.problems == ["the sink counted 20000 of 50000 packets that the DUT sent on"]


@pytest.mark.parametrize(
    ("rate", "wanted"),
    [
        pytest.param(UNIT, 10_000, id="half of the load: 1000 packets of the class, one in ten"),
        pytest.param(UNIT // 2, 8192, id="a quarter: 625 of the class, and eight rings full"),
        pytest.param(6 * UNIT, 10_000, id="all of it"),
    ],
)
def test_playback_lasts_until_the_dut_has_received_enough(clock: Clock, rate: int, wanted: int) -> None:
    result = measured_on(World(taken=0, pace=500), found(rate))
    polls = -(-wanted // 500)
    assert clock.now == pytest.approx((polls - 1) * survival.POLL_S)
    assert result.survivals[0].taken == (polls + 1) * 500, "and what came while it was stopped"


def test_a_small_share_of_a_rare_class_needs_fewer_of_it(clock: Clock) -> None:
    """By chance alone, 11 packets are enough for a thirtieth to be within 0.01. At least 300 are required anyway."""
    measured_on(World(taken=0, pace=500), found(UNIT // 15), ring=64)
    assert clock.now == pytest.approx(5 * survival.POLL_S), "3000 packets"


def test_waiting_for_a_slow_dut_has_a_limit(clock: Clock) -> None:
    result = measured_on(World(taken=5000), found(UNIT))
    assert survival.MAX_S <= clock.now <= survival.MAX_S + survival.POLL_S
    assert result.problems == []


def test_too_few_packets_of_the_class_are_reported() -> None:
    result = measured_on(World(taken=900), found(UNIT))
    assert result.problems == ["the DUT took 90 packets of legitimate; at least 100 say something"]


@pytest.mark.parametrize("base", [None, *(BASE.model_copy(update=u) for u in ({"problems": ["idle"]}, {"trials": []}))])
def test_without_the_baseline_there_is_no_multiple(base: Measured | None) -> None:
    world = World()
    result = measured_on(world, found(UNIT), base)
    assert "capacity of raw-drop, which was not measured" in result.problems[0]
    assert (world.steps, result.survivals) == ([], [])


def test_a_silent_generator_is_not_a_survival_of_zero() -> None:
    with pytest.raises(CannotMeasure, match="no packet reached the DUT"):
        survived(World(taken=0), found(UNIT))
