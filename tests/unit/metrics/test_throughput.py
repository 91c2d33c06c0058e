# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput, FRMOL and frame loss on nodes that are simulated: counts and doubts, by both clocks."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.dut.protocol import Drained
from fwlab.generator.pacing.paced_load import Load
from fwlab.generator.protocol import PlaybackResult
from fwlab.judge.verdicts import all_doubts, doubts
from fwlab.measure.measurer import Measurer
from fwlab.measure.plan import with_metrics
from fwlab.measure.session import Session
from fwlab.metrics import delivery, offered_load, plays
from fwlab.metrics.measurement import MeasurementSpec, Nodes
from fwlab.metrics.registry import METRICS
from fwlab.model.benchmarks import TrialResult
from fwlab.model.case import Trials
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.events import BoundsNarrowed
from fwlab.model.results import Measured
from fwlab.model.trial import PacedPlay, PacedTrial, Trial
from fwlab.report.files import RENDERERS
from fwlab.report.model import build_model
from fwlab.report.renderers.terminal import plain_text
from tests.fakes.factories import a_lab, a_run, measured, real

SPEC = MeasurementSpec("x", "X", "x", [], ["throughput", "pdr", "frame_loss"], traffic="flood", trial=Trials(count=1))


class Lab:
    """Three nodes. The DUT takes `capacity` packets per second and drops a class by rule.

    Time passes only in `sleep`, so a playback flat out lasts as long as the caller slept.
    """

    def __init__(self, capacity: float, ceiling: float = 100_000.0, blocked: str = "", leaky: float = 0.0) -> None:
        self.capacity, self.ceiling, self.blocked, self.leaky = capacity, ceiling, blocked, leaky
        self.counts = {"eth1.rx_packets": 7, "eth1.tx_packets": 0, "eth2.tx_packets": 0}
        self.arrived: dict[str, int] = {}
        self.told: list[object] = []
        self.slept = 0.0

    # ---- generator
    def use(self, *_: object) -> None:
        """The traffic is always the same."""

    def start(self, *, load: float | None = None, count: int | None = None) -> SimpleNamespace:
        before = self.slept

        def ended(timeout: float = 60) -> PlaybackResult:
            seconds = self.slept - before if count is None else count / min(load, self.ceiling)
            sent = round(self.ceiling * seconds) if count is None else count
            self._through(sent, seconds)
            return PlaybackResult(sent, seconds, load)

        return SimpleNamespace(stop=ended, wait=ended, abandon=ended)

    def _through(self, sent: int, seconds: float) -> None:
        taken = min(sent, max(1000, int(self.capacity * seconds)) if self.capacity else 0)
        self.counts["eth1.rx_packets"] += taken
        for name, count in self.offered("flood", taken).items():
            passed = 0 if name == self.blocked else count - round(count * self.leaky)
            self.arrived[name] = self.arrived.get(name, 0) + passed
            self.counts["eth2.tx_packets"] += passed

    # ---- traffic
    def plays_packets(self, _traffic: str) -> bool:
        return True

    def of_play(self, _traffic: str, _play: int, _first: int | None) -> Lab:
        return self

    def flows(self, _traffic: str) -> dict[str, list[object]]:
        return {}

    def nat(self, _traffic: str) -> None:
        return None

    def offered(self, _traffic: str, sent: int) -> dict[str, int]:
        return {"attacker": sent - sent // 4, "others": sent // 4}

    # ---- DUT and sink
    def reset(self, next_ruleset: object = None) -> list[str]:
        return []

    def load(self, *_: object, **__: object) -> list[list[float]]:
        return [[0.1]]

    def counters(self) -> dict[str, int]:
        return dict(self.counts)

    def drain(self) -> Drained:
        return Drained(dict(self.counts), 0)

    def set_flows(self, _flows: object) -> None:
        """Classes need none."""

    def absorb_all(self, _classes: object) -> None:
        """Nothing is sent back."""

    def load_counters(self, _classes: object) -> None:
        self.arrived = {}

    def settled_counts(self, all_of: int | None = None) -> dict[str, int]:
        return dict(self.arrived)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def nodes(self, clock: str = "host") -> Nodes:
        classes = a_lab().classes
        return Nodes(
            self, self, self, self, classes, lambda _level: nullcontext(), 1, clock=clock, emit=self.told.append
        )


def measure(lab: Lab, monkeypatch: pytest.MonkeyPatch, clock: str = "host", spec: MeasurementSpec = SPEC) -> Measured:
    for module in (delivery, plays):
        monkeypatch.setattr(module, "SETTLED_S", 0)
    monkeypatch.setattr(offered_load, "time", SimpleNamespace(sleep=lab.sleep))
    return Measurer(lab.nodes(clock)).measure(spec)


def figures(found: Measured, name: str) -> list[float]:
    return METRICS[name].values(found, real())


@pytest.mark.parametrize("blocked", ["", "attacker"])
def test_a_router_that_is_the_limit(blocked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rule drops is not lost."""
    lab = Lab(40_000, blocked=blocked)
    found = measure(lab, monkeypatch)
    assert found.problems == []
    assert figures(found, "throughput") == [pytest.approx(40_000, rel=0.011)]
    assert figures(found, "pdr") == [pytest.approx(40_000, rel=0.011)]
    assert figures(found, "frame_loss") == [pytest.approx(0.6, abs=0.001)] * offered_load.FLAT_OUT_TRIALS
    assert all_doubts(found, a_run([], testbed=real()), METRICS) == []
    told = [event for event in lab.told if isinstance(event, BoundsNarrowed)]
    assert len(told) == len(found.benchmarks.searches[0].trials)
    assert "NDR not known yet" in str(told[0])
    assert "NDR from" in str(told[-1])


def test_a_dut_that_drops_everything_by_rule_is_counted_where_it_takes_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(40_000, blocked="attacker")
    monkeypatch.setattr(lab, "offered", lambda _traffic, sent: {"attacker": sent})
    assert figures(measure(lab, monkeypatch), "throughput") == [pytest.approx(40_000, rel=0.011)]


def test_the_curve_goes_down_to_two_trials_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = measure(Lab(55_000), monkeypatch).benchmarks.curve
    assert [round(trial.intended_load) for trial in curve] == [90_000, 80_000, 70_000, 60_000, 50_000, 40_000]
    assert [round(trial.loss_ratio, 2) for trial in curve] == [0.39, 0.31, 0.21, 0.08, 0, 0]


class Tired(Lab):
    """Its generator keeps no load that is near to what it sends flat out."""

    def start(self, *, load: float | None = None, count: int | None = None) -> SimpleNamespace:
        self.ceiling = 100_000 if load is None else 60_000
        return super().start(load=load, count=count)


@pytest.mark.parametrize(
    ("lab", "doubt"),
    [
        (Tired(80_000), "NDR: at 61,081 pps the generator fell short"),
        (Lab(200_000), "NDR: the DUT forwards 95,000 pps, the highest load that the generator can keep"),
        (Lab(40_000, ceiling=150), "142 pps is the highest load, too little to search for a rate"),
        (Lab(0), "960 of 960 packets were lost on their way to the DUT"),
        (
            Lab(40_000, leaky=0.3),
            "the ruleset lets 70.0% of attacker through at a light load: what is lost is not known",
        ),
    ],
    ids=["short of a load", "faster than the generator", "weak generator", "forwards nothing", "drops at random"],
)
def test_why_there_is_no_figure(lab: Lab, doubt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = measure(lab, monkeypatch)
    said = doubts(found, METRICS["throughput"], a_run([], testbed=real()))
    assert any(one.startswith(doubt) for one in said), said


class Paced(Lab):
    """The same three nodes, on a clock that counts instructions; `capacity` is by that clock."""

    def play(self, _store: object, _traffic: str, load: Load, *, until_done: Callable[[], None]) -> PacedPlay:
        sent = load.frames
        taken = min(sent, int(self.capacity * load.ticks / 1000))
        self.counts["eth1.rx_packets"] += taken
        trial_s = load.trial_s
        offered = self.offered("flood", round(load.pps * trial_s))
        share = min(1.0, self.capacity / load.pps)
        self.busy = min(1.0, load.pps / self.capacity)
        self.processed = round(share * load.pps * trial_s)
        in_the_ring = 30 if load.tail_s and share == 1 else 0  # of each class, at the end of a trial
        left = {
            name: 0 if name == self.blocked else int(share * count) - in_the_ring for name, count in offered.items()
        }
        for name, count in left.items():
            self.arrived[name] = self.arrived.get(name, 0) + count
            self.counts["eth2.tx_packets"] += count
        until_done()
        trial = PacedTrial(duration_s=trial_s, offered=offered, forwarded=left)
        return PacedPlay(
            load=load.pps, tick_s=0.001, offered=sent, received=sent, forwarded=left, returned={}, trials=[trial]
        )

    def never_idle(self) -> nullcontext[None]:
        return nullcontext()

    def arm(self, **terms: float) -> None:
        self.seconds = terms["window_s"]

    def collect(self, timeout: float) -> SimpleNamespace:
        seen = Trial(duration_s=self.seconds, busy_s=self.busy * self.seconds, processed=self.processed)
        return SimpleNamespace(valid=[seen])

    def nodes(self, clock: str = "instructions") -> Nodes:
        return dataclasses.replace(super().nodes(clock), ns_per_instruction=4, pacing=self)


@pytest.mark.parametrize("blocked", ["", "attacker"])
def test_in_the_duts_own_time_rates_are_those_of_the_reference_cpu(
    blocked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measure(Paced(10_000, blocked=blocked), monkeypatch, clock="instructions")
    assert found.problems == []
    # What is left undone at the end of a trial is lost, if it is more than a tick's packets and 0.2 %.
    assert figures(found, "throughput") == [pytest.approx(40_000, rel=0.004)]
    assert figures(found, "pdr") == [pytest.approx(40_000, rel=0.006)]
    assert [round(trial.loss_ratio, 2) for trial in found.benchmarks.curve] == [0.44, 0.38, 0.29, 0.17, 0, 0]
    assert all_doubts(found, a_run([]), METRICS) == []


def test_links_that_cannot_be_paced_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotMeasure, match="needs the virtual testbed, socket links and a DUT that runs Linux"):
        measure(Lab(40_000), monkeypatch, clock="instructions")


def test_a_nic_that_stalls_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, drops = Paced(10_000), itertools.count(0, 7)
    monkeypatch.setattr(lab, "drain", lambda: Drained(dict(lab.counts), next(drops)))
    done = plays.play_paced(lab.nodes(), "flood", Load.of_count(960, 4000.0))
    assert done.problems == done.suspects == ["the DUT's NIC stalled: 7 packets found no room in its queue"]


def test_beside_another_metric_throughput_does_not_make_it_doubtful_on_the_virtual_testbed() -> None:
    found = measured(a_lab(), "raw-drop", 300_000, also=["throughput"])
    assert all_doubts(found, a_run([]), METRICS) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("misses", "unknown metric misses"),
        ("connections", "rules-16 plays packets, connections needs connections"),
        ("survival", "survival needs victim_class"),
    ],
)
def test_a_metric_that_cannot_be_measured_is_refused(name: str, message: str) -> None:
    lab = a_lab()
    with pytest.raises(BadInput, match=message):
        with_metrics(SimpleNamespace(lab=lab), lab.cases["rules-16"], [name])


def test_metrics_are_added_to_a_case_once() -> None:
    context = SimpleNamespace(lab=a_lab())
    case = with_metrics(context, context.lab.cases["rules-16"], ["load_time", "throughput"])
    assert case.also == ["load_time", "throughput"]


def test_a_case_about_a_metric_of_another_clock_alone_is_left_out() -> None:
    told: list[object] = []
    session = Session(None, None, None, a_run([], testbed=real()), Path(), told.append)
    modelled = MeasurementSpec("x", "X", "x", [], ["model_cycles"], traffic="flood")
    capacity = MeasurementSpec("y", "Y", "y", [], ["capacity", "model_cycles"], traffic="flood")
    assert session.measurable([modelled, capacity]) == [capacity]
    [event] = told
    assert event.item == "x"
    session.context = SimpleNamespace(machines_lab=a_lab())
    with pytest.raises(CannotMeasure, match="model_cycles needs a DUT"):
        session.require(["capacity", "model_cycles"])
    session.require(["capacity", "throughput"])


def trial(**fields: object) -> TrialResult:
    known = {"intended_duration": 1.0, "intended_load": 1000.0, "sent": 1000, "duration_s": 1.0}
    return TrialResult(**{**known, "taken": 1000, "passable": 1000, "arrived": 1000, **fields})


@pytest.mark.parametrize(
    ("fields", "lost", "ratio"),
    [
        ({}, 0, 0.0),
        ({"arrived": 999}, 1, 0.001),
        ({"taken": 1002, "arrived": 1001}, 0, 0.0),
        ({"passable": 250, "arrived": 249}, 4, 0.004),
        ({"passable": 0, "arrived": 0, "taken": 990}, 10, 0.01),
        ({"sent": 900, "taken": 900, "passable": 900, "arrived": 900}, 0, 0.1),
        ({"duration_s": 2.0}, 0, 0.5),
        ({"duration_s": 1.005}, 0, 0.0),
        ({"intended_load": None, "sent": 5000, "taken": 1000, "passable": 5000}, 4000, 0.8),
    ],
    ids=["all", "one", "own packets", "of a class", "dropped", "unsent", "late", "a little late", "flat out"],
)
def test_loss_counts_what_was_not_sent_in_time(fields: dict[str, float], lost: int, ratio: float) -> None:
    found = trial(**fields)
    assert (found.lost, found.loss_ratio) == (lost, pytest.approx(ratio))


def test_frmol_is_what_is_forwarded_by_the_clock() -> None:
    flood = [Trial(duration_s=2, busy_s=1, processed=900, forwarded=600)]
    found = measured(a_lab(), "raw-drop", trials=flood)
    assert METRICS["frmol"].values(found, real()) == [300.0]


def test_reports_show_the_curve_and_mark_a_figure_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    curved = measure(Lab(55_000), monkeypatch).model_copy(update={"metric": "throughput", "also": ["frame_loss"]})
    limited = measure(Lab(200_000), monkeypatch).model_copy(update={"id": "y", "metric": "throughput"})
    model = build_model(a_lab(), a_run([curved, limited], testbed=real()))
    text = plain_text(model)
    assert "Frame loss, x" in text
    assert re.search(r"flat out +100\.0 +45\.0 %", text)
    assert re.search(r"80\.00 +80\.00 +31\.2 %", text)
    assert "y: NDR: the DUT forwards 95,000 pps" in text
    page = RENDERERS["html"].render(model)
    assert '<td class="n">31.2 %</td>' in page
    assert json.loads(RENDERERS["json"].render(model))["cases"][1]["verdict"] == "inconclusive"
