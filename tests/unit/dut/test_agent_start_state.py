# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT's network is compared with its recorded start state: differences are restored or reported."""

import copy
import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from fwlab.dut.linux.agent import network, start_state
from fwlab.dut.linux.agent.network import Network
from fwlab.dut.linux.agent.start_state import StartState
from tests.fakes.fake_kernel import FakeKernel

START = {
    "link": ["eth0 mtu 1500 txqueuelen 1000 UP"],
    "address": ["192.0.2.1/30 dev eth0 scope global", "2001:db8::1/64 dev eth0 scope global"],
    "route": ["-4 192.0.2.0/24 via 192.0.2.2 dev eth0 proto static"],
    "rule": ["-4 0:\tfrom all lookup local"],
    "neighbour": ["-6 2001:db8::2 dev eth0 lladdr 02:00:00:00:00:02 PERMANENT"],
    "queue": ["qdisc fq_codel 0: dev eth0 root refcnt 2"],
}


class Changed(FakeKernel):
    """Tools that restore the network with any call if `able`."""

    def __init__(self, able: bool = True) -> None:
        super().__init__()
        self.now = copy.deepcopy(START)
        self.able = able

    def call(self, argv: list[str], text: str | None = None) -> CompletedProcess[str]:
        if self.able:
            self.now = copy.deepcopy(START)
        return super().call(argv, text)


class Seen(Network):
    """The current network, without calling `ip`."""

    def __init__(self, kernel: Changed) -> None:
        super().__init__(kernel)
        self.kernel = kernel

    def state(self) -> network.State:
        return copy.deepcopy(self.kernel.now)


@pytest.fixture
def dut() -> Changed:
    return Changed()


def test_an_unchanged_network_calls_nothing(dut: Changed) -> None:
    assert Seen(dut).restore(START) == []
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
def test_each_difference_is_restored_by_its_own_commands(
    dut: Changed, section: str, lines: list[str], call: str
) -> None:
    dut.now[section] = lines
    assert Seen(dut).restore(START) == []
    assert call in dut.called


def test_what_cannot_be_restored_is_reported(dut: Changed) -> None:
    """A rule is not even tried, since its traces last until the next boot."""
    dut.able, dut.now["route"] = False, []
    dut.now["rule"] = [*START["rule"], "-4 100: from 192.0.2.0/24 lookup 7"]
    assert Seen(dut).restore(START) == [
        f"route {START['route'][0]} is missing",
        "rule -4 100: from 192.0.2.0/24 lookup 7 was added",
    ]
    assert not [call for call in dut.called if " rule " in call and "show" not in call]


def test_settings_are_written_until_none_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that cannot be written is reported. One that came with a module is not compared."""
    monkeypatch.setattr(network, "SYSCTLS", str(tmp_path))
    forward, fixed, brought = (tmp_path / name for name in ("forward", "fixed", "brought"))
    forward.write_text("1")
    fixed.write_text("7")
    before = network.sysctls()
    assert before == {str(forward): "1", str(fixed): "7"}
    forward.write_text("0")
    brought.write_text("x")
    assert network.restore_sysctls(before) == []
    assert (forward.read_text(), brought.read_text()) == ("1", "x")
    values = {str(fixed): "8"}
    monkeypatch.setattr(network, "sysctls", lambda: dict(values))
    assert network.restore_sysctls(before) == [str(fixed)]


class OnDisk(FakeKernel):
    """Reads the recorded start state from disk."""

    def read(self, path: str) -> str:
        return Path(path).read_text() if path.endswith(".json") else super().read(path)


def test_the_start_state_is_recorded_once_per_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_state, "sysctls", dict)
    kernel = OnDisk()
    kernel.there = ["virtio_net"]
    record = str(tmp_path / "record.json")
    recorded = StartState(kernel, record).recorded()
    assert set(recorded["network"]) == set(START)
    kernel.there = ["virtio_net", "bridge"]
    assert StartState(kernel, record).recorded() == recorded, "the next session's agent reads it"
    assert json.loads(Path(record).read_text())["modules"] == ["virtio_net"]


def test_processes_ended_by_the_oom_killer_are_reported(tmp_path: Path) -> None:
    kernel = OnDisk()
    kernel.files["/proc/vmstat"] = "nr_free_pages 7\noom_kill 3\n"
    record = tmp_path / "record.json"
    start = {"modules": [], "sysctls": {}, "network": Network(kernel).state(), "killed": 0}
    record.write_text(json.dumps(start))
    restored = StartState(kernel, str(record)).restore(sysctls_changed=False, loaded=False)
    assert restored == ["processes killed for want of memory"]


def test_an_address_without_a_route_of_its_own_is_told_from_others() -> None:
    """systemd gives ::1 so. The kernel gives it back with such a route, when IPv6 was off and is on again."""

    class Kernel(FakeKernel):
        def call(self, argv: list[str], text: str | None = None) -> CompletedProcess[str]:
            held = [{"local": "::1", "prefixlen": 128, "scope": "host", "noprefixroute": True}]
            link = {"ifname": "lo", "flags": ["UP"], "mtu": 65536, "txqlen": 1000, "addr_info": held}
            return CompletedProcess(argv, 0, json.dumps([link]) if "addr" in argv else "", "")

    assert Network(Kernel()).state()["address"] == ["::1/128 dev lo scope host noprefixroute"]


def test_routes_rules_and_neighbours_are_told_apart_in_one_listing() -> None:
    kernel = FakeKernel()
    kernel.answers = {
        "ip -j -d addr show": "[]",
        "ip -6 -force -batch -": "2001:db8:1::/64 dev eth0 metric 256 linkdown \nlocal ::1 dev lo table local\n"
        "0:\tfrom all lookup local \n32766:\tfrom all lookup main\n"
        "2001:db8::2 dev eth0 lladdr 02:00:00:00:00:02 PERMANENT \n",
    }
    state = Network(kernel).state()
    assert state["route"] == ["-6 2001:db8:1::/64 dev eth0 metric 256", "-6 local ::1 dev lo table local"]
    assert state["rule"] == ["-6 0:\tfrom all lookup local", "-6 32766:\tfrom all lookup main"]
    assert state["neighbour"] == ["-6 2001:db8::2 dev eth0 lladdr 02:00:00:00:00:02 PERMANENT"]
    shown = kernel.fed["ip -4 -force -batch -"]
    assert shown == "route show table all\nrule show\nneighbour show nud permanent\n"


def test_settings_are_not_compared_with_what_was_just_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[dict[str, str]] = []
    monkeypatch.setattr(start_state, "sysctls", dict)
    monkeypatch.setattr(start_state, "restore_sysctls", lambda before: compared.append(before) or [])
    state = StartState(OnDisk(), str(tmp_path / "record.json"))
    state.recorded()
    state.restore(sysctls_changed=True, loaded=False)
    assert compared == [], "no ruleset was loaded in between"
    state.restore(sysctls_changed=True, loaded=False)
    assert compared == [{}]
    StartState(OnDisk(), str(tmp_path / "record.json")).restore(sysctls_changed=True, loaded=False)
    assert len(compared) == 2, "another agent recorded it, and may have loaded something"
    at_once = StartState(OnDisk(), str(tmp_path / "other.json"))
    at_once.recorded()
    at_once.restore(sysctls_changed=True, loaded=True)
    assert len(compared) == 3, "a ruleset was loaded in between"
