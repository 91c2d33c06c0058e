# SPDX-License-Identifier: GPL-2.0-or-later
"""Both drivers of the replay engine on a real generator's NIC; the host receives what leaves the machine.

The tests boot one machine from the generator's box. Its link is a UDP tunnel, so each frame is a datagram.
"""

from __future__ import annotations

import contextlib
import json
import random
import shlex
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from engine.benchmark.host import LOOPBACK
from engine.benchmark.machine import Bench, generator, newest_box
from fwlab.checkout.project import Project, load_topology
from fwlab.generator.frame_table import write_table
from fwlab.model.errors import CannotMeasure
from tests.engine_build import build_engine

from .conftest import ROOT

pytestmark = pytest.mark.live

SO_RCVBUFFORCE = 33
MACS = {"dst": "52:54:00:12:00:01", "src": "52:54:00:12:00:02"}
TO_DUT = bytes.fromhex(MACS["dst"].replace(":", ""))
BOTH = pytest.mark.parametrize("driver", ["xdp", "virtio"])
ENGINE, TABLE = "/var/tmp/fwlab-replay", "/var/tmp/test.tbl"
#: Bytes, enough for all frames of a test: the kernel counts a page per frame.
BUFFER = 256 << 20


class Generator:
    """The machine and the frames that left it."""

    def __init__(self, bench: Bench, far_end: socket.socket) -> None:
        self.run = bench.ssh.run
        self._far_end = far_end

    def table(self, folder: Path, frames: list[bytes], streams: list[int] | None = None) -> None:
        write_table(folder / "table", frames, streams=streams)
        self.run(f"cat > {TABLE}", data=(folder / "table").read_bytes())

    def play(self, driver: str, *options: str) -> dict:
        self.arrived()  # discard earlier frames
        said = self.run(f"{ENGINE} --dev eth0 --table {TABLE} --driver {driver} {shlex.join(options)}")
        report = json.loads(said.splitlines()[-1])
        assert report["driver"] == driver
        return report

    def arrived(self) -> list[bytes]:
        """Frames since the last call, without those that the machine's kernel sends by itself."""
        frames, end = [], time.monotonic() + 0.5  # the last frames may still be in QEMU
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                while True:
                    frames.append(self._far_end.recv(65_536, socket.MSG_DONTWAIT))
            time.sleep(0.02)
        return [frame for frame in frames if frame.startswith(TO_DUT)]

    def link(self) -> dict:
        return json.loads(self.run("ip -json link show eth0"))[0]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generator]:
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("QEMU is not installed")
    try:
        box = newest_box()
    except CannotMeasure as error:
        pytest.fail(str(error))
    folder = tmp_path_factory.mktemp("generator")
    engine = folder / "fwlab-replay"
    build_engine(f"OUT={engine}", f"BUILD={folder}/build")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far_end:
        try:
            far_end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        except PermissionError:
            pytest.skip("a receive buffer that holds all frames needs root")
        far_end.bind((LOOPBACK, 0))
        topology = load_topology(Project(ROOT))
        with generator(topology, ROOT, box, folder, far_end.getsockname()[1]) as bench:
            bench.ssh.run(f"cat > {ENGINE}; chmod 755 {ENGINE}", data=engine.read_bytes())
            yield Generator(bench, far_end)


def payload(number: int, length: int) -> bytes:
    return random.Random(number).randbytes(length)


@BOTH
def test_every_size_arrives_unchanged(machine: Generator, tmp_path: Path, driver: str) -> None:
    frames = [TO_DUT + payload(size, size - 6) for size in range(60, 1515)]
    machine.table(tmp_path, frames)
    report = machine.play(driver, "--count", "3000", "--rate", "3000")
    assert machine.arrived() == [frames[n % len(frames)] for n in range(3000)]
    assert (report["attempted"], report["sent"], report["unsent"]) == (3000, 3000, 0)


@BOTH
def test_protocols_in_their_proportions(machine: Generator, tmp_path: Path, driver: str) -> None:
    four = IP(src="198.18.0.5", dst="198.19.0.5") / UDP(sport=1025, dport=9) / (b"4" * 20)
    six = IPv6(src="2001:2:0:1200::5", dst="2001:2:0:1300::5") / UDP(sport=1025, dport=9) / (b"6" * 500)
    kinds = [
        bytes(Ether(**MACS) / four).ljust(60, b"\0"),
        bytes(Ether(**MACS) / six),
        bytes(Ether(**MACS) / Dot1Q(vlan=100, prio=3) / four).ljust(64, b"\0"),
    ]
    pattern = [0, 1, 0, 2, 0, 1, 0]
    machine.table(tmp_path, [kinds[kind] for kind in pattern], streams=pattern)
    report = machine.play(driver, "--count", "7000")
    arrived = machine.arrived()
    # The xdp driver retries frames that a full ring refused, so they may arrive out of order.
    assert driver == "xdp" or arrived == [kinds[pattern[n % 7]] for n in range(7000)]
    assert [arrived.count(kind) for kind in kinds] == [4000, 2000, 1000]
    assert [stream["sent"] for stream in report["per_stream"]] == [4000, 2000, 1000]


def test_jumbo_frames(machine: Generator, tmp_path: Path) -> None:
    """9000 bytes of IP exceed a live frame, which is one page, but not the virtio driver's limit."""
    machine.run("ip link set eth0 mtu 9000")
    try:
        frames = [TO_DUT + payload(n, 9014 - 6 - n) for n in range(20)]
        machine.table(tmp_path, frames)
        machine.play("virtio", "--count", "200", "--rate", "2000")
        assert machine.arrived() == frames * 10
        assert machine.link()["mtu"] == 9000  # restored
        with pytest.raises(CannotMeasure, match="9014 bytes: too long for a live frame, which must fit one page"):
            machine.play("xdp", "--count", "1")
    finally:
        machine.run("ip link set eth0 mtu 1500")


@BOTH
def test_a_duration_and_a_rate_above_the_maximum(machine: Generator, tmp_path: Path, driver: str) -> None:
    machine.table(tmp_path, [TO_DUT + payload(n, 54) for n in range(64)])
    report = machine.play(driver, "--rate", "2e7", "--duration", "0.1")
    assert report["intended"]["frames"] == 2_000_000
    assert 0 < report["sent"] < 2_000_000
    assert report["unsent"] == 2_000_000 - report["sent"]
    assert report["attempted"] - report["dropped"] == report["sent"] == len(machine.arrived())


@pytest.mark.parametrize("signal", ["TERM", "INT", "KILL"])
def test_the_nic_is_restored(machine: Generator, tmp_path: Path, signal: str) -> None:
    """After any way to end the engine, also with a full ring."""
    machine.table(tmp_path, [TO_DUT + payload(n, 54) for n in range(64)])
    machine.run(
        f"{ENGINE} --dev eth0 --table {TABLE} --driver virtio >/run/said 2>&1 </dev/null & p=$!; "
        f"while [ -e /sys/class/net/eth0 ]; do sleep 0.1; done; sleep 0.5; kill -{signal} $p; wait $p || true; "
        "while ! ip link show eth0 up 2>/dev/null | grep -q eth0; do sleep 0.1; done"
    )
    assert "UP" in machine.link()["flags"]
    assert len(machine.arrived()) > 0
    said = machine.run("cat /run/said")
    assert (json.loads(said)["sent"] > 0) if signal != "KILL" else said == ""
    machine.play("xdp", "--count", "10")
    assert len(machine.arrived()) == 10


def test_a_nic_in_use_is_refused(machine: Generator, tmp_path: Path) -> None:
    """With two engines at a time the second finds no such NIC, and the first continues."""
    machine.table(tmp_path, [TO_DUT + payload(n, 54) for n in range(64)])
    said = machine.run(
        f"{ENGINE} --dev eth0 --table {TABLE} --driver virtio --rate 100 --duration 2 </dev/null & p=$!; "
        f"while [ -e /sys/class/net/eth0 ]; do sleep 0.1; done; "
        f"{ENGINE} --dev eth0 --table {TABLE} --driver virtio --count 1 2>&1; wait $p"
    )
    assert "eth0: no network device of this name" in said
    assert json.loads(said.splitlines()[-1])["sent"] == 200
