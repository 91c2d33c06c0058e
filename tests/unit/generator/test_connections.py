# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections: declaration, configuration of the programs, their reports, and the count of answers."""

from __future__ import annotations

import ipaddress
import re
import struct
import subprocess
from contextlib import nullcontext
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from pydantic import ValidationError

from fwlab.generator import syn_timeout
from fwlab.generator import tcp_config as tcp
from fwlab.generator.tcp_endpoints import KernelConnectionLoad, KernelTcpEndpoints, Retransmissions, tcp_endpoints
from fwlab.metrics.registry import METRICS
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure, Hindered
from fwlab.model.lab import Lab
from fwlab.model.results import Measured
from fwlab.model.trial import Clients, TcpTrial
from tests.fakes.factories import testbed
from tests.fakes.recording_node import Node

WEB = Connections(clients="198.18.32.0/29", servers="198.19.32.0/30", port=8080, object_bytes=100, concurrent=16)
SNMP = """Tcp: RtoAlgorithm ActiveOpens RetransSegs
Tcp: 1 {opens} {again}
"""
WRK = """waiting 16
table ip fwlab-clients {
  chain gate {
    type filter hook output priority -301; policy accept;
    ip daddr 198.19.32.0 tcp dport 8080 tcp flags syn / syn,ack counter packets 18 bytes 1080 drop
  }
}
Running 60m test @ http://198.19.32.0:8080/
  1 threads and 16 connections
  41 requests in 4.09s, 620.48KB read
{"answers":41,"status":1,"lost":2}
"""
HTTPERF = """httperf --client=0/1 --server=198.19.32.0 --port=8080 --uri=/ --rate=50 --num-conns=300
Maximum connect burst length: 3

Total: connections 300 requests 298 replies 297 test-duration 5.985 s

Connection rate: 50.1 conn/s (20.0 ms/conn, <=7 concurrent connections)
Reply status: 1xx=0 2xx=296 3xx=0 4xx=0 5xx=1

Errors: total 3 client-timo 2 socket-timo 0 connrefused 1 connreset 0
Errors: fd-unavail 0 addrunavail 0 ftab-full 0 other 0
"""


# -- declaration --


@pytest.mark.parametrize(
    "wrong",
    [
        {"clients": "10.0.0.0/24"},
        {"servers": "198.18.32.0/28"},
        {"object_bytes": 1281},
        {"background": "flood"},
        {"background_pps": 100},
    ],
)
def test_invalid_declarations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Connections(**wrong)


def lab(beside: str) -> dict[str, Any]:
    return {
        "id": "lab99-tcp",
        "title": "Made up",
        "minutes": 10,
        "classes": {"flood": {"src": "198.18.64.0/18"}},
        "traffic": {
            "flood": {"profile": "profile.py"},
            "web": {"connections": {}},
            "attacked": {"connections": {"background": beside, "background_pps": 100}},
        },
        "baseline": "plain",
        "cases": [{"id": "plain", "title": "Plain", "ruleset": "plain", "traffic": "web", "metric": "connections"}],
    }


def test_only_a_profile_can_be_background_traffic() -> None:
    assert Lab.model_validate(lab("flood")).traffic["attacked"].connections.background_pps == 100
    for beside in ("web", "nothing"):
        with pytest.raises(ValidationError, match=f"background: {beside} is not a traffic with a profile"):
            Lab.model_validate(lab(beside))


# -- configuration --


def test_every_address_is_used_and_rewritten_back() -> None:
    rules = tcp.address_rules(WEB, "198.18.0.2")
    maps = [re.findall(r"(\d+) : ([\d.]+)", part) for part in re.findall(r"map \{(.*?)\}", rules)]
    for declared, found in zip((WEB.clients, WEB.servers), maps, strict=True):
        addresses = [str(address) for address in ipaddress.ip_network(declared)]
        assert found == [(str(place), address) for place, address in enumerate(addresses)]
    assert "ip daddr 198.19.32.0 tcp dport 8080 ip saddr set jhash tcp sport mod 8" in rules
    assert len(set(re.findall(r"seed (\d+)", rules))) == 2, "with one seed a client would always get the same server"
    back = "ip saddr 198.19.32.0/30 ip daddr 198.18.32.0/29 tcp sport 8080"
    assert f"{back} ip saddr set 198.19.32.0 ip daddr set 198.18.0.2" in rules


def test_the_gate_blocks_new_connections_only() -> None:
    """It drops only SYNs, and only those to the servers."""
    is_open = "chain gate {\n    type filter hook output priority raw - 1; policy accept;\n  }"
    assert is_open in tcp.address_rules(WEB, "198.18.0.2")
    towards = "ip daddr 198.19.32.0 tcp dport 8080"
    assert tcp.gate_rule(WEB) == f"rule ip fwlab-clients gate {towards} tcp flags & (syn | ack) == syn counter drop"


def test_the_server_sends_one_object_and_closes_each_connection() -> None:
    config = tcp.server_config(WEB, "/run/x.pid", "/run/x")
    # Object and FIN in one packet: the connection ends with the object.
    for line in ("sendfile on;", "tcp_nopush on;", "root /run/x;", f"try_files /{tcp.OBJECT} =404;"):
        assert line in config
    for line in ("keepalive_timeout 0;", "access_log off;", "listen 8080 backlog=16384;", "pid /run/x.pid;"):
        assert line in config
    assert config.count("{") == config.count("}")


# -- reports --


def test_flat_out() -> None:
    """76 were started. 16 of them waited at the gate, where two SYNs were retransmitted."""
    found = tcp.wrk_result(WRK, SNMP.format(opens=100, again=3), SNMP.format(opens=176, again=6), 16, 4.1, 5)
    expected = {"opened": 60, "completed": 40, "failed": 3, "retransmitted": 6, "concurrent": 16, "duration_s": 4.1}
    assert found == Clients(program="wrk", **expected)


def test_at_a_rate() -> None:
    found = tcp.httperf_result(HTTPERF, SNMP.format(opens=0, again=0), SNMP.format(opens=300, again=9), 50, 2)
    expected = {"opened": 300, "completed": 296, "failed": 3, "retransmitted": 11, "concurrent": 7}
    assert found == Clients(program="httperf", **expected, duration_s=5.985, intended_load=50)
    assert found.delivered == pytest.approx(296 / 300)


@pytest.mark.parametrize("report", ["", "Total: connections 3", "wrk: unable to connect", WRK.partition("}\n")[2]])
def test_an_incomplete_report_is_an_error(report: str) -> None:
    counts = SNMP.format(opens=0, again=0)
    with pytest.raises(CannotMeasure, match="incomplete report of"):
        tcp.wrk_result(report, counts, counts, 1, 1.0, 0)
    with pytest.raises(CannotMeasure, match="incomplete report of"):
        tcp.httperf_result(report, counts, counts, 1.0, 0)


@pytest.mark.parametrize(("connections", "bare"), [(1, 3), (1000, 4711)])
def test_responses_are_counted_from_packets_and_bytes(connections: int, bare: int) -> None:
    """Each connection has a SYN of 74 bytes, one answer of 66 + 260, and any number of bare headers of 66."""
    packets = 2 * connections + bare
    octets = connections * (74 + 66 + 260) + bare * 66
    assert tcp.answers(packets, octets, 260) == pytest.approx(connections)


def test_resets_are_no_answers() -> None:
    """Servers that refuse every connection send bare resets of 54 bytes."""
    assert tcp.answers(1000, 1000 * 54, 260) == 0


def test_figures_are_of_the_trials_and_shares_of_the_run_at_a_rate() -> None:
    trials = [TcpTrial(duration_s=2, busy_s=2, completed=1000, concurrent=16, packets=10_000)]
    counted = {"program": "wrk", "failed": 0, "retransmitted": 0, "concurrent": 16, "duration_s": 1}
    clients = [
        Clients(opened=100, completed=90, **counted),
        Clients(opened=50, completed=49, intended_load=50, **counted),
    ]
    found = Measured(id="plain", title="", ruleset="", ruleset_hash="", tcp=trials, clients=clients)
    assert METRICS["connections"].values(found, testbed()) == [2000]
    assert METRICS["delivered"].values(found, testbed()) == [0.98]
    assert METRICS["delivered"].values(found, testbed(), "flood") == []
    assert found.tcp[0].packets / found.tcp[0].completed == 10


# -- set-up and restoration --


@pytest.mark.parametrize(
    ("beside", "losses"),
    [
        ({}, False),
        ({"background": "flood", "background_pps": 10}, True),
        ({"background": "flood", "background_pps": 10, "background_flat_out": False}, False),
    ],
)
def test_both_ends_are_restored(beside: dict[str, Any], losses: bool) -> None:
    """A SYN waits longer only flat out and without losses."""
    generator, sink = Node(), Node("260\n")
    declared = Connections(**WEB.model_dump(exclude_unset=True), **beside)
    with tcp_endpoints(generator, sink, "198.18.0.2", declared) as both:
        assert both.answer_bytes == 260
        assert b"ip saddr set jhash" in generator.inputs[0]
        assert b"try_files" in sink.inputs[0]
        assert "printf %100s '' | tr ' ' x" in sink.commands[0], "the object is there before its server"
        assert "ip route replace local 198.19.32.0/30 dev lo" in sink.commands[0]
        both.flat_out()
        syns = "detach;" if losses else "attach 5;"
        assert syns in generator.commands[-1]
        assert syns in sink.commands[0]
    assert "nft delete table ip fwlab-clients" in generator.commands[-1]
    assert "ip route del local 198.19.32.0/30" in sink.commands[-1]
    for node in (generator, sink):
        assert "sysctl -q -p" in node.commands[-1], "its settings are what they were"
        assert node.commands[-1].endswith("detach")


@pytest.mark.parametrize("sink", [Node("", fails="nginx -c"), Node("no number"), Node("99")])
def test_a_server_that_does_not_answer_is_reported_and_restored(sink: Node) -> None:
    generator = Node()
    with pytest.raises(CannotMeasure), tcp_endpoints(generator, sink, "198.18.0.2", WEB):
        pytest.fail("nothing may be measured")
    assert "nft delete table" in generator.commands[-1]
    assert "ip route del local" in sink.commands[-1]


def test_httperf_opens_connections_at_a_rate() -> None:
    node = Node("---\n".join([SNMP.format(opens=0, again=0), HTTPERF, SNMP.format(opens=300, again=0)]))
    sink = Node(SNMP.format(opens=0, again=7))
    assert KernelTcpEndpoints(node, sink, WEB, 260).at_rate(50, 300).completed == 296
    assert "httperf --server 198.19.32.0 --port 8080 --uri / --rate 50 --num-conns 300" in node.commands[0]
    node.answer = "Tcp: x\n---\n"
    with pytest.raises(CannotMeasure, match="the client ended early"):
        KernelTcpEndpoints(node, sink, WEB, 260).at_rate(50, 100)


@pytest.mark.parametrize(("answer", "shut"), [("open\n", False), ("shut\n", True)])
def test_a_dut_that_lets_no_connection_through_is_found_at_once(answer: str, shut: bool) -> None:
    expected = pytest.raises(Hindered, match="no connection to 198.19.32.0:8080") if shut else nullcontext()
    with expected:
        KernelTcpEndpoints(Node(answer), Node("Tcp: x"), WEB, 260).connect()


def test_an_abandoned_client_ends_by_itself() -> None:
    """Its input is closed first. Otherwise the program would go on running on the node."""
    program = subprocess.Popen(["sh", "-c", "cat; exit 3"], stdin=PIPE, stdout=PIPE, stderr=PIPE)
    KernelConnectionLoad(Node(), program, 16, Retransmissions(Node())).abandon()
    assert program.returncode == 3


# -- the BPF program that lets the kernel wait longer for an answer to a SYN --


def replied(code: bytes, asked: int) -> int:
    """Execute the few instructions that the program uses, on a context with `asked` in its first field."""
    registers, context, place = [0] * 11, {0: asked, 4: 0}, 0
    instructions = [struct.unpack_from("<BBhi", code, at) for at in range(0, len(code), 8)]
    while True:
        operation, both, offset, value = instructions[place]
        target, source = both & 15, both >> 4
        place += 1
        if operation == 0xB7:
            registers[target] = value
        elif operation == 0x61:
            assert source == 1, "only the context may be read"
            registers[target] = context[offset]
        elif operation == 0x63:
            assert target == 1, "only the context may be written"
            context[offset] = registers[source]
        elif operation == 0x55:
            place += offset if registers[target] != value else 0
        else:
            assert operation == 0x95
            assert registers[0] == 1
            return context[4]


def test_the_program_answers_the_question_for_the_timeout_and_no_other() -> None:
    code = syn_timeout.program(3750)
    assert replied(code, syn_timeout.TIMEOUT_INIT) == 3750
    assert [replied(code, asked) for asked in range(20) if asked != syn_timeout.TIMEOUT_INIT] == [-1] * 19


def test_seconds_become_jiffies_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda _path: "# CONFIG_HZ_250 is not set\nCONFIG_HZ=1000\n")
    assert syn_timeout.jiffies(3) == 3000

    def missing(_path: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert syn_timeout.jiffies(3) == 750


@pytest.mark.parametrize(("number", "raised"), [(2, False), (1, True)])
def test_detaching_without_a_program_is_no_error(monkeypatch: pytest.MonkeyPatch, number: int, raised: bool) -> None:
    """ENOENT (2) says that none is attached; EPERM (1) does not."""

    def refuse(_command: int, _attributes: bytes) -> int:
        raise OSError(number, "refused")

    monkeypatch.setattr(syn_timeout, "bpf", refuse)
    if raised:
        with pytest.raises(OSError, match="refused"):
            syn_timeout.detach(0)
    else:
        syn_timeout.detach(0)
