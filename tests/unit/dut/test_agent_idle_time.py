# SPDX-License-Identifier: GPL-2.0-or-later
"""How the DUT's agent reads idle time, on one CPU and on several."""

import io
import os
import time
from typing import Any

import pytest

from fwlab.dut.linux.agent import kernel
from fwlab.dut.linux.agent.idle_loop import IdleLoop
from fwlab.dut.linux.agent.kernel import Kernel, idle_ns
from fwlab.rulesets.kind import Refusal

TIMER_LIST = """
cpu: 0
  .nohz_mode      : 2
  .idle_sleeptime : 4000000000 nsecs
cpu: 1
  .idle_sleeptime : 9000000000 nsecs
"""


@pytest.fixture(autouse=True)
def timer_list(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: str, *_: Any) -> io.StringIO:
        assert path == "/proc/timer_list"
        return io.StringIO(TIMER_LIST)

    monkeypatch.setattr(kernel, "open", opened, raising=False)


def test_each_cpu_has_its_idle_time() -> None:
    assert idle_ns(2) == [4_000_000_000, 9_000_000_000]
    assert idle_ns(1) == [4_000_000_000], "no more is read than is needed"


def test_a_kernel_that_tells_of_fewer_cpus_is_refused() -> None:
    with pytest.raises(Refusal, match="2 of 3 CPUs"):
        idle_ns(3)


def test_a_load_takes_cpu_seconds_wherever_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds on two CPUs, which were idle for four and nine of them."""
    monkeypatch.setattr(kernel.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    assert Kernel().busy_clock() == 7.0


def test_the_loop_that_keeps_a_cpu_awake_counts_its_turns_until_it_is_stopped() -> None:
    loop = IdleLoop()
    try:
        before = loop.idle_ns()
        deadline = time.monotonic() + 60
        while loop.idle_ns() == before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert loop.idle_ns() > before
        assert os.sched_getscheduler(loop._pid) == os.SCHED_IDLE
    finally:
        loop.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(loop._pid, 0)
