# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `trex`, against a fake server that implements TRex's RPC and the state of a port."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from fwlab.generator.protocol import PlaybackResult, check_load
from fwlab.generator.traffic_store import TrafficStore
from fwlab.generator.trex import engine as trex
from fwlab.generator.trex.engine import Trex
from fwlab.generator.trex.server import STATELESS, NoAnswer, Rpc
from fwlab.model.errors import BadInput, CannotMeasure, CannotStart
from tests.checkout import PROJECT, TOPOLOGY, lab_named
from tests.fakes.trex_server import STEP, Server, Ssh


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def ssh(server: Server) -> Ssh:
    return Ssh(server)


@pytest.fixture
def tables() -> TrafficStore:
    return TrafficStore(PROJECT, TOPOLOGY, lab_named("lab03-ipset"))


@pytest.fixture
def engine(ssh: Ssh, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trex]:
    monkeypatch.setattr(trex, "POLL_S", 0.001)
    monkeypatch.setattr(trex, "SETTLED_S", 0.01)
    monkeypatch.setattr("fwlab.generator.trex.server.PING_S", 0.1)
    made = Trex(ssh, TOPOLOGY, small=True)
    yield made
    made.close()
    assert all(process.poll() is not None for process in ssh.processes), "something runs on after close"


def test_a_counted_run_sends_the_exact_number(engine: Trex, server: Server, tables: TrafficStore) -> None:
    engine.use(tables, "attack")
    played = engine.start(load=2000, count=5000).wait(timeout=60)
    assert played.sent == 5000
    assert played.limited is None
    assert server.last("start_traffic")["mul"] == {"type": "pps", "op": "abs", "value": 2000}
    assert sum(s["mode"]["total_pkts"] for s in server.streams.values()) == 5000
    numbers = [request["id"] for request in server.requests]
    assert all(a < b for a, b in itertools.pairwise(numbers))


def test_flat_out_uses_the_line_rate_until_stopped(engine: Trex, server: Server, tables: TrafficStore) -> None:
    engine.use(tables, "flood")
    playing = engine.start()
    playing._port.transmits()
    played = playing.stop()
    assert played.sent == STEP
    assert played.intended_pps is None
    assert played.limited is None
    assert server.last("start_traffic")["mul"]["type"] == "percentage"
    assert server.last("start_traffic")["duration"] == -1
    assert server.methods().index("stop_traffic") < len(server.methods()) - 1, "counters are read after the stop"


@pytest.mark.parametrize(("what", "packets", "sent"), [("dropped", 30, 770), ("stray", 3, 800)])
def test_what_the_kernel_drops_or_adds_does_not_count_as_sent(
    engine: Trex, ssh: Ssh, tables: TrafficStore, what: str, packets: int, sent: int
) -> None:
    engine.use(tables, "flood")
    playing = engine.start(load=1000, count=800)
    setattr(ssh, what, packets)
    assert playing.wait(timeout=60).sent == sent


def test_runs_follow_each_other_on_one_server_and_a_closed_engine_restarts(
    engine: Trex, server: Server, ssh: Ssh, tables: TrafficStore
) -> None:
    """Where it was closed, TCP clients used the link."""
    for traffic, count in (("flood", 100), ("attack", 300), ("attack", 300)):
        engine.use(tables, traffic)
        assert engine.start(load=1000, count=count).wait(timeout=60).sent == count
    assert server.methods().count("api_sync_v2") == 1
    assert server.methods().count("remove_all_streams") == 2, "the same streams are not sent twice"
    assert len(ssh.processes) == 2, "one server and one tunnel"
    engine.close()
    assert all(process.poll() is not None for process in ssh.processes)
    engine.use(tables, "attack")
    assert engine.start(load=2000, count=1000).wait(timeout=60).sent == 1000
    assert server.methods().count("acquire") == 2


def test_a_run_that_does_not_end_is_stopped(engine: Trex, server: Server, tables: TrafficStore) -> None:
    engine.use(tables, "flood")
    playing = engine.start(load=1000, count=10**9)
    assert 0 < playing.wait(timeout=0.05).sent < 10**9
    assert server.left == 0


def test_abandoned_packets_are_not_counted(engine: Trex, server: Server, tables: TrafficStore) -> None:
    engine.use(tables, "flood")
    playing = engine.start()
    playing._port.transmits()
    playing.abandon()
    assert server.given == STEP
    assert engine.start(load=1000, count=800).wait(timeout=60).sent == 800


@pytest.mark.parametrize(("small", "own_driver"), [(True, False), (False, True)])
def test_a_nic_driven_by_trex_is_rebound_to_the_kernel(
    server: Server, ssh: Ssh, tables: TrafficStore, small: bool, own_driver: bool
) -> None:
    ssh.machine = "6\n8388608\n0000:00:03.0\n"
    engine = Trex(ssh, TOPOLOGY, small=small)
    try:
        engine.use(tables, "flood")
    finally:
        engine.close()
    assert (b"low_end: true" in ssh.files["/etc/trex_cfg.yaml"]) != own_driver
    assert ("dpdk_nic_bind.py -b virtio-pci 0000:00:03.0" in ssh.opened[0]) == own_driver


@pytest.mark.parametrize("load", [0, -1, float("inf"), float("nan")])
def test_an_invalid_load_is_refused(load: float) -> None:
    with pytest.raises(BadInput, match="sends nothing"):
        check_load(load)


def test_machines_without_trex_are_reported(engine: Trex, ssh: Ssh, tables: TrafficStore) -> None:
    ssh.there = "no"
    with pytest.raises(CannotMeasure, match="no TRex") as caught:
        engine.use(tables, "flood")
    assert "vagrant up" in caught.value.hint
    assert not ssh.processes


def test_the_reason_is_in_the_first_line_and_the_server_is_not_started_again(
    engine: Trex, server: Server, ssh: Ssh, tables: TrafficStore
) -> None:
    server.silent, ssh.program = True, "exit 127"
    missing = "./t-rex-64: line 89: ./_t-rex-64-o: No such file or directory"
    ssh.log = f"Trying to bind to igb_uio ...\n{missing}\nKilling Scapy server... done\n"
    for _ in range(2):
        with pytest.raises(CannotStart) as caught:
            engine.use(tables, "flood")
        first, *log = caught.value.message.splitlines()
        assert first == f"generator: TRex ended with 127: {missing}"
        assert log == ssh.log.splitlines()
        assert "--engine replay" in caught.value.hint
    assert len(ssh.opened) == 1


def test_a_lost_connection_may_come_back(engine: Trex, server: Server, ssh: Ssh, tables: TrafficStore) -> None:
    server.silent, ssh.program = True, "exit 255"
    with pytest.raises(CannotMeasure, match="lost the connection"):
        engine.use(tables, "flood")
    server.silent, ssh.program = False, "cat"
    engine.use(tables, "flood")
    assert len(ssh.opened) == 2


def test_a_server_that_dies_during_a_run_is_reported(
    engine: Trex, server: Server, ssh: Ssh, tables: TrafficStore
) -> None:
    engine.use(tables, "flood")
    playing = engine.start()
    server.refuses["stop_traffic"] = "whatever"
    ssh.processes[0].terminate()
    ssh.processes[0].wait()
    with pytest.raises(CannotMeasure, match="TRex ended with"):
        playing.stop()
    playing.abandon()


def test_errors_of_trex_are_passed_on(engine: Trex, server: Server, tables: TrafficStore) -> None:
    server.refuses["add_stream"] = "VM: offset 99 is beyond the packet"
    engine.use(tables, "flood")
    with pytest.raises(CannotMeasure, match="add_stream: VM: offset 99"):
        engine.start()


def test_long_batches_are_split_and_every_answer_is_checked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.generator.trex.server.BATCH_BYTES", 400)
    rpc = Rpc(f"tcp://127.0.0.1:{server.port}")
    try:
        rpc.join(STATELESS.api)
        rpc.calls("add_stream", [{"stream_id": n, "stream": {"pad": "x" * 100}} for n in range(7)])
        assert sorted(server.streams) == list(range(7))
        server.refuses["add_stream"] = "full"
        with pytest.raises(CannotMeasure, match="full"):
            rpc.calls("add_stream", [{"stream_id": 9, "stream": {}}])
        rpc.calls("add_stream", [])
    finally:
        rpc.close()


def test_a_request_works_after_a_timeout(server: Server) -> None:
    rpc = Rpc(f"tcp://127.0.0.1:{server.port}", timeout_s=0.05)
    try:
        server.silent = True
        with pytest.raises(NoAnswer, match="ping|api_sync"):
            rpc.join(STATELESS.api)
        server.silent = False
        assert any(rpc.ping(5) for _ in range(3))
    finally:
        rpc.close()


@pytest.mark.parametrize(
    ("asked", "sent", "limited"),
    [(None, 10, False), (1000, 10_000, False), (1000, 9_600, False), (1000, 5_000, True)],
)
def test_an_engine_at_its_ceiling_is_reported(asked: float | None, sent: int, limited: bool) -> None:
    played = PlaybackResult(sent, 10.0, asked)
    assert bool(played.limited) == limited
    assert not limited or played.limited.startswith("generator limited: asked for 1,000 pps, it sent 500")
