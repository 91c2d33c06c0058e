# SPDX-License-Identifier: GPL-2.0-or-later
"""Filling the DUT's connection table: the load, the repeated plays, and doubtful counts."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from fwlab.generator.protocol import PlaybackResult
from fwlab.judge.statistics import figure
from fwlab.metrics import delivery, plays, state_table
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured
from fwlab.model.trial import FiveTuple, States
from tests.fakes.factories import testbed

MEMORY = {"most": 65536, "buckets": 65536, "object_bytes": 256, "slab_bytes": 1 << 20, "bucket_bytes": 1 << 19}

#: What is done to the DUT. What it would forward is dropped while it is watched, and while the table is filled.
FILLED = ["mute", "look", "unmute", "reset", "load", "mute", "unmute"]


class FakeDut:
    """Takes in packets up to `carries` per second; tracks each as a state."""

    def __init__(self, carries: float) -> None:
        self.carries, self.counted, self.held, self.done = carries, 5, 0, []

    def reset(self) -> list[str]:
        self.done.append("reset")
        self.held = 0
        return []

    def load(self, files: list) -> None:
        self.done.append("load")

    @contextmanager
    def blackhole(self):
        self.done.append("mute")
        yield
        self.done.append("unmute")
        self.held = 0  # a busy host takes longer for this than entries last

    def counters(self) -> dict[str, int]:
        return {"eth0.rx_bytes": 1, "eth0.rx_packets": self.counted, "eth1.rx_packets": 9, "eth1.tx_packets": 0}

    def states(self) -> dict[str, int]:
        return {"held": self.held, **MEMORY}


class FakeEngine:
    def __init__(self, dut: FakeDut, short: int = 0) -> None:
        self.dut, self.short, self.loads = dut, short, []

    def start(self, *, load: float, count: int) -> SimpleNamespace:
        self.loads.append(load)
        sent = count - self.short
        came = sent if load <= self.dut.carries else int(sent * self.dut.carries / load)
        self.dut.counted += came
        # Each play loses other packets.
        self.dut.held += round((sent - self.dut.held) * came / sent)
        return SimpleNamespace(wait=lambda timeout: PlaybackResult(sent, count / load))


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch):
    for module in (delivery, plays):
        monkeypatch.setattr(module, "SETTLED_S", 0)

    looked: list[float] = []

    def run(carries: float, seen: float, short: int = 0, count: int = 10_000) -> tuple[FakeDut, FakeEngine, Measured]:
        """`seen` is the assumed rate of the DUT, `carries` the actual one."""
        dut = FakeDut(carries)
        engine = FakeEngine(dut, short)

        def rate(nodes: SimpleNamespace, seconds: float) -> float:
            looked.append(seconds)
            nodes.dut.done.append("look")
            return seen

        monkeypatch.setattr(state_table, "real_rate", rate)
        task = MeasurementSpec("x", "x", "x", [], ["states", "state_bytes"], traffic="flows", state_packets=count)
        found = Measured(id="x", title="x", ruleset="x", ruleset_hash="", metric="states")
        found = state_table.fill(
            MeasuringSession(SimpleNamespace(dut=dut, engine=engine, classes={}, pacing=None)), task, found
        )
        return dut, engine, found

    run.looked = looked
    return run


def test_every_packet_is_a_state(filled) -> None:
    dut, engine, found = filled(carries=1000, seen=1000)
    assert engine.loads == [650]
    # What was tried before has left states behind.
    assert dut.done == FILLED
    assert (found.states.played, found.states.held, found.problems) == (10_000, 10_000, [])
    assert figure(found, METRICS["states"], testbed()).median == 10_000
    assert figure(found, METRICS["state_bytes"], testbed()).median == pytest.approx((1.5 * (1 << 20)) / 10_000)


@pytest.mark.parametrize(
    ("carries", "loads", "held"),
    [
        (649.2, [650, 650], 10_000),  # 13 of 10 000 are lost, hardly one of them twice
        (649.55, [650], 9_993),  # 7 of 10 000 are not worth another play
        (617.5, [650, 650, 300], 10_000),  # one in twenty is lost, 25 of 10 000 twice
        (300, [650, 650, 300], 10_000),
    ],
)
def test_lost_packets_are_sent_again_at_a_smaller_load_if_need_be(
    filled, carries: float, loads: list[float], held: int
) -> None:
    dut, engine, found = filled(carries=carries, seen=1000)
    assert (engine.loads, dut.done) == (loads, FILLED)
    assert (found.states.held, found.problems) == (held, [])


def test_packets_that_do_not_arrive_are_reported(filled) -> None:
    _, engine, found = filled(carries=50, seen=1000)
    assert len(engine.loads) == len(state_table.LOADS)
    assert found.problems == ["3551 of 10000 packets were lost before the DUT could track them"]
    assert filled(carries=1000, seen=1000, short=10)[2].problems == ["the generator sent 9990 of 10000 packets"]


def test_a_long_fill_is_probed_longer(filled) -> None:
    for count in (2000, 65_000, 250_000, 1_000_000):
        filled(carries=1000, seen=1000, count=count)
    assert filled.looked == [0.8, 0.8, 2, 4]


#: Two packets of one flow, and one of another class's flow.
ONE, OTHER_ONE = FiveTuple(17, "198.18.64.1", 1, "198.19.10.1", 443), FiveTuple(6, "198.18.64.2", 2, "198.19.10.1", 80)


class CountingDut(FakeDut):
    """Its entries count what is in `flows`; None: nothing is tracked."""

    def __init__(self, flows: dict[FiveTuple, int] | None) -> None:
        super().__init__(carries=1e9)
        self.entries = flows

    def drain(self) -> None:
        self.done.append("drain")

    def count_flows(self) -> bool:
        self.done.append("empty")
        return self.entries is not None

    def flows(self) -> dict[FiveTuple, int]:
        return dict(self.entries or {})


@pytest.mark.parametrize(
    ("flows", "shares"),
    [
        ({ONE: 640, OTHER_ONE: 320}, [1.0, 1.0]),
        ({ONE: 64, OTHER_ONE: 320}, [0.1, 1.0]),  # now and then
        ({ONE: 999, OTHER_ONE: 0}, [1.0, 0.0]),  # no other flow's packets make up for it
        ({}, [0.0, 0.0]),
        (None, [0.0, 0.0]),
    ],
)
def test_packets_are_tracked_if_entries_count_them(
    flows: dict[FiveTuple, int] | None, shares: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (delivery, plays):
        monkeypatch.setattr(module, "SETTLED_S", 0)
    dut = CountingDut(flows)
    store = SimpleNamespace(
        five_tuples=lambda traffic, sent: {("near", ONE): 2 * sent // 3, ("far", OTHER_ONE): sent // 3},
        offered=lambda traffic, sent: {"near": 2 * sent // 3, "far": sent // 3},
    )
    nodes = SimpleNamespace(dut=dut, engine=FakeEngine(dut), classes={}, pacing=None, store=store)
    spec = MeasurementSpec("x", "x", "x", [], ["tracked"], traffic="flows")
    found = Measured(id="x", title="x", ruleset="x", ruleset_hash="", metric="tracked")
    found = state_table.track(MeasuringSession(nodes), spec, found)
    assert dut.done[:2] == ["drain", "empty"]
    assert [METRICS["tracked"].values(found, testbed(), name)[0] for name in ("near", "far")] == shares
    assert METRICS["tracked"].values(found, testbed(), "nobody") == []


class FloodedDut(CountingDut):
    """It takes 700 more packets by each look; `limited`: a ruleset may drop packets before entries count them."""

    def counters(self) -> dict[str, int]:
        self.counted += 700
        return super().counters()

    def forget_states(self) -> bool:
        self.done.append("forget")
        return True


@pytest.mark.parametrize(
    ("metric", "held", "limited", "flooded", "counted"),
    [
        ("states", 100, False, state_table.MIN_REFILLED, None),
        ("states", 50_000, False, 50_000, None),
        ("tracked", 100, False, state_table.MIN_REFILLED, 960),
        ("tracked", 100, True, state_table.MIN_REFILLED, None),
    ],
)
def test_the_empty_table_is_filled_again_by_a_flood_as_large(
    metric: str, held: int, limited: bool, flooded: int, counted: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plays, "LOOK_S", 0)
    dut = FloodedDut({ONE: 640, OTHER_ONE: 320})
    engine = SimpleNamespace(start=lambda: SimpleNamespace(stop=lambda: dut.done.append("stop"), abandon=print))
    throttle = {"classes": {}, "throttle": lambda level: nullcontext(dut.done.append(level))}
    nodes = SimpleNamespace(dut=dut, engine=engine, **throttle)
    spec = MeasurementSpec("x", "x", "x", [], [metric], traffic="flows", load_dependent=limited)
    fields = {"ruleset_hash": "", "metric": metric, "slowed": 3}
    known = Measured(id="x", title="x", ruleset="x", **fields)
    session = MeasuringSession(nodes)
    assert state_table.refill(session, spec, known) is known, "nothing was tracked at a light load"
    dut.done.clear()
    filled = known.model_copy(update={"states": States(played=held, held=held, **MEMORY)})
    states = state_table.refill(session, spec, filled).states
    emptied = "empty" if counted else "forget"
    assert dut.done == ["drain", emptied, 3, "mute", "stop", "unmute", "drain"]
    assert flooded < states.flooded < flooded + 5 * 700
    assert (states.held, states.in_flood, states.counted) == (held, 0, counted)
