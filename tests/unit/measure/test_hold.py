# SPDX-License-Identifier: GPL-2.0-or-later
"""A ruleset that is held: a light load, and a DUT in its start state afterwards, however the shell ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.measure import trickle as trickle_module
from fwlab.measure.measurer import Measurer
from fwlab.measure.session import Session
from fwlab.measure.trickle import MAX_PPS, light_load
from fwlab.metrics.measurement import MeasurementSpec, Nodes
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.events import Warned
from fwlab.rulesets.files import ruleset_file
from tests.fakes.factories import a_run
from tests.unit.measure.test_measured_again import Backup

CONTEXT: Any = SimpleNamespace(machines_lab=SimpleNamespace(id="lab10-cores"))
DROP = ruleset_file("drop.nft", "table ip f {\n}\n")


class Bench:
    """A generator, a DUT that takes `pace` packets per second of a fake clock, and a sink. `done`: what was asked.

    left     differences from the start state that the last reset finds
    refuses  the DUT's tool refuses the ruleset
    """

    def __init__(self, pace: float = 1e9, *, left: tuple[str, ...] = (), refuses: bool = False) -> None:
        self.pace, self.left, self.refuses = pace, list(left), refuses
        self.done: list[str] = []
        self.told: list[object] = []
        self.now, self.queued, self.taken, self.playing = 0.0, 0.0, 0.0, 0.0
        self.connections: Connections | None = None
        self.pieces = 0
        self.client_fails = False

    # the clock
    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        took = min(self.queued, self.pace * seconds)
        self.queued, self.taken = self.queued - took, self.taken + took + self.pieces

    # the DUT
    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def reset(self, next_ruleset: object = None) -> list[str]:
        self.done.append("reset")
        return self.left if "load" in self.done else []

    def load(self, files: list, *, each: bool = False, times: int = 1) -> list:
        if self.refuses:
            raise Refused("drop.nft: nft said: no", "correct the file")
        self.done.append("load")
        return [[0.0]]

    def must_admit_logins(self) -> None:
        """They are admitted."""

    def counters(self) -> dict[str, int]:
        self.sleep(0.01)  # an answer takes a while
        return {"eth0.rx_packets": int(self.taken), "eth1.tx_packets": 0}

    # the generator
    def use(self, _store: object, traffic: str) -> None:
        self.done.append(f"use {traffic}")

    def start(self, *, load: float, count: int | None = None) -> SimpleNamespace:
        self.queued += count or 0
        self.done.append("play" if count is None else "first packets")
        self.playing = load
        return SimpleNamespace(stop=self._stop, abandon=self._stop)

    def _stop(self) -> None:
        self.playing = 0.0

    def close(self) -> None:
        self.done.append("engine closed")

    def at_rate(self, rate: float, count: int) -> None:
        if self.client_fails:
            raise CannotMeasure("generator: the client ended early", "fwlab doctor")
        self.pieces += 1
        threading.Event().wait(0.01)

    @contextlib.contextmanager
    def tcp(self, connections: Connections) -> Iterator[Bench]:
        self.done.append("endpoints up")
        try:
            yield self
        finally:
            self.done.append("endpoints down")

    def nodes(self) -> Nodes:
        store = SimpleNamespace(
            plays_packets=lambda _name: self.connections is None,
            connections=lambda _name: self.connections,
            flows=lambda _name: {},
        )
        sink: Any = SimpleNamespace(
            set_flows=lambda _flows: None, absorb_all=lambda _classes: None, load_counters=lambda *_: None
        )
        dut: Any = self
        return Nodes(dut, dut, sink, store, {}, lambda _level: None, 1, tcp=self.tcp, emit=self.told.append)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trickle_module, "PATIENCE_S", 5.0)


def held(bench: Bench, monkeypatch: pytest.MonkeyPatch, backup: Backup | None = None, **fields: Any) -> Any:
    """The context in which the ruleset is held, of a real session."""
    monkeypatch.setattr(trickle_module, "time", bench)
    known = {"files": [DROP], "traffic": "flood", **fields}
    spec = MeasurementSpec("one", "One", "drop", metrics=["capacity"], **known)
    session = Session(CONTEXT, Measurer(bench.nodes()), backup or Backup(), a_run([]), Path("none"), bench.told.append)
    return session.hold(spec)


@pytest.mark.parametrize(
    ("pace", "pps"), [(1e9, MAX_PPS), (1500, MAX_PPS), (900, 180), (100, 20), (2, 1)], ids=lambda n: f"{n:g}"
)
def test_the_load_leaves_the_dut_time_for_a_shell(pace: float, pps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(pace)
    monkeypatch.setattr(trickle_module, "time", bench)
    assert light_load(bench.nodes()) == pytest.approx(pps, rel=0.15)
    assert bench.playing == 0


def test_packets_that_do_not_arrive_are_told_and_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(0)
    with held(bench, monkeypatch) as words:
        assert words == "1 packets per second of flood"
    assert bench.told == [Warned("no packet reached the DUT")]


def test_the_ruleset_is_loaded_then_played_then_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, backup = Bench(), Backup()
    with held(bench, monkeypatch, backup) as words:
        assert words == "300 packets per second of flood"
        assert bench.playing == 300
        assert bench.taken > 0, "counters have something to show"
        assert bench.done == ["reset", "load", "use flood", "first packets", "play"]
    assert bench.done[5:] == ["reset"]
    assert bench.playing == 0
    assert backup.prepared == 1


@pytest.mark.parametrize(
    ("fields", "words", "done"),
    [
        ({"traffic": None}, "nothing", ["reset", "load", "reset"]),
        ({"files": []}, "300 packets per second of flood", ["reset", "use flood", "first packets", "play", "reset"]),
    ],
    ids=["no traffic", "no files"],
)
def test_what_is_not_there_is_neither_played_nor_loaded(
    fields: dict[str, Any], words: str, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    with held(bench, monkeypatch, **fields) as said:
        assert said == words
    assert bench.done == done


def test_a_refused_ruleset_is_raised_and_nothing_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(refuses=True)
    with pytest.raises(Refused, match="nft said: no"), held(bench, monkeypatch):
        pytest.fail("the shell was opened")
    assert bench.done == ["reset"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, CannotMeasure("lost the connection to the dut", "look")])
def test_whatever_ends_the_shell_the_traffic_stops_and_the_dut_is_reset(
    error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, backup = Bench(), Backup(1)
    with pytest.raises((KeyboardInterrupt, CannotMeasure)), held(bench, monkeypatch, backup):
        raise error
    assert bench.playing == 0
    # A DUT that no longer answers cannot be reset: its saved state is restored.
    assert bench.done[-1] == ("reset" if error is KeyboardInterrupt else "play")
    assert backup.times == (1 if error is KeyboardInterrupt else 0)


def test_what_no_reset_removes_is_an_error_with_the_next_command(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(left=("table ip mine",))
    with pytest.raises(CannotMeasure, match="not in its start state.*table ip mine") as error, held(bench, monkeypatch):
        pass
    assert error.value.hint == "vagrant reload LAB"


def test_a_dut_with_too_few_cpus_is_refused_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    with pytest.raises(CannotMeasure, match="needs a DUT with 2 CPUs"), held(bench, monkeypatch, cpus=2):
        pytest.fail("the shell was opened")
    assert bench.done == []


# ---- connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("background", [None, "flood"])
def test_connections_are_opened_until_the_shell_ends(background: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.connections = Connections(background=background, background_pps=1500 if background else None)
    with held(bench, monkeypatch, traffic="web") as words:
        assert words == "10 connections per second of web" + (" and 300 packets per second of flood" * bool(background))
        assert bench.pieces > 0
        assert bench.playing == (300 if background else 0)
    pieces = bench.pieces
    assert bench.done[-2:] == ["endpoints down", "reset"]
    assert (bench.pieces, bench.playing) == (pieces, 0)
    assert ("engine closed" in bench.done) == (background is None)


def test_a_client_that_fails_is_named_after_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.connections, bench.client_fails = Connections(), True
    with pytest.raises(CannotMeasure, match="client ended early"), held(bench, monkeypatch, traffic="web"):
        pass
    assert bench.done[-1] == "endpoints down"
