# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections by TRex, against a fake server in stateful mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fwlab.checkout.raw_results import raw_result
from fwlab.generator import selection as engines
from fwlab.generator.trex import astf
from fwlab.generator.trex.astf import MAX_OPEN, TrexTcpEndpoints, trex_tcp_endpoints
from fwlab.judge.verdicts import judge_cases
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Clients
from fwlab.model.verdict import Outcome
from fwlab.testbed.selection import TestbedRequest, choose
from tests.checkout import PROJECT, TOPOLOGY, lab_named
from tests.fakes.trex_server import STEP, Ssh, Stateful

WEB = Connections(clients="198.18.32.0/29", servers="198.19.32.0/30", port=8080, object_bytes=100, concurrent=512)
ANSWER = 251


class Sink:
    """The sink's nginx, whose response has `length` bytes, and its kernel, which retransmits `again` segments."""

    def __init__(self, length: str = f"{ANSWER}\n") -> None:
        self.length, self.again, self.asked = length, 0, []

    def run(self, command: str, **_: Any) -> str:
        self.asked.append(command)
        return f"Tcp: RetransSegs\nTcp: {self.again}\n" if "/proc/net/snmp" in command else self.length


@pytest.fixture
def server() -> Iterator[Stateful]:
    made = Stateful(ANSWER)
    yield made
    made.close()


@pytest.fixture
def ssh(server: Stateful, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ssh]:
    monkeypatch.setattr(astf, "POLL_S", 0.001)
    made = Ssh(server)
    yield made
    assert all(process.poll() is not None for process in made.processes), "something runs on"


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def both(ssh: Ssh, sink: Sink) -> Iterator[TrexTcpEndpoints]:
    with trex_tcp_endpoints(ssh, sink, TOPOLOGY, WEB, small=True) as made:
        yield made


def test_at_a_rate_it_opens_as_many_connections_as_requested(
    both: TrexTcpEndpoints, server: Stateful, sink: Sink
) -> None:
    server.again, server.unfinished, server.dropped = 2, 3, 3
    found = both.at_rate(50.5, 1000)
    assert (server.asked["cps"], server.asked["limit"], server.asked["cont"]) == (50.5, 1000, False)
    expected = {"opened": 1000, "completed": 997, "failed": 3, "retransmitted": 2, "concurrent": 3}
    assert found == Clients(program="trex", **expected, duration_s=found.duration_s, intended_load=50.5)
    assert "stop" not in server.methods(), "it ends by itself"


def test_flat_out_continues_until_stopped(both: TrexTcpEndpoints, server: Stateful, sink: Sink) -> None:
    opening = both.flat_out()
    sink.again, server.unfinished = 7, 16
    found = opening.stop()
    assert (found.program, found.opened, found.completed) == ("trex", 2 * STEP, 2 * STEP - 16)
    assert found.failed == 0, "those that were open when it was stopped have not failed"
    assert (found.retransmitted, found.intended_load) == (7, None)
    assert server.asked["cont"] is True
    assert server.methods().index("stop") < server.methods().index("get_counter_values"), "counted when all has ended"
    assert both.at_rate(100, 30).opened == 30
    assert server.methods().count("acquire") == 1, "runs follow each other on one server"


@pytest.mark.parametrize(("small", "most"), [(True, MAX_OPEN), (False, 512)])
def test_few_connections_are_open_on_a_throttled_dut(
    ssh: Ssh, sink: Sink, server: Stateful, small: bool, most: int
) -> None:
    with trex_tcp_endpoints(ssh, sink, TOPOLOGY, WEB, small=small) as both:
        found = both.flat_out().stop()
    assert found.concurrent == server.asked["limit"] == most


def test_the_server_is_stateful_and_both_ends_are_restored(ssh: Ssh, sink: Sink, server: Stateful) -> None:
    with trex_tcp_endpoints(ssh, sink, TOPOLOGY, WEB, small=True) as both:
        assert both.answer_bytes == ANSWER
        assert " --astf " in ssh.opened[0]
        assert server.last("api_sync_v2") == {"name": "ASTF", "major": 2, "minor": 0}
        assert "ip route replace local 198.19.32.0/30 dev lo" in sink.asked[0]
    assert "ip route del local 198.19.32.0/30" in sink.asked[-1]


# -- failures --


def test_fewer_connections_than_requested_are_an_error(both: TrexTcpEndpoints, server: Stateful) -> None:
    server.gives_up = 40
    with pytest.raises(CannotMeasure, match="TRex opened 40 of 1000 connections in") as told:
        both.at_rate(50, 1000)
    assert "--engine replay" in told.value.hint


def test_a_profile_that_neither_starts_nor_ends_is_an_error(
    both: TrexTcpEndpoints, server: Stateful, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = both.flat_out()
    server.ends = False
    with pytest.raises(CannotMeasure, match=r"TRex does not end its connections within 0\.05 s"):
        opening.stop(timeout=0.05)
    monkeypatch.setattr(astf, "START_TIMEOUT_S", 0.05)
    server.begins = False
    with pytest.raises(CannotMeasure, match=r"TRex does not start within 0\.05 s"):
        both.flat_out()


@pytest.mark.parametrize(
    ("there", "length", "told"),
    [("no", f"{ANSWER}\n", "generator: no TRex in /opt/trex"), ("yes", "99", "nginx does not answer on port 8080")],
)
def test_a_missing_endpoint_leaves_nothing_running(ssh: Ssh, there: str, length: str, told: str) -> None:
    ssh.there = there
    with pytest.raises(CannotMeasure, match=told), trex_tcp_endpoints(ssh, Sink(length), TOPOLOGY, WEB, small=True):
        pytest.fail("nothing may be measured")


# -- selection --


@pytest.mark.parametrize(
    ("engine", "asked", "beside", "who"),
    [
        ("trex", True, False, "trex"),
        ("trex", True, True, "wrk"),
        ("trex", False, False, "wrk"),
        ("replay", True, False, "wrk"),
    ],
)
def test_trex_opens_connections_only_if_asked_for_by_name(
    engine: str, asked: bool, beside: bool, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TRex server that plays background packets cannot open connections."""
    monkeypatch.setattr("fwlab.generator.trex.engine.trex_tcp_endpoints", lambda *_, small: ("trex", small))
    monkeypatch.setattr(engines, "tcp_endpoints", lambda *_: ("wrk", True))
    declared = WEB.model_copy(update={"background": "flood", "background_pps": 10}) if beside else WEB
    made = engines.make_tcp_endpoints(
        engines.Choice(engine, "", asked), None, None, TOPOLOGY, choose(TestbedRequest("virtual"))
    )
    assert made(declared) == (who, True)


def test_ranges_measured_with_wrk_do_not_judge_trex() -> None:
    """Its connections have fewer packets."""
    verdicts = {}
    for kind, name in (("trex", "2026-11-21-trex"), ("wrk", "published")):
        run = load_run(raw_result(PROJECT, f"lab02-conntrack/{name}"), "lab02-conntrack")
        judged = judge_cases(lab_named("lab02-conntrack"), run, METRICS)
        verdicts[kind] = [verdict for verdict in judged if verdict.metric == "connections"]
    assert {verdict.outcome for verdict in verdicts["wrk"]} == {Outcome.PASS}
    assert {verdict.outcome for verdict in verdicts["trex"]} == {Outcome.INCONCLUSIVE}
    assert all("TRex opened these connections" in verdict.text for verdict in verdicts["trex"])
