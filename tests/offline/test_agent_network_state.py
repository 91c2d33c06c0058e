# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT's network against the note of its start state: what differs is put back, and what stays is told."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.dut.linux.agent import network_state, start_state

START = {
    "link": ["eth0 mtu 1500 txqueuelen 1000 UP"],
    "address": ["192.0.2.1/30 dev eth0 scope global", "2001:db8::1/64 dev eth0 scope global"],
    "route": ["-4 192.0.2.0/24 via 192.0.2.2 dev eth0 proto static"],
    "rule": ["-4 0:\tfrom all lookup local"],
    "neighbour": ["-6 2001:db8::2 dev eth0 lladdr 02:00:00:00:00:02 PERMANENT"],
    "queue": ["qdisc fq_codel 0: dev eth0 root refcnt 2"],
}


class Dut:
    """A network that `ip` and `tc` change as they are told to, where `able`."""

    def __init__(self, able: bool = True) -> None:
        self.now = copy.deepcopy(START)
        self.able = able
        self.called: list[str] = []

    def quiet(self, *argv: str) -> SimpleNamespace:
        self.called.append(" ".join(argv))
        if self.able:
            self.now = copy.deepcopy(START)
        return SimpleNamespace(stdout="")


@pytest.fixture
def dut(monkeypatch: pytest.MonkeyPatch) -> Dut:
    made = Dut()
    monkeypatch.setattr(network_state, "quiet", made.quiet)
    monkeypatch.setattr(network_state, "network", lambda: copy.deepcopy(made.now))
    return made


def test_a_network_as_it_was_calls_nothing(dut: Dut) -> None:
    assert network_state.put_back_network(START) == []
    assert dut.called == []


@pytest.mark.parametrize(
    ("section", "lines", "call"),
    [
        ("address", START["address"][:1], "ip address add 2001:db8::1/64 dev eth0 scope global nodad"),
        ("address", [*START["address"], "192.0.2.9/32 dev eth0 scope host"], "ip address delete 192.0.2.9/32 dev eth0"),
        ("route", [], "ip -4 route replace 192.0.2.0/24 via 192.0.2.2 dev eth0 proto static"),
        ("route", [*START["route"], "-6 2001:db8:1::/64 dev eth0"], "ip -6 route delete 2001:db8:1::/64 dev eth0"),
        (
            "neighbour",
            [],
            "ip -6 neighbour replace 2001:db8::2 dev eth0 lladdr 02:00:00:00:00:02 nud permanent",
        ),
        ("rule", [], "ip -4 rule add priority 0 from all lookup local"),
        ("link", [*START["link"], "ifb0 mtu 1500 txqueuelen 32 ifb"], "ip link delete dev ifb0"),
        ("link", ["eth0 mtu 1500 txqueuelen 1000 UP xdp"], "ip link set dev eth0 xdpdrv off"),
        (
            "link",
            ["eth0 mtu 1400 txqueuelen 1000 PROMISC,UP"],
            "ip link set dev eth0 mtu 1500 txqueuelen 1000 promisc off up",
        ),
        ("queue", ["qdisc tbf 8001: dev eth0 root refcnt 2"], "tc qdisc delete dev eth0 root"),
    ],
)
def test_each_difference_has_its_way_back(dut: Dut, section: str, lines: list[str], call: str) -> None:
    dut.now[section] = lines
    assert network_state.put_back_network(START) == []
    assert call in dut.called


def test_what_cannot_be_put_back_is_told(dut: Dut) -> None:
    dut.able, dut.now["route"] = False, []
    assert network_state.put_back_network(START) == [f"route {START['route'][0]} is missing"]


def test_settings_are_written_until_none_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that could not be written is told; one that only a module brought is no concern of the note."""
    monkeypatch.setattr(network_state, "SYSCTLS", str(tmp_path))
    forward, fixed, brought = (tmp_path / name for name in ("forward", "fixed", "brought"))
    forward.write_text("1")
    fixed.write_text("7")
    before = network_state.sysctls()
    assert before == {str(forward): "1", str(fixed): "7"}
    forward.write_text("0")
    brought.write_text("x")
    assert network_state.put_back_sysctls(before) == []
    assert (forward.read_text(), brought.read_text()) == ("1", "x")
    values = {str(fixed): "8"}
    monkeypatch.setattr(network_state, "sysctls", lambda: dict(values))
    assert network_state.put_back_sysctls(before) == [str(fixed)]


def test_the_start_state_is_noted_once_a_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_state, "NOTE", str(tmp_path / "note.json"))
    monkeypatch.setattr(start_state, "modules", lambda: ["virtio_net"])
    monkeypatch.setattr(start_state, "out_of_memory", lambda: 0)
    monkeypatch.setattr(start_state.network_state, "network", lambda: START)
    monkeypatch.setattr(start_state.network_state, "sysctls", dict)
    monkeypatch.setattr(start_state, "noted", {})
    start_state.start_state()
    monkeypatch.setattr(start_state, "modules", lambda: ["virtio_net", "bridge"])
    monkeypatch.setattr(start_state, "noted", {})  # the next session's agent
    assert start_state.start_state()["modules"] == ["virtio_net"]
    assert json.loads((tmp_path / "note.json").read_text())["network"] == START


def test_processes_that_memory_ran_out_for_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_state, "noted", {"modules": [], "sysctls": {}, "network": START, "killed": 0})
    monkeypatch.setattr(start_state, "touched", set())
    monkeypatch.setattr(start_state.network_state, "put_back_network", lambda _before: [])
    monkeypatch.setattr(start_state, "read", lambda _path: "nr_free_pages 7\noom_kill 3\n")
    assert start_state.compare() == ["processes killed for want of memory"]
