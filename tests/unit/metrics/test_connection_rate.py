# SPDX-License-Identifier: GPL-2.0-or-later
"""Measuring connections per second: valid trials, the comparison of counts, and background traffic."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.dut.protocol import Window
from fwlab.metrics import connection_rate
from fwlab.metrics.connection_rate import MIN_PACKETS
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes
from fwlab.model.case import Trials
from fwlab.model.declared_traffic import Connections, Traffic
from fwlab.model.errors import CannotMeasure, DeadlineExceeded, Hindered
from fwlab.model.results import Measured
from fwlab.model.trial import Clients, Delivery
from fwlab.testbed.kinds.virtual import CLOSED_LOOP, OPEN_LOOP

WEB = Connections(clients="198.18.32.0/29", servers="198.19.32.0/30", port=8080, object_bytes=100, concurrent=16)
FLOODED = Traffic(connections={"background": "flood", "background_pps": 100, "concurrent": 16}).connections


def counted(**changed: Any) -> Clients:
    usual = {"opened": 5016, "completed": 5000, "failed": 0, "retransmitted": 0, "concurrent": 16, "duration_s": 10}
    return Clients(**{"program": "wrk", **usual, **changed})


FLOWS = {"flood": [("198.18.0.1", 9)]}


class Testbed:
    """A DUT that is saturated from throttle level `enough` on, with generator and sink."""

    __test__ = False

    def __init__(
        self, enough: int = 0, seen: float = 5000, clients: Clients | None = None, limited: str | None = None
    ) -> None:
        self.enough, self.seen, self.clients, self.limited = enough, seen, clients or counted(), limited
        self.step, self.armed, self.rates, self.crossed, self.flood = 0, [], [], 0, 0
        self.loads: list[float] = []
        self.closed = self.arrived = 0
        self.flows: object = None

    # the DUT: six packets from the clients and four from the servers for each connection, headers and answers
    def received(self) -> list[tuple[int, int]]:
        packets = int(4 * self.seen) * self.crossed
        return [
            ((30_000 + self.flood) * self.crossed, 0),
            (packets, round(packets * 66 + self.seen * self.crossed * 268)),
        ]

    def arm(self, **asked: Any) -> None:
        self.armed.append(asked)

    def collect_by_link(self, timeout: float) -> tuple[list[Window], ...]:
        self.crossed += 1
        window, idle = Window(2.0, 2.0, [6_000, 4_000]), Window(2.0, 1.8, [6_000, 4_000])
        return ([window] * self.armed[-1]["windows"], [], []) if self.step >= self.enough else ([], [idle], [])

    # both ends of connections
    def connect(self) -> None:
        pass

    def flat_out(self) -> Testbed:
        return self

    def stop(self, *_: Any) -> Clients:
        return self.clients

    def at_rate(self, rate: float, count: int) -> Clients:
        self.rates.append((rate, count))
        return counted(intended_load=rate)

    # background traffic, and the sink that counts it
    def close(self) -> None:
        self.closed += 1

    def use(self, _tables: Any, traffic: str) -> None:
        assert traffic == "flood"

    def start(self, *, load: float) -> Any:
        self.loads.append(load)
        return SimpleNamespace(stop=lambda: SimpleNamespace(sent=700, rate=99.0, limited=self.limited))

    def set_flows(self, flows: object) -> None:
        self.flows = flows

    def load_counters(self, _classes: Any, let_through: Connections) -> None:
        assert let_through is self.connections
        self.arrived = 650 if self.flows == FLOWS else 0

    def settled_counts(self) -> dict[str, int]:
        return {"flood": self.arrived}

    @contextlib.contextmanager
    def slowed(self, step: int, *, loop: bool) -> Iterator[None]:
        assert loop
        self.step = step
        yield

    def measure(self, connections: Connections, metrics: list[str]) -> Measured:
        self.connections, self.answer_bytes, self.loads, self.closed = connections, 260, [], 0
        tables: Any = SimpleNamespace(
            connections=lambda _name: connections, flows=lambda _traffic: FLOWS, offered=lambda *_: {"flood": 700}
        )
        bed: Any = self
        nodes = Nodes(bed, bed, bed, tables, {}, self.slowed, 3, tcp=lambda _connections: contextlib.nullcontext(bed))
        task = MeasurementSpec("plain", "", "plain", [], metrics, traffic="web", trial=Trials(count=5))
        found = Measured(id="plain", title="", ruleset="", ruleset_hash="")
        return connection_rate.measure(MeasuringSession(nodes), task, found)


@pytest.mark.parametrize("enough", [0, 2])
def test_the_dut_is_throttled_until_it_is_never_idle(enough: int) -> None:
    bed = Testbed(enough)
    found = bed.measure(WEB, ["connections"])
    assert (found.throttle_level, len(found.tcp), found.problems) == (enough, 5, [])
    assert len(bed.armed) == enough + 1
    assert bed.armed[0]["packets"] == MIN_PACKETS
    assert bed.rates == [], "nobody asked what was delivered"


FEW = "the clients completed 7 connections in 240 s; if that is few, a limit in the ruleset may be the cause"


def test_a_dut_that_waits_for_connections_is_a_problem_with_their_number() -> None:
    found = Testbed(enough=9, clients=counted(completed=7, duration_s=240)).measure(WEB, ["connections", "delivered"])
    assert "not saturated" in found.problems[0]
    assert found.problems[1:] == [FEW]


def test_a_dut_that_lets_no_connection_through_gets_no_trial() -> None:
    class Shut(Testbed):
        def connect(self) -> None:
            raise Hindered("no connection gets through", "fwlab hold")

    bed = Shut()
    with pytest.raises(Hindered):
        bed.measure(WEB, ["connections"])
    assert bed.armed == []


@pytest.mark.parametrize("answers", [True, False])
def test_a_measurement_that_takes_too_long_tells_how_many_connections_there_were(answers: bool) -> None:
    class Slow(Testbed):
        abandoned = 0

        def collect_by_link(self, timeout: float) -> tuple[list[Window], ...]:
            raise DeadlineExceeded("dut: the measurement took more than 240 s", "fwlab check")

        def stop(self, *_: Any) -> Clients:
            if not answers:
                raise CannotMeasure("generator: wrk does not stop")
            return super().stop()

        def abandon(self) -> None:
            self.abandoned += 1

    bed = Slow(clients=counted(completed=7, duration_s=240))
    with pytest.raises(DeadlineExceeded) as late:
        bed.measure(WEB, ["connections"])
    assert late.value.message == "dut: the measurement took more than 240 s" + f": {FEW}" * answers
    assert bed.abandoned == 1


@pytest.mark.parametrize(
    ("seen", "again", "agree"),
    [
        (5000, 0, True),
        (5110, 0, True),
        (4905, 0, True),
        (5120, 0, False),
        (4890, 0, False),
        # A flood makes the DUT lose acknowledgements: answers that are sent again cross it twice.
        (5210, 100, True),
        (5220, 100, False),
        (4890, 100, False),
    ],
)
def test_dut_and_clients_must_agree(seen: float, again: int, agree: bool) -> None:
    """Within two per cent, plus the 16 still open at the end, whose answers the clients may not have counted."""
    found = Testbed(seen=seen, clients=counted(retransmitted=again)).measure(WEB, ["connections"])
    assert (found.problems == []) == agree


@pytest.mark.parametrize(
    ("program", "background", "again", "doubtful"),
    [
        ("trex", None, 1003, False),
        ("trex", None, 1004, True),
        ("wrk", None, 100, False),
        ("wrk", None, 101, True),
        # A flood takes the room of acknowledgements: that does not mean a busy host.
        ("wrk", "flood", 2000, False),
        ("trex", "flood", 2000, True),
    ],
)
def test_many_retransmissions_are_inconclusive(
    program: str, background: str | None, again: int, doubtful: bool
) -> None:
    """The limit is a fifth of the 5016 opened for TRex, which waits half a second, and a fiftieth for the kernel."""
    bed = Testbed(clients=counted(program=program, retransmitted=again))
    problems = bed.measure(FLOODED if background else WEB, ["connections"]).problems
    said = f"{again} segments were retransmitted for 5016 connections: answers came too late"
    assert (said in problems) == doubtful


def test_delivered_is_measured_at_a_light_rate() -> None:
    bed = Testbed()
    found = bed.measure(WEB, ["connections", "delivered"])
    assert bed.rates == [(125.0, 500)], "a quarter of 5000 in 10 s, for 4 s"
    assert [clients.intended_load for clients in found.clients] == [None, 125.0]


def test_the_engine_leaves_the_nic_to_the_clients() -> None:
    bed = Testbed()
    bed.measure(WEB, ["connections"])
    assert (bed.closed, bed.loads) == (1, [])


def test_background_traffic_is_counted_separately() -> None:
    bed = Testbed()
    found = bed.measure(FLOODED, ["connections"])
    assert bed.loads == [100]
    assert not bed.closed
    assert found.deliveries == [Delivery(intended_load=100, sent=700, offered={"flood": 700}, arrived={"flood": 650})]
    assert found.clients[0].completed == 5000


def test_background_at_the_light_rate_only_does_not_run_in_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_rate, "WATCHED_S", 0.0)
    bed = Testbed()
    beside = {"background": "flood", "background_pps": 100, "background_flat_out": False}
    declared = Traffic(connections=beside).connections
    found = bed.measure(declared, ["connections"])
    assert bed.loads == []
    assert bed.closed == 1
    assert found.deliveries == []
    found = bed.measure(declared, ["connections", "delivered"])
    assert bed.loads == [100, 100], "at the light rate, and once more flat out"
    assert [delivery.arrived for delivery in found.deliveries] == 2 * [{"flood": 650}]
    assert found.tcp == Testbed().measure(WEB, ["connections"]).tcp


def test_a_background_rate_above_the_generators_limit_is_reported_once() -> None:
    short = "generator limited: asked for 100 pps, it sent 70"
    for metrics in (["connections"], ["connections", "delivered"]):
        problems = Testbed(limited=short).measure(FLOODED, metrics).problems
        assert problems == [f"alongside the connections: {short}"]
    assert Testbed(limited=short).measure(WEB, ["connections"]).problems == []


@pytest.mark.parametrize(
    ("seen", "flood", "connections"),
    [
        (5000, 0, 5008 / 5),  # 5016 begun and 5000 answered take 50 000 packets; a trial has a fifth of them
        (5200, 0, 5016 * 10_000 / (30_000 + 4 * 5200)),  # no more ended than began
        (5000, 70_000, 5008 / 5),  # only packets on the last link count: 4 000 of 20 000, again a fifth
    ],
    ids=["all packets", "answers that crossed twice", "beside a flood"],
)
def test_connections_of_a_trial_follow_from_its_packets(seen: float, flood: int, connections: float) -> None:
    bed = Testbed(seen=seen, clients=counted(retransmitted=100))
    bed.flood = flood
    trials = bed.measure(FLOODED if flood else WEB, ["connections"]).tcp
    assert {(trial.completed, trial.packets) for trial in trials} == {(round(connections, 2), 10_000)}


def test_a_closed_loop_has_as_many_throttle_levels_as_an_open_one() -> None:
    assert len(CLOSED_LOOP) == len(OPEN_LOOP)
    shares = [level.share for level in CLOSED_LOOP]
    assert shares == sorted(shares, reverse=True)
