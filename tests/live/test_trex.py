# SPDX-License-Identifier: GPL-2.0-or-later
"""Both engines play the same profile, and the same packets reach the sink. TRex also opens TCP connections.

The tests skip if the generator's image has no TRex.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.dut.linux.client import LinuxDut
from fwlab.generator import selection as engines
from fwlab.generator.protocol import Engine, PlaybackResult, TcpEndpoints
from fwlab.generator.sink import Sink
from fwlab.generator.tcp_config import answers
from fwlab.generator.traffic_store import TrafficStore
from fwlab.generator.trex.engine import trex_in_image
from fwlab.measure.labs import load_lab
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput
from fwlab.model.trial import Clients
from fwlab.testbed.machines import Machines
from fwlab.testbed.selection import TestbedRequest, choose

from .conftest import LAB, OFFSET, STAND, Checkout, document

pytestmark = pytest.mark.live

PACKETS, LOAD = 1500, 250.0
WEB = Connections(concurrent=64)
#: Prints received UDP packets in hexadecimal until none arrives for ten seconds. SO_RCVBUFFORCE is 33.
CAPTURE = """
import socket
tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)
tap.bind(("{device}", 0))
tap.settimeout(60)
print("ready", flush=True)
try:
    while True:
        frame = tap.recv(10000)
        if frame[12:14] == b"\\x08\\x00" and frame[23] == 17:
            print(frame.hex())
            tap.settimeout(10)
except TimeoutError:
    pass
"""


@dataclass
class Seen:
    """What one engine reported as sent, and what the sink received."""

    played: PlaybackResult
    classes: dict[str, int]
    frames: list[str]


class Bench:
    """The lab's machines with both engines."""

    def __init__(self, project: Project) -> None:
        self.topology, self.lab = load_topology(project), load_lab(project, LAB)
        self.testbed = choose(TestbedRequest("virtual"))
        self.store = TrafficStore(project, self.topology, self.lab)
        self.machines = Machines(project, self.topology, load_lab(project, STAND), TestbedRequest("virtual"))
        self.device = self.topology.end("dut-sink", "sink").dev
        self.sink = Sink(self.machines.ssh("sink"), self.device)

    @contextlib.contextmanager
    def dut(self) -> Iterator[LinuxDut]:
        """Begin a session: the first request records the DUT's start state."""
        with LinuxDut(self.machines.ssh("dut"), [link.ends["dut"].dev for link in self.topology.links.values()]) as dut:
            dut.facts()
            yield dut

    @contextlib.contextmanager
    def engine(self, name: str) -> Iterator[Engine]:
        choice = engines.Choice(name, "this test's")
        made = engines.make(choice, self.machines.ssh("generator"), self.topology, self.testbed)
        with contextlib.closing(made):
            yield made

    def play(self, engine: Engine, traffic: str) -> Seen:
        engine.use(self.store, traffic)
        self.sink.load_counters(self.lab.classes)
        script = CAPTURE.format(device=self.device)
        tap = self.machines.ssh("sink").open("python3 -")
        tap.stdin.write(script.encode())
        tap.stdin.close()
        assert tap.stdout.readline() == b"ready\n", tap.stderr.read().decode()
        played = engine.start(load=LOAD, count=PACKETS).wait(timeout=120)
        frames = tap.stdout.read().decode().split()
        tap.wait(60)
        return Seen(played, self.sink.settled_counts(), frames)


@pytest.fixture(scope="module")
def bench(lab: Checkout) -> Iterator[Bench]:
    project = Project(lab.top)
    if trex_in_image(project) is None:
        pytest.skip("the generator's image holds no TRex: it was built without FWLAB_TREX_URL")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FWLAB_PORT_OFFSET", str(OFFSET))
        yield Bench(project)


#: Seconds of connections at full speed; then the rate per second and the number of connections.
FLAT_OUT_S, RATE, COUNT = 10, 20.0, 200
#: Allowed difference between the responses that the DUT and TRex counted, beside connections still open at the end.
APART = 0.02


@dataclass
class Opened:
    """TRex's counts at full speed and at a rate, and how many responses crossed the DUT in each."""

    clients: list[Clients]
    crossed: list[float]


@pytest.fixture(scope="module")
def opened(bench: Bench) -> Opened:
    """Connections through a DUT without rules and without throttling: these counts need no saturated DUT."""
    choice, found = engines.Choice("trex", "this test's", asked=True), Opened([], [])
    generator, sink = bench.machines.ssh("generator"), bench.machines.ssh("sink")
    made = engines.make_tcp_endpoints(choice, generator, sink, bench.topology, bench.testbed)
    with bench.dut() as dut:
        dut.reset()
        bench.sink.load_counters(bench.lab.classes, WEB)
        with made(WEB) as both:
            for run in (lambda: flat_out(both), lambda: both.at_rate(RATE, COUNT)):
                before = dut.received()[-1]
                found.clients.append(run())
                packets, octets = (now - then for now, then in zip(dut.received()[-1], before, strict=True))
                found.crossed.append(answers(packets, octets, both.answer_bytes))
    return found


def flat_out(both: TcpEndpoints) -> Clients:
    opening = both.flat_out()
    time.sleep(FLAT_OUT_S)
    return opening.stop()


@pytest.fixture(scope="module")
def seen(bench: Bench) -> dict[str, Seen]:
    """A mix of three streams, forwarded by a DUT without rules."""
    found = {}
    with bench.dut() as dut:
        dut.reset()
        for name in ("replay", "trex"):
            with bench.engine(name) as engine:
                found[name] = bench.play(engine, "attack")
    return found


@pytest.mark.parametrize("name", ["replay", "trex"])
def test_all_packets_arrive(seen: dict[str, Seen], name: str) -> None:
    assert seen[name].played.sent == PACKETS
    assert len(seen[name].frames) == PACKETS


def test_classes_are_the_same(seen: dict[str, Seen]) -> None:
    assert seen["trex"].classes == seen["replay"].classes


def test_frames_are_the_same_bytes(seen: dict[str, Seen]) -> None:
    """The order of packets with equal times may differ, and each engine draws identification and TTL."""
    assert undrawn(seen["trex"].frames) == undrawn(seen["replay"].frames)


def undrawn(frames: list[str]) -> list[str]:
    """Without bytes 18 to 19, 22, and 24 to 25, the checksum."""
    return sorted(frame[:36] + frame[40:44] + frame[46:48] + frame[52:] for frame in frames)


def test_nothing_runs_on_after_the_session(bench: Bench, seen: dict[str, Seen]) -> None:
    assert bench.machines.ssh("generator").run("pgrep t-rex-64 || true").split() == []


def test_both_engines_refuse_a_load_of_zero(bench: Bench) -> None:
    for name in ("replay", "trex"):
        with bench.engine(name) as engine:
            if name == "replay":
                engine.use(bench.store, "flood")
            with pytest.raises(BadInput, match="sends nothing"):
                engine.start(load=0)


def test_a_load_above_the_generators_limit_is_reported(bench: Bench) -> None:
    with bench.engine("trex") as engine:
        engine.use(bench.store, "flood")
        played = engine.start(load=5e6, count=200_000).wait(timeout=120)
    assert played.limited
    assert played.limited.startswith("generator limited: asked for 5,000,000 pps")


def test_figures_do_not_depend_on_the_engine(lab: Checkout, bench: Bench) -> None:
    """The result names the engine."""
    figures = {}
    for name in ("replay", "trex"):
        words = ("--machines", STAND, "--engine", name, "--trials", "5", "--json")
        run = document(lab.fwlab("run", LAB, "raw-drop", *words))
        assert run["testbed"]["engine"] == name
        figures[name] = run["cases"][0]["median"]
    assert abs(figures["trex"] / figures["replay"] - 1) <= 0.005, figures


@pytest.mark.parametrize("place", [0, 1], ids=["flat out", "at a rate"])
def test_trex_and_the_dut_count_the_same_connections(opened: Opened, place: int) -> None:
    counted = opened.clients[place]
    print(counted, f"{opened.crossed[place]:.1f} responses crossed the DUT")
    assert counted.program == "trex"
    assert counted.completed > 100
    assert abs(opened.crossed[place] - counted.completed) <= APART * counted.completed + WEB.concurrent * (1 - place)


def test_at_a_rate_trex_opens_all_connections_and_all_complete(opened: Opened) -> None:
    counted = opened.clients[1]
    assert (counted.opened, counted.completed, counted.failed) == (COUNT, COUNT, 0)
    assert counted.intended_load == RATE


def test_the_endpoints_are_stopped(bench: Bench, opened: Opened) -> None:
    assert bench.machines.ssh("generator").run("pgrep t-rex-64 || true").split() == []
    sink = bench.machines.ssh("sink")
    assert sink.run("pgrep nginx || true").split() == []
    assert "198.19.32" not in sink.run("ip route show table local")
