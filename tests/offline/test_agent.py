# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT's agent decides by itself: how a file is split, which trials count, what a refusal leaves behind.

The agent is loaded from its file, as the DUT runs it; what touches the kernel there is replaced here.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "fwlab/outside/dut/agent.py"


@pytest.fixture
def agent() -> ModuleType:
    """A fresh copy for every test, since it remembers what it has changed."""
    spec = importlib.util.spec_from_file_location("agent", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_needs_nothing_but_the_standard_library() -> None:
    """The DUT has Python, and nothing of this project."""
    script = f"import runpy, sys; runpy.run_path({str(SOURCE)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in done.stdout.split()} - set(sys.stdlib_module_names) - {"__main__"}


# ---- loading one by one ---------------------------------------------------------------------------------------


def test_iptables_rules_go_to_the_table_above_them(agent: ModuleType) -> None:
    text = """# blacklist
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -s 198.18.20.66 -j DROP
COMMIT

*filter
-A FORWARD -m comment --comment "two words" -j ACCEPT
COMMIT
"""
    assert list(agent.commands("iptables", text)) == [
        ["iptables-legacy", "-t", "raw", "-A", "PREROUTING", "-s", "198.18.20.66", "-j", "DROP"],
        ["iptables-legacy", "-t", "filter", "-A", "FORWARD", "-m", "comment", "--comment", "two words", "-j", "ACCEPT"],
    ]
    assert [argv[0] for argv in agent.commands("iptables-nft", text)] == ["iptables-nft"] * 2


def test_ipset_lines_are_its_arguments(agent: ModuleType) -> None:
    text = "create blacklist hash:ip maxelem 4\n\n# one\nadd blacklist 198.18.64.1\n"
    assert list(agent.commands("ipset", text)) == [
        ["ipset", "create", "blacklist", "hash:ip", "maxelem", "4"],
        ["ipset", "add", "blacklist", "198.18.64.1"],
    ]


def test_nft_lines_stay_whole(agent: ModuleType) -> None:
    text = "add table ip t\n  add rule ip t c ip saddr 198.18.64.1 drop\n# end\n"
    assert list(agent.commands("nft", text)) == [
        ["nft", "add table ip t"],
        ["nft", "add rule ip t c ip saddr 198.18.64.1 drop"],
    ]


def test_no_line_reaches_a_shell(agent: ModuleType) -> None:
    """What a shell would run is an argument like any other."""
    for kind in ("iptables", "ipset", "nft"):
        (argv,) = agent.commands(kind, "add x; $(reboot) `reboot` | reboot\n")
        assert argv[0] in ("iptables-legacy", "ipset", "nft")
        assert "reboot" in " ".join(argv[1:])


@pytest.mark.parametrize("kind", ["tc", "sysctl", "conf"])
def test_other_files_are_loaded_whole_only(agent: ModuleType, kind: str) -> None:
    with pytest.raises(agent.Refusal, match=f"a .{kind} file can only be loaded whole"):
        list(agent.commands(kind, "qdisc add dev eth0 clsact\n"))


# ---- refusals -------------------------------------------------------------------------------------------------


def packed(text: str, kind: str = "nft") -> dict[str, str]:
    return {"name": f"rules.{kind}", "kind": kind, "packed": base64.b64encode(zlib.compress(text.encode())).decode()}


@pytest.fixture
def on_no_dut(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is flushed or timed; says what would have been done."""
    done: list[str] = []
    monkeypatch.setattr(agent, "reset", lambda _request: done.append("reset"))
    monkeypatch.setattr(agent, "flush", lambda: done.append("flush"))
    monkeypatch.setattr(agent, "busy_clock", iter(range(1000)).__next__)
    monkeypatch.setattr(agent, "modules", lambda: {"nf_tables"})
    monkeypatch.setattr(agent, "TOOLS", {"nft": ["sh", "-c", "cat >/dev/null"], "ipset": ["sh", "-c", REFUSING]})
    return done


REFUSING = "echo 'line 1: no such set' >&2; exit 3"


def test_refusal_is_in_the_tools_own_words_and_leaves_the_start_state(agent: ModuleType, on_no_dut: list[str]) -> None:
    answer = agent.load({"files": [packed("table ip t {}"), packed("add x 1", "ipset")]})
    assert answer == {"refused": "rules.ipset: sh said (exit 3): line 1: no such set"}
    assert on_no_dut == ["reset"]


def test_file_that_this_dut_has_no_tool_for(agent: ModuleType, on_no_dut: list[str]) -> None:
    answer = agent.load({"files": [packed("pass all", "conf")]})
    assert answer == {"refused": "rules.conf: this DUT has no tool for .conf"}
    assert on_no_dut == ["reset"]


def test_loading_again_begins_with_nothing_loaded(agent: ModuleType, on_no_dut: list[str]) -> None:
    answer = agent.load({"files": [packed("table ip t {}")], "times": 3})
    assert answer == {"seconds": [[1], [1], [1]]}
    assert on_no_dut == ["flush", "flush"]


def test_a_host_that_cannot_be_reached_is_told_so_once(agent: ModuleType) -> None:
    agent.cut_off.append(True)
    assert agent.confirm({}) == {"reached": False}
    assert agent.confirm({}) == {"reached": True}


def test_wrong_request_does_not_end_the_agent() -> None:
    asked = [{"op": "no-such"}, {"no": "op"}, {"op": "sample", "devices": ["lo"]}]
    lines = "".join(json.dumps(request) + "\n" for request in asked)
    done = subprocess.run([sys.executable, SOURCE], input=lines, capture_output=True, text=True, check=True)
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert first == {"failed": "KeyError: 'no-such'"}
    assert second == {"failed": "KeyError: 'op'"}
    assert set(third) == {"lo.rx_packets", "lo.tx_packets", "lo.rx_dropped"}


# ---- settings -------------------------------------------------------------------------------------------------


def test_settings_are_remembered_as_they_were_first(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    forward, ttl = "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_default_ttl"
    before = {path: Path(path).read_text() for path in (forward, ttl)}
    agent.remember_sysctls("# mine\n; too\n\nnet.ipv4.ip_forward = 1\nnet.no.such.setting=1\n")
    agent.changed_sysctls[forward] = "as it was first"
    agent.remember_sysctls("net.ipv4.ip_forward=0\n- net/ipv4/ip_default_ttl = 3\n")
    assert agent.changed_sysctls == {forward: "as it was first", ttl: before[ttl]}


# ---- trials ---------------------------------------------------------------------------------------------------


def trial(idle_ns: int, other_ns: int = 0) -> dict[str, Any]:
    return {"duration_ns": 1_000_000, "idle_ns": idle_ns, "other_ns": other_ns, "counts": {}}


BUSY, AT_THE_LIMIT, IDLE = trial(0), trial(1000), trial(1001)
REQUEST = {
    "devices": ["eth0"],
    "windows": 3,
    "window_s": 0.1,
    "packets": 64,
    "settle_s": 0,
    "patience_s": 1,
    "idle_share": 0.001,
    "other_share": 0.005,
    "most_idle": 2,
}


@pytest.fixture
def measured(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """measure() over trials that are given; also says how many were never asked for."""

    def run(trials: list[dict], **changed: Any) -> tuple[dict, int]:
        left = list(trials)
        policies: list[int] = []
        monkeypatch.setattr(agent, "Counters", lambda _devices: None)
        monkeypatch.setattr(agent, "wait_for_packets", lambda *_: None)
        monkeypatch.setattr(agent, "window", lambda *_: left.pop(0))
        monkeypatch.setattr(agent.os, "sched_setscheduler", lambda _pid, policy, _param: policies.append(policy))
        try:
            found = agent.measure({**REQUEST, **changed})
            return {"kept": found["kept"], "idle": found["idle"]}, len(left)
        finally:
            assert policies == [agent.os.SCHED_FIFO, agent.os.SCHED_OTHER], "its priority is given back"

    return run


def test_busy_trials_are_kept_until_there_are_enough(measured: Any) -> None:
    assert measured([BUSY, AT_THE_LIMIT, BUSY, BUSY]) == ({"kept": [BUSY, AT_THE_LIMIT, BUSY], "idle": []}, 1)


def test_idle_trials_are_left_out_and_counted(measured: Any) -> None:
    found, left = measured([BUSY, IDLE, BUSY, IDLE, BUSY, BUSY])
    assert found == {"kept": [BUSY] * 3, "idle": [IDLE] * 2}
    assert left == 1


def test_disturbed_trials_are_left_out(measured: Any) -> None:
    found, left = measured([BUSY, trial(0, 5001), BUSY, trial(0, 5000), BUSY])
    assert found == {"kept": [BUSY, BUSY, trial(0, 5000)], "idle": []}
    assert left == 1


@pytest.mark.parametrize("patience", [0, 2, 5])
def test_it_gives_up_where_the_load_is_too_small(measured: Any, patience: int) -> None:
    found, left = measured([IDLE] * 10, most_idle=patience)
    assert found == {"kept": [], "idle": [IDLE] * (patience + 1)}
    assert left == 9 - patience


def test_what_was_kept_before_giving_up_is_told(measured: Any) -> None:
    found, _ = measured([BUSY, IDLE, IDLE, IDLE, BUSY])
    assert found == {"kept": [BUSY], "idle": [IDLE] * 3}


def test_priority_is_given_back_after_a_failure(measured: Any) -> None:
    with pytest.raises(IndexError):
        measured([BUSY])


class FakeCounters:
    """A DUT that processes `pps` packets in each second of its own clock, and so many at the start."""

    def __init__(self, clock: SimpleNamespace, pps: int, start: int = 7) -> None:
        self.clock, self.pps, self.start = clock, pps, start

    def read(self) -> dict[str, int]:
        counted = self.start + self.pps * self.clock.ns // 10**9
        return {"eth0.rx_packets": counted, "eth0.tx_packets": counted // 2}

    def read_at(self) -> tuple[int, dict[str, int]]:
        return self.clock.ns, self.read()

    def served(self) -> int:
        return self.clock.ns * 998 // 1000


@pytest.fixture
def clock(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that only sleeping moves; a tenth of that time the CPU is idle."""
    now = SimpleNamespace(ns=0)

    def sleep(seconds: float) -> None:
        now.ns += round(seconds * 1e9)

    known = SimpleNamespace(sleep=sleep, process_time_ns=lambda: 0)
    known.monotonic, known.monotonic_ns = lambda: now.ns / 1e9, lambda: now.ns
    monkeypatch.setattr(agent, "time", known)
    monkeypatch.setattr(agent, "idle_ns", lambda: now.ns // 10)
    yield now


def test_window_counts_what_came_in_it(agent: ModuleType, clock: SimpleNamespace) -> None:
    found = agent.window(FakeCounters(clock, pps=1000), "eth0", 0.1, 64)
    assert found["duration_ns"] == 100_000_000
    assert found["idle_ns"] == 10_000_000
    assert found["counts"] == {"eth0.rx_packets": 100, "eth0.tx_packets": 50}


def test_window_waits_for_its_packets_where_the_ruleset_is_slow(agent: ModuleType, clock: SimpleNamespace) -> None:
    found = agent.window(FakeCounters(clock, pps=100), "eth0", 0.1, 64)
    assert found["counts"]["eth0.rx_packets"] >= 64
    assert found["duration_ns"] == 700_000_000


def test_window_ends_where_nothing_comes(agent: ModuleType, clock: SimpleNamespace) -> None:
    found = agent.window(FakeCounters(clock, pps=0), "eth0", 0.1, 64)
    assert found["counts"]["eth0.rx_packets"] == 0
    assert 2_000_000_000 <= found["duration_ns"] < 3_000_000_000


def test_waiting_for_packets_ends_with_them_or_with_patience(agent: ModuleType, clock: SimpleNamespace) -> None:
    agent.wait_for_packets(FakeCounters(clock, pps=1000), "eth0", 1)
    assert clock.ns < 100_000_000
    with pytest.raises(agent.Refusal, match="no packet arrived at eth0 within 1 s"):
        agent.wait_for_packets(FakeCounters(clock, pps=0), "eth0", 1)


def test_reading_that_was_interrupted_is_done_again(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of three readings took fifty times as long, so what it counted is of no moment."""
    moments = iter([0, 10, 100, 600, 700, 710])
    monkeypatch.setattr(agent, "time", SimpleNamespace(monotonic_ns=moments.__next__))
    counters = object.__new__(agent.Counters)
    counts = iter([{"n": 1}, {"n": 2}, {"n": 3}])
    counters.read = counts.__next__
    assert counters.read_at() == (700, {"n": 3})
