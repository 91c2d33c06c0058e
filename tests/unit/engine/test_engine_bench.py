# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of engine/bench that need no machine: far end, senders and summary."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine.benchmark.host import LOOPBACK, FarEnd, Lock
from engine.benchmark.players import make_table, players
from engine.benchmark.rounds import summary
from fwlab.checkout.project import Project, load_topology
from tests import ROOT
from tests.fakes.captures import read_table

TOPOLOGY = load_topology(Project(ROOT))


@pytest.fixture(scope="module")
def senders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc") or not shutil.which("make"):
        pytest.skip("the build needs gcc and make")
    folder = tmp_path_factory.mktemp("senders")
    command = ["make", "-s", "-C", str(ROOT / "engine"), f"BUILD={folder}", "benchmark"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return folder


def test_the_receiver_counts_every_datagram() -> None:
    far_end = FarEnd()
    before = far_end.count()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for size in (60, 1514, 9014):
            sender.sendto(bytes(size), (LOOPBACK, far_end.port))
    assert far_end.count() - before == 3


def test_the_host_sender_counts_correctly(senders: Path) -> None:
    far_end = FarEnd()
    command = [str(senders / "link-host"), LOOPBACK, str(far_end.port), "1514", "0.05"]
    sent = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert sent > 0
    assert far_end.count() == sent


@pytest.mark.parametrize("arguments", [[], ["nowhere", "1", "60", "1"], [LOOPBACK, "1", "0", "1"]])
def test_the_host_sender_refuses(senders: Path, arguments: list[str]) -> None:
    done = subprocess.run([str(senders / "link-host"), *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert "usage: " in done.stderr


def test_the_guest_sender_is_a_multiboot_kernel(senders: Path) -> None:
    """The header must be in the file's first 8 KiB, and its fields must add up to zero."""
    kernel = (senders / "link-guest").read_bytes()[:8192]
    at = kernel.index((0x1BADB002).to_bytes(4, "little"))
    words = [int.from_bytes(kernel[at + n : at + n + 4], "little") for n in (0, 4, 8)]
    assert at % 4 == 0
    assert sum(words) % 2**32 == 0


def test_a_table_has_different_frames_of_one_size(tmp_path: Path) -> None:
    make_table(tmp_path / "table", 1514, 4096, TOPOLOGY)
    frames = read_table(tmp_path / "table").frames
    assert {len(frame) for frame in frames} == {1514}
    assert len(frames) == 4096
    assert len(set(frames)) > 4000
    target = TOPOLOGY.end("generator-dut", "dut").mac
    assert {frame[:6] for frame in frames} == {bytes.fromhex(target.replace(":", ""))}


def test_every_player_gets_size_and_time() -> None:
    for player in players(TOPOLOGY):
        command = player.command(508, 7.5)
        assert "7.5" in command, player.name
        assert player.name.startswith("replay") or "508" in command or str(508 - 42) in command, player.name


def test_the_summary_compares_with_link_and_best_other_player() -> None:
    def rounds(player: str, *rates: int) -> list[dict]:
        return [{"player": player, "size": 60, "pps": rate} for rate in rates]

    runs = rounds("link-host", 1000) + rounds("link-guest", 490, 500, 510) + rounds("replay", 470, 480, 460)
    runs += rounds("pktgen", 200, 240, 220) + rounds("trafgen", 100, 90, 80)
    found = summary(runs)["medians"]["60"]
    expected = {"median_pps": 470, "spread": round(20 / 470, 4), "of_link_guest": 0.94, "of_best_other": 2.136}
    assert found["replay"] == expected
    assert found["trafgen"]["of_best_other"] == round(90 / 220, 3)


def test_the_summary_of_rates_gives_the_accuracy() -> None:
    runs = [{"player": "replay", "rate": 1000.0, "pps": rate} for rate in (999, 1000, 1002)]
    row = {"median_pps": 1000, "spread": 0.003, "of_rate": 1.0}
    assert summary(runs)["medians"] == {"1000": {"replay": row}}


def test_locks_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with Lock(path).turn():
        script = f"import fcntl; fcntl.flock(open({str(path)!r}, 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert "BlockingIOError" in done.stderr
    with Lock(None).turn():
        assert path.exists()
