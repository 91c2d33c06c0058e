# SPDX-License-Identifier: GPL-2.0-or-later
"""Trials of capacity: the sink must stay silent, and its counts of the flood are kept by class."""

import contextlib
from types import SimpleNamespace

import pytest

from fwlab.dut.protocol import Collected
from fwlab.generator.protocol import PlaybackResult
from fwlab.generator.sink import Sink
from fwlab.judge.checks import judge_exercise
from fwlab.measure.measurer import Measurer
from fwlab.metrics import capacity
from fwlab.metrics.capacity import MAX_REPLIED
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Trials
from fwlab.model.declared_traffic import Connections
from fwlab.model.results import Measured
from fwlab.model.trial import Delivery, Trial
from fwlab.model.verdict import Outcome
from tests.checkout import lab_named
from tests.fakes.factories import a_run, attempt

TAKEN = 10_000
FULL = Trial(duration_s=1, busy_s=1, processed=9)
TASK = MeasurementSpec("x", "x", "x", [], ["capacity"], traffic="flood", trial=Trials(count=1))


class World:
    """The DUT takes TAKEN packets per play. The sink sends back `always`, and `answers` unless it drops everything."""

    def __init__(self, answers: int = 0, always: int = 0) -> None:
        self.answers, self.always = answers, always
        self.came, self.back, self.done = 3, 5, []

    def received(self) -> list[tuple[int, int]]:
        return [(self.came, 100 * self.came), (self.back, 100 * self.back)]

    def absorb_all(self, _classes: dict) -> None:
        self.done.append("take all")

    def start(self) -> SimpleNamespace:
        self.done.append("play")
        self.came += TAKEN
        self.back += self.always + ("take all" not in self.done) * self.answers
        return SimpleNamespace(stop=lambda: PlaybackResult(TAKEN, 1.0))

    def nodes(self) -> Nodes:
        dut = SimpleNamespace(
            received=self.received,
            arm=lambda **_: None,
            collect=lambda timeout: Collected([FULL], [], [], {}),
            reset=lambda next_ruleset: [],
        )
        engine = SimpleNamespace(start=self.start, use=lambda *_: None)
        tables = SimpleNamespace(plays_packets=lambda _: True, of_play=lambda *_: tables, flows=lambda _: {})
        sink = SimpleNamespace(absorb_all=self.absorb_all, set_flows=lambda _flows: None)
        return Nodes(dut, engine, sink, tables, {}, lambda _step: contextlib.nullcontext(), levels=1)


def overload(nodes: Nodes, spec: MeasurementSpec = TASK) -> Measured:
    blank = Measured(id="x", title="x", ruleset="x", ruleset_hash="")
    return capacity.measure(MeasuringSession(nodes), spec, blank)


@pytest.mark.parametrize(
    ("always", "problems"),
    [
        (0, []),
        (int(MAX_REPLIED * TAKEN), []),
        (37, ["the sink replied with 37 packets; it must stay silent"]),
    ],
)
def test_replies_of_the_sink_are_a_problem(always: int, problems: list[str]) -> None:
    world = World(always=always)
    nodes = world.nodes()
    found = overload(nodes)
    assert (found.problems, found.trials) == (problems, [FULL])
    world.always = 0
    assert overload(nodes).problems == [], "the next case counts its own packets"


def test_the_sink_absorbs_everything_before_traffic_starts() -> None:
    world = World(answers=TAKEN)
    found = Measurer(world.nodes()).measure(TASK)
    assert world.done == ["take all", "play"]
    assert (found.problems, found.trials) == ([], [FULL])


def test_the_sink_is_set_up_once_and_again_after_connections() -> None:
    told = []
    sink = Sink(SimpleNamespace(run=lambda command, data: told.append(data)), "eth0")
    web = Connections()
    for _ in range(2):
        sink.absorb_all({})
    assert len(told) == 1
    assert b"accept\n" not in told[0]
    sink.load_counters({}, web)
    sink.absorb_all({})
    sink.absorb_all({})
    assert (len(told), told[2]) == (3, told[0])
    assert f"tcp dport {web.port} accept".encode() in told[1]


def test_arrivals_in_the_flood_are_counted_by_class() -> None:
    """If the exercise asks for the delivered share, it must be the same in the flood."""
    world = World()
    nodes = world.nodes()
    nodes.dut.drain = lambda: None
    nodes.dut.counters = lambda: {"eth0.rx_packets": world.came, "eth1.tx_packets": world.came // 4}
    nodes.sink.load_counters = lambda _classes: world.done.append("count from now")
    waited: list[int] = []
    nodes.sink.settled_counts = lambda all_of: waited.append(all_of) or {"legitimate": 2400}
    nodes.store.offered = lambda _traffic, sent: {"legitimate": sent // 4}
    nodes.store.dispersion = lambda _traffic: {"legitimate": 4.2}
    task = MeasurementSpec("x", "x", "x", [], ["capacity", "delivered"], traffic="flood", trial=Trials(count=1))
    found = overload(nodes, task)
    assert world.done == ["count from now", "play"]
    assert (found.flood.sent, found.flood.taken, found.flood.arrived) == (TAKEN, TAKEN, {"legitimate": 2400})
    assert waited == [found.flood.sent_on]
    assert found.flood.dispersion == {"legitimate": 4.2}
    assert found.flood.passed("legitimate") == pytest.approx(1.0, abs=0.05)


def test_a_download_that_is_dropped_in_part_fails_at_the_right_capacity() -> None:
    """A mean of dropped and expensive packets can have any capacity."""
    exercise = lab_named("lab01-forwarding").exercise("ex5-download")
    offered = {"download": 960, "listed": 60, "bystanders": 30, "others": 30}
    arrived = {"download": 640, "bystanders": 30, "others": 30}
    play = Delivery(intended_load=1000, sent=1080, offered=offered, arrived=arrived)
    measured = attempt(*3 * [150_000], deliveries=[play], also=["delivered"])
    verdicts = judge_exercise(exercise, measured, a_run([]), METRICS)
    assert [verdict.check for verdict in verdicts if verdict.outcome is not Outcome.PASS] == ["delivered-download"]
