# SPDX-License-Identifier: GPL-2.0-or-later
"""Latency on simulated nodes: which loads the probes are sent beside, what is kept, and why there may be no figure."""

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fwlab.generator.echo import Echoes, EchoProbes, parse_ping
from fwlab.generator.pacing.paced_load import Load
from fwlab.judge.verdicts import doubts
from fwlab.measure.measurer import Measurer
from fwlab.metrics import delivery, latency, offered_load, plays
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.benchmarks import LatencyTrial
from fwlab.model.case import Trials
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured
from fwlab.model.trial import PacedPlay
from fwlab.report.files import RENDERERS
from fwlab.report.model import build_model
from fwlab.report.renderers.terminal import plain_text
from tests.fakes.factories import a_lab, a_run, real
from tests.unit.metrics import test_throughput
from tests.unit.metrics.test_throughput import Lab, Paced

SPEC = MeasurementSpec("x", "X", "x", [], ["latency"], traffic="flood", trial=Trials(count=1))
REPORT = """PING 198.19.0.2 (198.19.0.2) 56(84) bytes of data.
64 bytes from 198.19.0.2: icmp_seq=1 ttl=63 time=0.412 ms
64 bytes from 198.19.0.2: icmp_seq=2 ttl=63 time=11.3 ms
64 bytes from 198.19.0.2: icmp_seq=2 ttl=63 time=12.9 ms (DUP!)
64 bytes from 198.19.0.2: icmp_seq=4 ttl=63 time=204 ms

--- 198.19.0.2 ping statistics ---
4 packets transmitted, 3 received, +1 duplicates, 25% packet loss, time 3003ms
rtt min/avg/max/mdev = 0.412/57.153/204.000/84.914 ms
"""


class Probed(Lab):
    """A lab whose probes take 1 ms, and 1 ms more for each tenth of the DUT's capacity that is played beside them."""

    def __init__(self, capacity: float, *, answers: bool = True) -> None:
        super().__init__(capacity)
        self.answers = answers
        self.answers_echo = False
        self.playing: float | None = None
        self.beside: list[float] = []

    def start(self, *, load: float | None = None, count: int | None = None) -> SimpleNamespace:
        if load is None or count is not None:
            return super().start(load=load, count=count)
        self.playing = load
        self._through(1000, 0.1)
        started, before = super().start(load=load), self.slept

        def ended(timeout: float = 60) -> object:
            self.playing = None
            self._through(round(load * (self.slept - before)), self.slept - before)
            return SimpleNamespace(sent=load, duration_s=1.0, rate=load, limited=None)

        return SimpleNamespace(stop=ended, wait=ended, abandon=started.abandon)

    def load_counters(self, _classes: object, *, echo: bool = False) -> None:
        super().load_counters(_classes)
        self.answers_echo = echo

    def echo(self, count: int, interval_s: float) -> Echoes:
        load = self.playing or 0.0
        self.beside.append(load)
        self.slept += count * interval_s
        took = 1e-3 * (1 + 10 * load / self.capacity)
        answered = count if self.answers and self.answers_echo else 0
        return Echoes(count, [took * (1 + number / count) for number in range(answered)])


def measure(lab: Probed, monkeypatch: pytest.MonkeyPatch, clock: str = "host") -> Measured:
    for module in (delivery, plays):
        monkeypatch.setattr(module, "SETTLED_S", 0)
    monkeypatch.setattr(offered_load, "time", SimpleNamespace(sleep=lab.sleep))
    return Measurer(replace(lab.nodes(clock), echo=lab.echo)).measure(SPEC)


def test_the_probes_are_sent_without_a_load_and_beside_shares_of_pdr(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Probed(40_000)
    found = measure(lab, monkeypatch)
    assert found.problems == []
    pdr = found.benchmarks.searches[0].goal(0.005).lower
    assert lab.beside == [pytest.approx(share * pdr) for share in (0, 0.1, 0.5, 0.9)]
    trials = found.benchmarks.latency
    assert [trial.of_pdr for trial in trials] == [0, 0.1, 0.5, 0.9]
    assert [len(trial.round_trips_s) for trial in trials] == [latency.PROBES] * 4
    assert [trial.percentile(0) * 1e3 for trial in trials] == [pytest.approx(at, rel=0.02) for at in (1, 2, 6, 10)]
    assert METRICS["latency"].values(found, real()) == [trials[2].percentile(50)]
    assert doubts(found, METRICS["latency"], a_run([], testbed=real())) == []


class Timed(Paced):
    """Frames take 1 ms of the DUT's clock, and 1 ms more for each tenth of its capacity."""

    def play(self, _store: object, _traffic: str, load: Load, **then: Callable[[], None]) -> PacedPlay:
        play = super().play(_store, _traffic, load, **then)
        times = [1e-3 * (1 + 10 * load.pps / self.capacity)] * 3 if load.timed else []
        return play.model_copy(update={"transit_s": times})


def test_in_the_duts_own_time_the_frames_themselves_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the reference CPU, which is four times as fast as the DUT's clock."""
    found = test_throughput.measure(Timed(10_000), monkeypatch, "instructions", SPEC)
    pdr, trials = found.benchmarks.searches[0].goal(0.005).lower, found.benchmarks.latency
    assert [one.offered_load for one in trials] == [latency.MIN_PPS, *(share * pdr for share in (0.1, 0.5, 0.9))]
    for one in trials:
        assert one.round_trips_s == [pytest.approx(1e-3 * (1 + 10 * one.offered_load / 40_000) / 4)] * 3


@pytest.mark.parametrize(
    ("lab", "reason"),
    [
        (Probed(40_000, answers=False), "no probe was answered: the ruleset drops ICMP echo"),
        (Probed(0), "960 of 960 packets were lost on their way to the DUT"),
    ],
    ids=["probes are dropped", "forwards nothing"],
)
def test_why_there_is_no_latency(lab: Probed, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = measure(lab, monkeypatch)
    assert METRICS["latency"].values(found, real()) == []
    assert any(reason in problem for problem in found.problems), found.problems


def test_shares_of_a_doubtful_throughput_are_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """This DUT carries all that the generator can send."""
    found = measure(Probed(200_000), monkeypatch)
    [doubt] = doubts(found, METRICS["latency"], a_run([], testbed=real()))
    assert doubt.startswith("the loads are shares of a doubtful throughput: PDR: the DUT forwards 95,000 pps")


@pytest.mark.parametrize(
    ("times", "percentile", "expected"),
    [
        ([3.0, 1.0, 2.0, 4.0], 0, 1.0),
        ([3.0, 1.0, 2.0, 4.0], 75, 3.0),
        ([3.0, 1.0, 2.0, 4.0], 76, 4.0),
        ([5.0], 100, 5.0),
        ([], 50, None),
    ],
)
def test_a_percentile_is_a_time_that_was_measured(
    times: list[float], percentile: float, expected: float | None
) -> None:
    trial = LatencyTrial(of_pdr=0.1, offered_load=1.0, probes=5, round_trips_s=times)
    assert trial.percentile(percentile) == expected
    assert trial.unanswered == 5 - len(times)


@pytest.mark.parametrize("said", ["", "ping: connect: Network is unreachable\n"])
def test_what_is_no_report_of_ping_is_an_error(said: str) -> None:
    with pytest.raises(CannotMeasure, match="ping printed no result but"):
        parse_ping(said)


def test_probes_go_to_the_sink_and_duplicates_and_lost_ones_are_no_error() -> None:
    asked: list[str] = []
    ssh = SimpleNamespace(run=lambda command, timeout: asked.append(command) or REPORT)
    echoes = EchoProbes(ssh, "198.19.0.2").send(4, 0.01)
    assert (echoes.sent, echoes.round_trips_s) == (4, pytest.approx([0.000412, 0.0113, 0.204]))
    [command] = asked
    assert "ping -n -c 4 -i 0.01 -W 1 198.19.0.2 || [ $? -eq 1 ]" in command


def test_reports_show_a_row_for_each_load(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model(a_lab(), a_run([measure(Probed(40_000), monkeypatch)], testbed=real()))
    text = plain_text(model)
    assert "Latency, x" in text
    rows = text[text.index("Latency, x") :].splitlines()[2:6]
    assert [row.strip().split("  ")[0] for row in rows] == ["none", "10 % of PDR", "50 % of PDR", "90 % of PDR"]
    assert re.search(r" 1\.000 +1\.49\d +1\.8\d+ +1\.9\d+ +1\.9\d+ +0 %$", rows[0])
    assert "median latency at 50 % of PDR" in text
    assert "<h2>Latency, <code" in RENDERERS["html"].render(model)
