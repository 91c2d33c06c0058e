# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival on fake nodes: the share that follows from the counts, and the problems that are reported."""

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from fwlab.generator.pacing.paced_load import Load
from fwlab.generator.protocol import PlaybackResult
from fwlab.metrics import survival
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes
from fwlab.metrics.registry import METRICS
from fwlab.metrics.survival import survive
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured
from fwlab.model.trial import PacedPlay, PacedTrial, Trial
from tests.fakes.factories import a_lab, measured, testbed

#: One packet in this many belongs to the victim class. The rest is attack.
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


FIELDS = {"traffic": "beside", "victim_class": "legitimate", "total_load": 2.0, "baseline": "raw-drop"}
TASK = MeasurementSpec("alive", "Alive", "drop", [], ["survival"], **FIELDS)


def found(*rates: int, slowed: int = 0) -> Measured:
    """Measure with a given capacity of the mix, in packets per busy second of the DUT's clock."""
    trials = [Trial(duration_s=1, busy_s=1, processed=rate) for rate in rates]
    known = {"metric": "survival", "victim_class": "legitimate", "trials": trials, "throttle_level": slowed}
    return Measured(id="alive", title="Alive", ruleset="drop", ruleset_hash="0", **known)


BASE = measured(a_lab(), "raw-drop", SHOWN, SHOWN - 4, SHOWN + 4)


def measured_on(world: World, result: Measured, base: Measured | None = BASE, ring: int = 1024) -> Measured:
    session = MeasuringSession(dataclasses.replace(world.nodes(), ring=ring))
    if base is not None:
        session.keep(base)
    return survive(session, TASK, result)


def survived(result: Measured, name: str = "") -> list[float]:
    return METRICS["survival"].values(result, testbed(), name)


@pytest.mark.parametrize(
    ("world", "rates", "shares"),
    [
        # The load is twice the unit. A DUT that processes 1, 0.5 and 0.1 units takes a half, a quarter, a twentieth.
        (World(), [UNIT, UNIT // 2, UNIT // 10], [0.5, 0.25, 0.05]),
        (World(), [2 * UNIT, 5 * UNIT], [1, 1]),
        # What the generator sends in excess does not matter, nor does the host's load.
        (World(sent=60_000, taken=50_000), [UNIT], [0.5]),
        (World(sent=900_000, taken=20_000), [UNIT], [0.5]),
        (World(passes=0.25), [UNIT, 5 * UNIT], [0.125, 0.25]),
        (World(passes=0), [5 * UNIT], [0]),
        (World(dropped=False), [UNIT], [0.5]),
    ],
    ids=["above", "below", "little excess", "much excess", "dropped in part", "dropped", "no filter"],
)
def test_above_its_capacity_the_dut_loses_an_equal_share_of_each_class(
    world: World, rates: list[int], shares: list[float]
) -> None:
    result = measured_on(world, found(*rates))
    assert survived(result) == pytest.approx(shares)
    assert (result.problems, result.survivals[0].intended_load) == ([], 2 * UNIT)


def test_a_check_asks_for_the_survival_of_its_own_class() -> None:
    """An exercise may limit one class and spare another. Each has its share of one play."""
    result = measured_on(World(passes=0.25, dropped=False), found(5 * UNIT))
    assert [survived(result, name) for name in ("attack", "legitimate", "")] == [
        [pytest.approx(share)] for share in (1, 0.25, 0.25)
    ]


@pytest.mark.parametrize(
    ("sink", "slowed", "steps", "problems"),
    [
        ([float("inf")] * 4, 2, [2], []),  # the level of the trials
        ([20_000, 44_000, float("inf"), float("inf")], 0, [0, 1, 2], []),  # a slow sink
        ([49_000] * 4, 0, [0], []),  # occasional losses are independent of the class
        ([20_000] * 4, 0, [0, 1, 2, 3], ["the sink counted 20000 of 50000 packets that the DUT sent on"]),
    ],
)
def test_the_dut_is_throttled_for_a_slow_sink(
    sink: list[float], slowed: int, steps: list[int], problems: list[str]
) -> None:
    world = World(dropped=False, sink=sink)
    result = measured_on(world, found(UNIT, slowed=slowed))
    assert survived(result) == [pytest.approx(0.5, rel=0.001)]
    assert (world.steps, result.problems) == (steps, problems)


@pytest.mark.parametrize(
    ("rate", "ring", "wanted"),
    [
        pytest.param(UNIT, 1024, 10_000, id="half of the load: 1000 packets of the class, one in ten"),
        pytest.param(UNIT // 2, 1024, 8192, id="a quarter: 625 of the class, and eight rings full"),
        pytest.param(6 * UNIT, 1024, 10_000, id="all of it"),
        pytest.param(UNIT // 15, 64, 3000, id="a thirtieth: 11 of the class would do; at least 300 are required"),
    ],
)
def test_playback_lasts_until_the_dut_has_received_enough(clock: Clock, rate: int, ring: int, wanted: int) -> None:
    result = measured_on(World(taken=0, pace=500), found(rate), ring=ring)
    polls = -(-wanted // 500)
    assert clock.now == pytest.approx((polls - 1) * survival.POLL_S)
    assert result.survivals[0].taken == (polls + 1) * 500, "and what came while it was stopped"


@pytest.mark.parametrize(
    ("taken", "problems"),
    [(5000, []), (900, ["the DUT took 90 packets of legitimate; at least 100 say something"])],
)
def test_waiting_for_a_slow_dut_has_a_limit(clock: Clock, taken: int, problems: list[str]) -> None:
    assert measured_on(World(taken=taken), found(UNIT)).problems == problems
    assert survival.MAX_S <= clock.now <= survival.MAX_S + survival.POLL_S


@pytest.mark.parametrize("base", [None, *(BASE.model_copy(update=u) for u in ({"problems": ["idle"]}, {"trials": []}))])
def test_without_the_baseline_there_is_no_multiple(base: Measured | None) -> None:
    world = World()
    result = measured_on(world, found(UNIT), base)
    assert "capacity of raw-drop, which was not measured" in result.problems[0]
    assert (world.steps, result.survivals) == ([], [])


@pytest.mark.parametrize(("offered", "seconds"), [(2.0, 1000 / 6000), (10.0, 0.15), (0.1, 2.0)])
def test_in_the_duts_own_time_the_multiple_is_played_until_enough_of_the_class_came(
    offered: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(_nodes: Nodes, _traffic: str, load: Load) -> PacedPlay:
        assert (load.pps, load.trial_s) == (pytest.approx(offered * UNIT), pytest.approx(seconds))
        trial = PacedTrial(duration_s=load.trial_s, offered={"legitimate": 1000}, forwarded={"legitimate": 250})
        counts = {"offered": 1000, "received": 1000, "forwarded": {}, "returned": {}}
        return PacedPlay(load=load.pps, tick_s=0.001, **counts, trials=[trial], problems=["late"])

    monkeypatch.setattr(survival, "play_paced", play)
    session, task = MeasuringSession(World().nodes()), dataclasses.replace(TASK, total_load=offered)
    assert "capacity of raw-drop" in survival.survive_paced(session, task, found()).problems[0]
    session.keep(BASE)
    result = survival.survive_paced(session, task, found())
    assert (survived(result), result.problems) == ([0.25], ["late"])
    assert METRICS["survival"].counts(result) == (250, 1000)


def test_a_silent_generator_is_not_a_survival_of_zero() -> None:
    with pytest.raises(CannotMeasure, match="no packet reached the DUT"):
        measured_on(World(taken=0), found(UNIT))
