# SPDX-License-Identifier: GPL-2.0-or-later
"""How the DUT's agent counts packets over busy time, and which trials are valid."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.dut.agent_protocol import POLICY
from fwlab.dut.linux.agent import agent as agent_module
from fwlab.dut.linux.agent import counters as counters_module
from fwlab.dut.linux.agent import trials
from fwlab.dut.linux.agent.agent import Agent
from fwlab.dut.linux.agent.counters import Counters
from fwlab.dut.linux.agent.retired import Retired
from fwlab.rulesets.kind import Refusal
from tests.fakes.fake_kernel import FakeKernel

NO_COUNTER = Retired([])
TERMS: Any = {
    "windows": 3,
    "window_s": 0.1,
    "packets": 64,
    "idle_share": 0.001,
    "other_share": 0.005,
    "max_unsaturated": 2,
    **POLICY,
}
REQUEST = {"devices": ["eth0"], "settle_s": 0, "begun": 64, "patience_s": 1, **TERMS}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Ask an agent to measure these trials: (other_ns, of these: programs)."""
    policies: list[int] = []

    def run(planned: list[tuple[int, int]]) -> dict[str, Any]:
        left, current = list(planned), [(0, 0)]

        class RanTasks:
            """The CPU time of programs and kernel threads that the trial declares."""

            def since_last(self) -> dict[tuple[str, bool], int]:
                other, programs = current[0]
                return {("sshd", False): programs, ("rcu_sched", True): other - programs}

        def window(*_: Any) -> dict[str, Any]:
            current[0] = left.pop(0)
            return {"duration_ns": 1_000_000, "idle_ns": 0, "other_ns": current[0][0], "counts": {}}

        monkeypatch.setattr(trials, "Tasks", RanTasks)
        waiting = SimpleNamespace(wait_for_packets=lambda *_: None)
        monkeypatch.setattr(agent_module, "Counters", lambda _devices: waiting)
        monkeypatch.setattr(trials, "window", window)
        monkeypatch.setattr(trials.os, "sched_setscheduler", lambda _pid, policy, _param: policies.append(policy))
        return Agent(FakeKernel(), {}).measure(dict(REQUEST))

    yield run
    assert policies == [trials.os.SCHED_FIFO, trials.os.SCHED_OTHER], "its priority is given back"


def test_of_the_first_perturbed_trial_it_is_not_known_what_ran(measured: Any) -> None:
    alike = [(28_000 + 100 * n, 0) for n in range(7)]
    found = measured([*alike[:3], (90_000, 0), *alike[3:]])
    assert [trial["other_ns"] for trial in found["valid"]] == [other for other, _ in alike[1:4]]
    assert [trial["number"] for trial in found["perturbed"]] == [*range(6)]


def test_a_login_is_named_and_ends_the_attempt_early(measured: Any) -> None:
    """Its share of every trial is equal, like that of a program that polls."""
    found = measured([(28_000, 28_000)] * 9)
    assert found["valid"] == found["unsaturated"] == []
    assert found["cpu_ns"] == {"sshd": 8 * 28_000, "[rcu_sched]": 0}


def test_priority_is_restored_after_a_failure(measured: Any) -> None:
    with pytest.raises(IndexError):
        measured([(0, 0)])


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


@pytest.mark.parametrize(
    ("pps", "duration_ns", "packets"),
    [(1000, 100_000_000, 100), (100, 700_000_000, 70), (0, 2_100_000_000, 0)],
    ids=["as long as it must be", "until there are packets enough", "not for ever"],
)
def test_a_window(clock: SimpleNamespace, pps: int, duration_ns: int, packets: int) -> None:
    found = trials.window(FakeCounters(clock, pps), NO_COUNTER, "eth0", TERMS)
    assert (found["duration_ns"], found["idle_ns"]) == (duration_ns, duration_ns // 10)
    assert found["counts"]["eth0.rx_packets"] == packets


def test_a_dut_that_is_idle_most_of_the_time_waits_for_no_more_packets(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "idle_ns", lambda: [clock.ns * 6 // 10, clock.ns])
    found = trials.window(FakeCounters(clock, 100), NO_COUNTER, "eth0", TERMS)
    assert (found["duration_ns"], found["idle_ns"]) == (100_000_000, 60_000_000)


def test_waiting_for_packets_ends_with_a_packet_or_a_timeout(clock: SimpleNamespace) -> None:
    FakeCounters(clock, pps=1000).wait_for_packets("eth0", 64, 1)
    assert clock.ns < 100_000_000
    with pytest.raises(Refusal, match="no packet arrived at eth0 within 1 s"):
        FakeCounters(clock, pps=0).wait_for_packets("eth0", 64, 1)


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
