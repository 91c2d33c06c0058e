# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay engine on a veth pair between two network namespaces. Needs root but no machine."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fwlab.generator.frame_table import write_table
from tests.engine_build import ENGINE, build_engine

SOL_PACKET, SO_RCVBUFFORCE, ETH_P_ALL = 263, 33, 0x0003
PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 8, 1 << 4
MAX_FRAME = 4096  # bytes; longer than a live frame can be
STREAMS = {0: 60, 1: 590, 7: 1514}  # stream id: length of its frames
PATTERN = [0] * 7 + [1] * 4 + [7]
LOOP = 120  # frames


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True)


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Sockets opened in this context belong to `namespace`."""
    setns = ctypes.CDLL(None, use_errno=True).setns
    with Path("/proc/thread-self/ns/net").open() as home, Path(f"/run/netns/{namespace}").open() as there:
        if setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            setns(home.fileno(), 0)


def with_tag(frame: bytes, beside: list[tuple[int, int, bytes]]) -> bytes:
    """The frame as it was on the wire: the kernel removes the VLAN tag and passes it as ancillary data."""
    for level, kind, data in beside:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tag, protocol = struct.unpack("IIIHHHH", data[:20])
            if status & TP_STATUS_VLAN_VALID:
                return frame[:12] + struct.pack("!HH", protocol, tag) + frame[12:]
    return frame


@dataclass
class Wire:
    """The engine's namespace, with the NIC `out`, and a packet socket at the far end of the veth pair."""

    namespace: str
    far_namespace: str
    far_end: socket.socket
    engine: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", self.namespace, self.engine, "--dev", "out", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def play(self, *arguments: str) -> dict:
        process = self.start(*arguments)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return json.loads(out.splitlines()[-1])

    def received(self) -> list[bytes]:
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, beside, *_ = self.far_end.recvmsg(MAX_FRAME, 64, socket.MSG_DONTWAIT)
                frames.append(with_tag(frame, beside))
        return frames

    def arrived(self) -> int:
        """The far end's counter of received frames, including frames not read yet."""
        shown = run("ip", "-n", self.far_namespace, "-s", "-j", "link", "show", "in")
        return json.loads(shown.stdout)[0]["stats64"]["rx"]["packets"]

    def xdp_attached(self) -> bool:
        shown = run("ip", "-n", self.namespace, "-j", "-d", "link", "show", "out")
        return "xdp" in json.loads(shown.stdout)[0]


@pytest.fixture(scope="module")
def engine() -> Path:
    if os.geteuid() != 0:
        pytest.skip("sending live frames needs root")
    if not (shutil.which("clang") and shutil.which("make")):
        pytest.skip("the engine's build needs clang and make")
    build_engine()
    return ENGINE / "fwlab-replay"


@pytest.fixture
def wire(engine: Path) -> Iterator[Wire]:
    near, far = (f"fwlab-{os.getpid()}-{end}" for end in ("near", "far"))
    if run("ip", "netns", "add", near).returncode:
        pytest.skip("network namespaces cannot be made here")
    run("ip", "netns", "add", far)
    try:
        made = run("ip", "-n", near, "link", "add", "out", "type", "veth", "peer", "name", "in", "netns", far)
        if made.returncode:
            pytest.skip(f"veth cannot be made here: {made.stderr.strip()}")
        # veth accepts redirected frames only if its peer uses NAPI, which GRO enables.
        if run("ip", "netns", "exec", far, "ethtool", "-K", "in", "gro", "on").returncode:
            pytest.skip("ethtool cannot enable GRO at the far end")
        with inside(far):
            far_end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        far_end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        far_end.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        for namespace, device in ((near, "out"), (far, "in")):
            # Without IPv6 only the engine sends.
            run("ip", "netns", "exec", namespace, "sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1")
            run("ip", "-n", namespace, "link", "set", device, "up")
        with inside(far):
            far_end.bind(("in", ETH_P_ALL))
        with far_end:
            yield Wire(near, far, far_end, engine)
    finally:
        run("ip", "netns", "del", near)
        run("ip", "netns", "del", far)


@pytest.fixture
def mixed(tmp_path: Path) -> tuple[Path, list[bytes]]:
    """A table of three streams at 20 000 frames per second. All frames differ."""
    streams = [PATTERN[n % len(PATTERN)] for n in range(LOOP)]
    frames = [
        (b"\x02" + bytes(11) + b"\x08\x00" + n.to_bytes(4, "big")).ljust(STREAMS[stream], bytes([n]))
        for n, stream in enumerate(streams)
    ]
    path = tmp_path / "mixed.tbl"
    write_table(path, frames, [50_000 * n for n in range(LOOP)], streams, loop_ns=50_000 * LOOP)
    return path, frames


def test_plays_all_frames_unchanged_and_in_order(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    path, frames = mixed
    report = wire.play("--table", str(path), "--speed", "1", "--count", "300")
    assert wire.received() == [frames[n % LOOP] for n in range(300)]
    assert (report["attempted"], report["sent"], report["unsent"]) == (300, 300, 0)
    assert report["per_stream"] == [{"id": 0, "sent": 175}, {"id": 1, "sent": 100}, {"id": 7, "sent": 25}]


def test_a_full_ring_loses_nothing(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    path, frames = mixed
    report = wire.play("--table", str(path), "--count", "24000")
    arrived = collections.Counter(wire.received())
    assert arrived == dict.fromkeys(frames, 24000 // LOOP)
    assert report["sent"] == 24_000
    assert [stream["sent"] for stream in report["per_stream"]] == [14_000, 8_000, 2_000]


@pytest.mark.parametrize(("size", "batch"), [(60, 256), (61, 64), (1514, 1), (3392, 128)])
def test_sizes_and_batches(wire: Wire, tmp_path: Path, size: int, batch: int) -> None:
    for namespace, device in ((wire.namespace, "out"), (wire.far_namespace, "in")):
        run("ip", "-n", namespace, "link", "set", device, "mtu", "3400")
    path = tmp_path / "one.tbl"
    write_table(path, [bytes([n]) * size for n in range(1, 8)])
    report = wire.play("--table", str(path), "--count", "70", "--batch", str(batch), "--rate", "5000")
    assert [len(frame) for frame in wire.received()] == [size] * 70
    assert report["sent"] == 70


def test_unsent_frames_are_counted_against_the_rate(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    path, _ = mixed
    report = wire.play("--table", str(path), "--rate", "3000", "--duration", "0.5")
    assert report["intended"] == {"mode": "rate", "pps": 3000, "duration_s": 0.5, "frames": 1500}
    assert report["sent"] + report["unsent"] == 1500
    assert report["sent"] == len(wire.received())


def test_a_rate_above_the_maximum(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    """No machine reaches this rate. Attempted, sent and intended frames are counted separately."""
    path, _ = mixed
    report = wire.play("--table", str(path), "--rate", "1e8", "--duration", "0.2")
    assert report["intended"]["frames"] == 20_000_000
    assert 0 < report["sent"] < 20_000_000
    assert report["attempted"] == report["sent"] + report["dropped"]
    assert report["unsent"] == 20_000_000 - report["sent"]
    assert sum(stream["sent"] for stream in report["per_stream"]) == report["sent"]
    assert report["sent"] == wire.arrived()


def test_a_duration_ends_the_run(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    """At twice the speed of the table: 40 000 frames per second."""
    path, frames = mixed
    report = wire.play("--table", str(path), "--speed", "2", "--duration", "0.1")
    assert report["intended"]["frames"] == 4000
    assert report["sent"] + report["unsent"] == 4000
    assert wire.received() == [frames[n % LOOP] for n in range(report["sent"])]


def test_the_virtio_driver_refuses_other_nics(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    process = wire.start("--table", str(mixed[0]), "--count", "1", "--driver", "virtio")
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 3
    assert "out: not a virtio NIC" in errors
    assert "use --driver xdp" in errors


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("pace", [[], ["--rate", "100"]])
def test_a_signal_ends_the_run_with_a_report(
    wire: Wire, mixed: tuple[Path, list[bytes]], ending: signal.Signals, pace: list[str]
) -> None:
    process = wire.start("--table", str(mixed[0]), *pace, "--report-every", "0.1")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["final"] is False
    assert wire.xdp_attached()
    process.send_signal(ending)
    out, errors = process.communicate(timeout=10)
    assert process.returncode == 0, errors
    final = json.loads(out.splitlines()[-1])
    assert final["final"] is True
    assert final["sent"] > 0
    assert not wire.xdp_attached()


def test_xdp_is_detached_when_the_engine_is_killed(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    process = wire.start("--table", str(mixed[0]), "--rate", "100", "--report-every", "0.1")
    assert process.stdout is not None
    process.stdout.readline()
    assert wire.xdp_attached()
    process.kill()
    process.communicate(timeout=10)
    assert not wire.xdp_attached()


def test_refuses_a_device_that_is_down(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    run("ip", "-n", wire.namespace, "link", "set", "out", "down")
    process = wire.start("--table", str(mixed[0]), "--count", "1")
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 3
    assert "out: the device is down" in errors


def test_refuses_frames_above_the_mtu(wire: Wire, tmp_path: Path) -> None:
    write_table(tmp_path / "long.tbl", [bytes(1519)])
    process = wire.start("--table", str(tmp_path / "long.tbl"), "--count", "1")
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 2
    assert "MTU 1500, longest frame 1519 bytes" in errors


def test_reports_a_device_that_goes_down_during_the_run(wire: Wire, mixed: tuple[Path, list[bytes]]) -> None:
    process = wire.start("--table", str(mixed[0]), "--rate", "1000", "--report-every", "0.1")
    assert process.stdout is not None
    process.stdout.readline()
    run("ip", "-n", wire.namespace, "link", "set", "out", "down")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "out" in errors
    assert "next: " in errors
