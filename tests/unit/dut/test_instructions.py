# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions per packet: by the clock on the virtual testbed, by the CPUs' own counters on the real one."""

import itertools
import os
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.dut.agent_protocol import POLICY
from fwlab.dut.linux.agent import retired as retired_module
from fwlab.dut.linux.agent import trials
from fwlab.dut.linux.agent.retired import READING, Retired, open_counter, retired
from fwlab.judge.verdicts import faults
from fwlab.metrics.registry import METRICS
from fwlab.model.results import TestbedFacts
from fwlab.model.trial import Trial
from tests.fakes.factories import a_lab, a_run, measured, real, testbed

METRIC = METRICS["instructions"]


def file_with(*readings: bytes) -> int:
    """A descriptor from which these can be read, one at a time."""
    reader, writer = os.pipe()
    for reading in readings:
        os.write(writer, reading)
    os.close(writer)
    return reader


@pytest.mark.parametrize(
    ("readings", "sum_"),
    [
        ([READING.pack(70, 5, 5), READING.pack(30, 5, 5)], 100),
        ([READING.pack(70, 5, 5), READING.pack(30, 5, 4)], None),
        ([b""], None),
    ],
    ids=["of all CPUs", "one was shared", "one was lost"],
)
def test_counters_are_added_if_each_counted_all_the_time(readings: list[bytes], sum_: int | None) -> None:
    assert Retired([file_with(reading) for reading in readings]).read() == sum_


def test_a_cpu_without_a_counter_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def first_only(cpu: int) -> int:
        if cpu:
            raise OSError(2, "none")
        opened.append(file_with(READING.pack(1, 1, 1)))
        return opened[-1]

    monkeypatch.setattr(retired_module, "open_counter", first_only)
    monkeypatch.setattr(retired_module.os, "cpu_count", lambda: 2)
    with retired() as found:
        assert found.read() is None
    with pytest.raises(OSError, match="Bad file"):
        os.read(opened[0], 1)


def test_a_refused_counter_raises_the_kernels_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    libc = SimpleNamespace(syscall=lambda *words: asked.append(words) or -1)
    monkeypatch.setattr(retired_module, "ctypes", SimpleNamespace(CDLL=lambda *_, **__: libc, get_errno=lambda: 2))
    with pytest.raises(OSError, match="no counter of instructions on CPU 3"):
        open_counter(3)
    number, attributes, pid, cpu, group, _flags = asked[0]
    assert (number, pid, cpu, group) == (298, -1, 3, -1)
    assert isinstance(attributes, bytes)
    assert attributes[:16] == bytes([0, 0, 0, 0, 136, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), "hardware, size, instructions"
    assert len(attributes) == 136


@pytest.mark.parametrize(
    ("counter", "expected"), [(SimpleNamespace(read=itertools.count(5000, 1000).__next__), 1000), (Retired([]), None)]
)
def test_a_trial_has_what_was_retired_in_it(
    counter: Retired, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SimpleNamespace(ns=0)

    def sleep(seconds: float) -> None:
        now.ns += round(seconds * 1e9)

    counters = SimpleNamespace(
        read_at=lambda: (now.ns, {"eth0.rx_packets": now.ns // 1000}), served_ns=lambda: [now.ns]
    )
    monkeypatch.setattr(trials, "time", SimpleNamespace(sleep=sleep, process_time_ns=lambda: 0))
    monkeypatch.setattr(trials, "idle_ns", lambda: [0])
    terms: Any = {"window_s": 0.1, "packets": 64, **POLICY}
    assert trials.window(counters, counter, "eth0", terms)["instructions"] == expected


@pytest.mark.parametrize(
    ("trial", "facts", "values"),
    [
        ({"processed": 500, "instructions": 2_000_000}, real(), [4000.0]),
        ({"processed": 500}, real(), []),
        # At 4 ns an instruction, a busy second is 250 million of them.
        ({"processed": 100_000}, testbed(ns_per_instruction=4), [2500.0]),
    ],
    ids=["the CPUs' counters", "no counter", "the clock of the virtual testbed"],
)
def test_instructions_per_packet(trial: dict[str, int], facts: TestbedFacts, values: list[float]) -> None:
    flood = [Trial(duration_s=2, busy_s=1, **trial)]
    assert METRIC.values(measured(a_lab(), "raw-drop", trials=flood), facts) == values


def test_a_dut_that_could_not_be_saturated_gives_no_reliable_figure() -> None:
    flood = [Trial(duration_s=2, busy_s=2, processed=500, instructions=2_000_000)]
    idle = measured(a_lab(), "raw-drop", trials=flood, unsaturated=["DUT not saturated: 1 of 5 valid trials"])
    assert faults(idle, METRIC, a_run([idle], testbed=real())) == ["DUT not saturated: 1 of 5 valid trials"]
