# SPDX-License-Identifier: GPL-2.0-or-later
"""An engine that cannot reach the intended load: the trial reports it, for every engine."""

from __future__ import annotations

import json
import subprocess
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.generator.protocol import PlaybackResult
from fwlab.generator.replay import Replay, ReplayPlayback
from fwlab.metrics.delivery import deliver
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes
from fwlab.model.errors import BadInput
from tests.fakes.factories import a_lab, attempt


class Engine:
    """An engine that sends at `share` of the load; and the DUT, which receives everything and forwards nothing."""

    def __init__(self, share: float) -> None:
        self.share, self.sent = share, 0

    def drain(self) -> None:
        """The ring is empty."""

    def counters(self) -> dict[str, int]:
        return {"eth1.rx_packets": self.sent, "eth2.tx_packets": 0}

    def start(self, *, load: float | None = None, count: int | None = None) -> Any:
        self.sent += count or 0
        played = PlaybackResult(count or 0, (count or 0) / ((load or 1) * self.share), load)
        return SimpleNamespace(stop=lambda: played, wait=lambda timeout: played, abandon=lambda: None)


def delivered_by(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("fwlab.metrics.delivery.real_rate", lambda nodes: 4000.0)
    monkeypatch.setattr("fwlab.metrics.delivery.SETTLED_S", 0)
    monkeypatch.setattr("fwlab.metrics.plays.SETTLED_S", 0)
    tables = SimpleNamespace(offered=lambda traffic, sent: {"attacker": sent})
    sink = SimpleNamespace(load_counters=lambda classes: None, settled_counts=lambda _all_of: {"attacker": 0})
    nodes = Nodes(engine, engine, sink, tables, a_lab().classes, lambda step: nullcontext(), 1)
    task = MeasurementSpec(id="x", title="X", ruleset="x", files=[], metrics=["delivered"], traffic="flood")
    return deliver(MeasuringSession(nodes), task, attempt()).problems


def test_a_trial_above_the_ceiling_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    [problem] = delivered_by(Engine(0.5), monkeypatch)
    assert problem == "generator limited: asked for 67 pps, it sent 33", "the lightest load that is tried"


def test_a_trial_at_its_load_has_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert delivered_by(Engine(1.0), monkeypatch) == []


def test_the_replay_engine_reports_it_too() -> None:
    report = json.dumps({"sent": 5000, "attempted": 5100, "duration_s": 10.0})
    process = subprocess.Popen(
        ["sh", "-c", f"read -r _; echo '{report}'"], stdin=-1, stdout=-1, stderr=-1, start_new_session=True
    )
    played = ReplayPlayback(SimpleNamespace(), process, 1000).stop()
    assert played.limited == "generator limited: asked for 1,000 pps, it sent 500"


@pytest.mark.parametrize("load", [0, -5, float("nan"), float("inf")])
def test_an_invalid_load_starts_nothing(load: float) -> None:
    engine = Replay(SimpleNamespace(), "eth0")  # a node that anything would fail on
    with pytest.raises(BadInput, match="sends nothing") as caught:
        engine.start(load=load)
    assert caught.value.hint
