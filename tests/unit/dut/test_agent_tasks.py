# SPDX-License-Identifier: GPL-2.0-or-later
"""The program that perturbed a trial is found among the DUT's processes."""

from pathlib import Path

import pytest

from fwlab.dut.linux.agent import tasks


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tasks.glob, "glob", lambda _pattern: sorted(str(path) for path in tmp_path.iterdir()))
    return tmp_path


def process(folder: Path, pid: int, name: str, parent: int, runtime: int) -> None:
    (folder / str(pid)).mkdir(exist_ok=True)
    (folder / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 0 0")
    (folder / str(pid) / "schedstat").write_text(f"{runtime} 7 9")


def test_what_ran_since_the_last_call_by_name(processes: Path) -> None:
    process(processes, 12, tasks.SOFTIRQ_THREADS + "0", 2, 1000)
    process(processes, 13, "rcu_sched", 2, 500)
    process(processes, 700, "sshd", 1, 4000)
    looking = tasks.Tasks()
    assert looking.since_last() == {}
    process(processes, 12, tasks.SOFTIRQ_THREADS + "0", 2, 9000)
    process(processes, 13, "rcu_sched", 2, 600)
    process(processes, 700, "sshd", 1, 4100)
    process(processes, 701, "odd ) name", 700, 30)
    assert looking.since_last() == {("rcu_sched", True): 100, ("sshd", False): 100, ("odd ) name", False): 30}


def test_a_process_that_has_just_ended_is_skipped(processes: Path) -> None:
    process(processes, 700, "sshd", 1, 4000)
    (processes / "701").mkdir()
    looking = tasks.Tasks()
    process(processes, 700, "sshd", 1, 4001)
    assert looking.since_last() == {("sshd", False): 1}
