# SPDX-License-Identifier: GPL-2.0-or-later
"""How the DUT's agent counts packets over busy time, and which trials are valid."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.dut.linux.agent import agent as agent_module
from fwlab.dut.linux.agent import counters as counters_module
from fwlab.dut.linux.agent import trials
from fwlab.dut.linux.agent.agent import Agent
from fwlab.dut.linux.agent.counters import Counters
from fwlab.dut.linux.agent.retired import Retired
from fwlab.rulesets.kind import Refusal
from tests.fakes.fake_kernel import FakeKernel


def trial(idle_ns: int, other_ns: int = 0) -> dict[str, Any]:
    return {"duration_ns": 1_000_000, "idle_ns": idle_ns, "other_ns": other_ns, "counts": {}}


NO_COUNTER = Retired([])
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
def measured(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call measure() on given trials. Also returns how many of them were not used."""

    def run(planned: list[dict], **changed: Any) -> tuple[dict, int]:
        left = [dict(trial) for trial in planned]
        current: list[dict] = []

        class RanTasks:
            """The CPU time of programs and kernel threads that the trial declares."""

            def since_last(self) -> dict[tuple[str, bool], int]:
                programs = current[-1].get("programs", 0)
                return {("sshd", False): programs, ("rcu_sched", True): current[-1]["other_ns"] - programs}

        def window(*_: Any) -> dict:
            current.append(left.pop(0))
            return current[-1]

        monkeypatch.setattr(trials, "Tasks", RanTasks)
        policies: list[int] = []
        waiting = SimpleNamespace(wait_for_packets=lambda *_: None)
        monkeypatch.setattr(agent_module, "Counters", lambda _devices: waiting)
        monkeypatch.setattr(trials, "window", window)
        monkeypatch.setattr(trials.os, "sched_setscheduler", lambda _pid, policy, _param: policies.append(policy))
        try:
            found = Agent(FakeKernel(), {}).measure({**REQUEST, **changed})
            run.cpu_ns = found["cpu_ns"]
            wanted = ("duration_ns", "idle_ns", "other_ns", "counts")
            return {
                kind: [{name: one[name] for name in wanted} for one in found[kind]] for kind in ("valid", "unsaturated")
            }, len(left)
        finally:
            assert policies == [trials.os.SCHED_FIFO, trials.os.SCHED_OTHER], "its priority is given back"

    return run


def test_saturated_trials_are_valid_until_there_are_enough(measured: Any) -> None:
    assert measured([BUSY, AT_THE_LIMIT, BUSY, BUSY]) == ({"valid": [BUSY, AT_THE_LIMIT, BUSY], "unsaturated": []}, 1)


def test_unsaturated_trials_are_discarded_and_counted(measured: Any) -> None:
    found, left = measured([BUSY, IDLE, BUSY, IDLE, BUSY, BUSY])
    assert found == {"valid": [BUSY] * 3, "unsaturated": [IDLE] * 2}
    assert left == 1


def test_perturbed_trials_are_discarded(measured: Any) -> None:
    found, left = measured([BUSY, trial(0, 5001), BUSY, trial(0, 5000), BUSY])
    assert found == {"valid": [BUSY, BUSY, trial(0, 5000)], "unsaturated": []}
    assert left == 1


def test_a_kernel_thread_with_an_equal_share_of_every_trial_is_part_of_the_cost(measured: Any) -> None:
    """A kernel thread that frees each packet's route takes 2.8 % of the time."""
    alike = [trial(0, 28_000 + 100 * n) for n in range(7)]
    found, left = measured([*alike[:3], trial(0, 90_000), *alike[3:]])
    assert found == {"valid": alike[1:4], "unsaturated": []}, "of the first it is not known what ran"
    assert left == 2


def test_a_kernel_thread_may_need_some_trials_to_reach_its_share(measured: Any) -> None:
    """Seen of a router that forwards nothing: 3.8 %, 5.3 %, 6.3 %, then 6.7 % in each trial."""
    alike = [trial(0, 67_000 + 100 * n) for n in range(8)]
    found, _ = measured([trial(0, 38_000), trial(0, 53_000), *alike])
    assert found["valid"] == alike[:3]


def test_a_kernel_thread_with_an_unequal_share_is_not(measured: Any) -> None:
    found, _ = measured([trial(0, 20_000 * n) for n in range(1, 17)])
    assert found == {"valid": [], "unsaturated": []}


def test_half_of_every_trial_is_not_part_of_the_cost(measured: Any) -> None:
    """Even if its share is equal: a kernel thread that takes half of the CPU is not processing packets."""
    found, _ = measured([trial(0, 500_000)] * 16)
    assert found == {"valid": [], "unsaturated": []}


def test_a_login_is_named_and_ends_the_attempt_early(measured: Any) -> None:
    """Its share of every trial is equal, like that of a program that polls."""
    login = {**trial(0, 28_000), "programs": 28_000}
    found, left = measured([login] * 16)
    assert found == {"valid": [], "unsaturated": []}
    assert left == 16 - trials.MOST_BUSY - 1
    assert max(measured.cpu_ns, key=measured.cpu_ns.get) == "sshd"


@pytest.mark.parametrize("patience", [0, 2, 5])
def test_it_gives_up_if_the_load_is_too_small(measured: Any, patience: int) -> None:
    found, left = measured([IDLE] * 10, most_idle=patience)
    assert found == {"valid": [], "unsaturated": [IDLE] * (patience + 1)}
    assert left == 9 - patience


def test_valid_trials_are_returned_on_giving_up(measured: Any) -> None:
    found, _ = measured([BUSY, IDLE, IDLE, IDLE, BUSY])
    assert found == {"valid": [BUSY], "unsaturated": [IDLE] * 3}


def test_priority_is_restored_after_a_failure(measured: Any) -> None:
    with pytest.raises(IndexError):
        measured([BUSY])


class FakeCounters(Counters):
    """A DUT that processes `pps` packets per second of its own clock and starts with a given count."""

    def __init__(self, clock: SimpleNamespace, pps: int, start: int = 7) -> None:
        self.clock, self.pps, self.start = clock, pps, start

    def read(self) -> dict[str, int]:
        counted = self.start + self.pps * self.clock.ns // 10**9
        return {"eth0.rx_packets": counted, "eth0.tx_packets": counted // 2}

    def read_at(self) -> tuple[int, dict[str, int]]:
        return self.clock.ns, self.read()

    def served_ns(self) -> list[int]:
        return [self.clock.ns * 998 // 1000, 0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that advances only by sleeping. One CPU is idle for a tenth of that time, another for all of it."""
    now = SimpleNamespace(ns=0)

    def sleep(seconds: float) -> None:
        now.ns += round(seconds * 1e9)

    known = SimpleNamespace(sleep=sleep, process_time_ns=lambda: 0)
    known.monotonic, known.monotonic_ns = lambda: now.ns / 1e9, lambda: now.ns
    monkeypatch.setattr(trials, "time", known)
    monkeypatch.setattr(counters_module, "time", known)
    monkeypatch.setattr(trials, "idle_ns", lambda: [now.ns // 10, now.ns])
    return now


def test_window_counts_its_packets(clock: SimpleNamespace) -> None:
    found = trials.window(FakeCounters(clock, pps=1000), NO_COUNTER, "eth0", 0.1, 64)
    assert found["duration_ns"] == 100_000_000
    assert found["idle_ns"] == 10_000_000
    assert found["counts"] == {"eth0.rx_packets": 100, "eth0.tx_packets": 50}


def test_window_waits_for_its_packets_if_the_ruleset_is_slow(clock: SimpleNamespace) -> None:
    found = trials.window(FakeCounters(clock, pps=100), NO_COUNTER, "eth0", 0.1, 64)
    assert found["counts"]["eth0.rx_packets"] >= 64
    assert found["duration_ns"] == 700_000_000


def test_window_ends_if_no_packet_arrives(clock: SimpleNamespace) -> None:
    found = trials.window(FakeCounters(clock, pps=0), NO_COUNTER, "eth0", 0.1, 64)
    assert found["counts"]["eth0.rx_packets"] == 0
    assert 2_000_000_000 <= found["duration_ns"] < 3_000_000_000


def test_waiting_for_packets_ends_with_a_packet_or_a_timeout(clock: SimpleNamespace) -> None:
    FakeCounters(clock, pps=1000).wait_for_packets("eth0", 1)
    assert clock.ns < 100_000_000
    with pytest.raises(Refusal, match="no packet arrived at eth0 within 1 s"):
        FakeCounters(clock, pps=0).wait_for_packets("eth0", 1)


class Ring(Counters):
    """A receive ring. A slow ruleset takes 64 packets from it per interval (s) until it is empty."""

    def __init__(self, clock: SimpleNamespace, left: int, every_s: float) -> None:
        self.clock, self.left, self.every_s = clock, left, every_s

    def read(self) -> dict[str, int]:
        return {"eth0.rx_packets": min(self.left, 64 * int(self.clock.ns / 1e9 / self.every_s))}


@pytest.mark.parametrize("every_s", [0.001, 0.05, 0.09])
def test_draining_waits_until_the_ring_is_empty(clock: SimpleNamespace, every_s: float) -> None:
    ring = Ring(clock, 1024, every_s)
    ring.drain("eth0", quiet_s=0.1, patience_s=10)
    assert ring.read()["eth0.rx_packets"] == 1024


def test_draining_has_a_timeout(clock: SimpleNamespace) -> None:
    FakeCounters(clock, pps=1000).drain("eth0", quiet_s=0.1, patience_s=3)
    assert 3_000_000_000 <= clock.ns < 4_000_000_000


def test_an_interrupted_reading_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of three readings took fifty times as long, so its counts are discarded."""
    moments = iter([0, 10, 100, 600, 700, 710])
    monkeypatch.setattr(counters_module, "time", SimpleNamespace(monotonic_ns=moments.__next__))
    counters = object.__new__(Counters)
    counts = iter([{"n": 1}, {"n": 2}, {"n": 3}])
    counters.read = counts.__next__
    assert counters.read_at() == (700, {"n": 3})


def test_counters_close_their_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session makes hundreds of them in one agent."""
    numbers = iter(range(100, 200))
    closed: list[int] = []
    opened: list[int] = []

    def open_(_path: str, _flags: int) -> int:
        opened.append(next(numbers))
        return opened[-1]

    monkeypatch.setattr(counters_module, "pids_of", lambda _prefix: ["17", "23"])
    monkeypatch.setattr(counters_module, "os", SimpleNamespace(open=open_, close=closed.append, O_RDONLY=0))
    counters = Counters(["eth0"])
    del counters
    assert sorted(closed) == opened != []


def test_a_task_that_ends_while_tasks_are_listed_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"7": None, "12": "ksoftirqd/0", "13": "sshd"}

    def read(path: str) -> str:
        name = names[path.split("/")[2]]
        if name is None:
            raise FileNotFoundError(path)
        return name

    monkeypatch.setattr(counters_module, "read", read)
    monkeypatch.setattr(counters_module.glob, "glob", lambda _: [f"/proc/{pid}/comm" for pid in names])
    assert counters_module.pids_of("ksoftirqd") == ["12"]
    names["12"] = None
    with pytest.raises(Refusal, match="runs no ksoftirqd"):
        counters_module.pids_of("ksoftirqd")
