# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets lost outside the firewall: the play is repeated at a smaller load, or the figure is in doubt."""

import itertools
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from fwlab.generator.protocol import PlaybackResult
from fwlab.metrics import delivery, plays
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured, Overload
from fwlab.model.trial import Delivery
from tests.fakes.factories import a_lab, attempt, testbed


class Way:
    """A generator, a DUT whose rules drop half, and a sink.

    Above `before` packets per second, one in ten is lost on the way to the DUT; above `behind`, one in ten on the way
    from it. The DUT sends `own` packets by itself. The generator sends at most `fastest` packets per second.
    """

    def __init__(self, before: float = 1e9, behind: float = 1e9, own: int = 0, fastest: float = 1e9) -> None:
        self.before, self.behind, self.own, self.fastest = before, behind, own, fastest
        self.loads: list[float] = []
        self.counts = {"eth1.rx_packets": 0, "eth1.tx_packets": 0, "eth2.tx_packets": 0}
        self.arrived = 0

    def start(self, *, load: float, count: int) -> SimpleNamespace:
        self.loads.append(load)
        taken = count if load <= self.before else count * 9 // 10
        sent_on = taken // 2
        self.counts["eth1.rx_packets"] += taken
        self.counts["eth2.tx_packets"] += sent_on + self.own
        self.arrived = sent_on if load <= self.behind else sent_on * 9 // 10
        return SimpleNamespace(wait=lambda timeout: PlaybackResult(count, count / min(load, self.fastest), load))

    def counters(self) -> dict[str, int]:
        return dict(self.counts)

    def drain(self) -> None:
        """The ring is empty."""

    def load_counters(self, classes: object) -> None:
        self.arrived = 0

    def settled_counts(self, all_of: int) -> dict[str, int]:
        return {"attacker": self.arrived}


def delivered(way: Way, monkeypatch: pytest.MonkeyPatch) -> Measured:
    monkeypatch.setattr(delivery, "real_rate", lambda nodes: 40_000.0)
    for module in (delivery, plays):
        monkeypatch.setattr(module, "SETTLED_S", 0)
    tables = SimpleNamespace(offered=lambda traffic, sent: {"attacker": sent}, nat=lambda traffic: None)
    nodes = Nodes(way, way, way, tables, a_lab().classes, lambda step: nullcontext(), 1)
    task = MeasurementSpec(id="x", title="X", ruleset="x", files=[], metrics=["delivered"], traffic="flood")
    return delivery.deliver(MeasuringSession(nodes), task, attempt())


def flooded(*, slowed: int = 0, taken: int | None = 31_024, pps: float | None = 50_000.0) -> Measured:
    flood = Delivery(intended_load=None, sent=100_000, offered={}, arrived={}, taken=taken)
    return attempt().plus(Overload(throttle_level=slowed, flood=flood, generator_sent=100_000, generator_pps=pps))


@pytest.mark.parametrize(
    ("flood", "pps"),
    [
        (flooded(), 15_000),  # 31 024 packets less a ring of 1024, in the two seconds of the flood
        (flooded(slowed=1), None),
        (flooded(taken=None), None),
        (flooded(taken=1200), None),
        (flooded(pps=None), None),
    ],
)
def test_a_flood_shows_what_the_dut_carries_unless_it_was_slowed_or_short(flood: Measured, pps: float | None) -> None:
    assert delivery.carried_in_flood(flood, 1024) == pps


@pytest.mark.parametrize("way", [Way(before=5000), Way(behind=5000), Way(fastest=5000)])
def test_after_losses_or_at_its_own_limit_the_generator_tries_a_smaller_load(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = delivered(way, monkeypatch)
    assert way.loads == [10_000, 4000]
    assert found.problems == []
    delivery = found.deliveries[-1]
    assert delivery.delivered("attacker") == 0.5, "what the rules drop is dropped"


class Leaky(Way):
    """Rules that drop nothing, and two packets in each play that do not reach the sink."""

    def start(self, *, load: float, count: int) -> SimpleNamespace:
        started = super().start(load=load, count=count)
        self.counts["eth2.tx_packets"] += count - count // 2
        self.arrived = count - 2
        return started


@pytest.mark.parametrize(
    ("way", "problems"),
    [
        (Way(before=1), ["267 of 2666 packets were lost on their way to the DUT"]),
        (Way(fastest=1), ["generator limited: asked for 667 pps, it sent 1"]),
        (Way(behind=1), ["134 of 1333 packets were lost between the DUT and the sink"]),
        (Way(own=2), []),
        # Two packets may be the DUT's own, but these were not, and a correct ruleset would fail.
        (Leaky(), ["2 of 2666 packets were lost between the DUT and the sink"]),
    ],
)
def test_losses_or_the_generators_limit_at_every_load_are_a_problem(
    way: Way, problems: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert delivered(way, monkeypatch).problems == problems


class Tardy(Way):
    """The last two packets that are sent on leave the DUT's ring and reach the sink one by one, after each look."""

    late = 2

    def start(self, *, load: float, count: int) -> SimpleNamespace:
        started = super().start(load=load, count=count)
        self.counts["eth2.tx_packets"] -= self.late
        self.arrived -= self.late
        return started

    def settled_counts(self, all_of: int) -> dict[str, int]:
        arrived = self.arrived
        if self.late:
            self.late -= 1
            self.counts["eth2.tx_packets"] += 1
            self.arrived += 1
        return {"attacker": arrived, "blocked": 0}


def test_packets_that_are_late_at_both_ends_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    way = Tardy()
    found = delivered(way, monkeypatch)
    assert found.problems == []
    assert found.deliveries[-1].delivered("attacker") == 0.5
    assert way.loads == [10_000], "nothing was lost, so the play is not repeated"


class Late:
    """An engine that starts late on a fake clock. After that the DUT receives `pace` packets per second."""

    def __init__(self, begins_s: float, pace: float) -> None:
        self.begins_s, self.pace, self.now, self.ended = begins_s, pace, 0.0, False

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def start(self) -> SimpleNamespace:
        return SimpleNamespace(stop=self.stop, abandon=self.stop)

    def stop(self, timeout: float = 60) -> None:
        self.ended = True

    def counters(self) -> dict[str, int]:
        bursts = max(0.0, self.now - self.begins_s) * self.pace // 64
        taken = 2 + int(bursts) * 64
        return {"eth1.rx_packets": taken, "eth2.tx_packets": 0}


def rate(late: Late, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(plays, "time", late)
    return plays.real_rate(Nodes(late, late, None, None, {}, lambda step: nullcontext(), 1))


@pytest.mark.parametrize("begins_s", [0, 0.4, 6])
@pytest.mark.parametrize(("pace", "off"), [(17_000, 0.01), (60, 0.25)])
def test_the_dut_rate_is_counted_from_the_first_packet_on(
    begins_s: float, pace: float, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late the packets arrive and however slow the ruleset is: one burst may outlast the observation."""
    late = Late(begins_s, pace)
    assert rate(late, monkeypatch) == pytest.approx(pace, rel=off)
    assert late.ended


@pytest.mark.parametrize(("begins_s", "pace"), [(1e9, 17_000), (0, 0)])
def test_an_engine_that_sends_nothing_is_named(begins_s: float, pace: float, monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(begins_s, pace)
    with pytest.raises(CannotMeasure, match="no packet reached the DUT"):
        rate(late, monkeypatch)
    assert late.ended


def test_a_dut_that_never_comes_to_rest_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = itertools.count(1)
    monkeypatch.setattr(plays, "link_counters", lambda _nodes: (next(taken), 0))
    for module in (delivery, plays):
        monkeypatch.setattr(module, "SETTLED_S", 0.05)
    assert plays._settled(SimpleNamespace(), (0, 0), 1)[0] > 1


def test_passed_is_the_share_of_all_classes_in_the_first_play() -> None:
    """Later plays have no fixed number of packets."""
    first = Delivery(intended_load=2000, sent=960, offered={"flows": 960}, arrived={"flows": 480, "other": 96})
    later = Delivery(intended_load=2000, sent=8191, offered={"flows": 8191}, arrived={"flows": 4000})
    assert METRICS["passed"].values(attempt(deliveries=[first, later]), testbed()) == [0.6]
    spec = MeasurementSpec("x", "X", "x", [], ["passed"], traffic="flood")
    assert METRICS["passed"].steps(spec, "packets", "host") == [delivery.BEFORE_FLOOD]
