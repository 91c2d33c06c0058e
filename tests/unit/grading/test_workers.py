# SPDX-License-Identifier: GPL-2.0-or-later
"""A class is graded by several workers, processes of their own on fake machines (fake_class.py)."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from distributed import Client, LocalCluster

from fwlab.checkout.project import Project
from fwlab.grading import keys
from fwlab.grading.cluster import SETTINGS, security
from fwlab.grading.keys import write_key
from fwlab.grading.verify import verify
from fwlab.model.errors import BadInput
from tests import ROOT
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading

COMMIT = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
#: Starts workers with these names, of another version if one is given.
Start = Callable[..., list[subprocess.Popen[str]]]


@pytest.fixture
def grading(tmp_path: Path) -> FakeGrading:
    return FakeGrading(tmp_path)


@pytest.fixture
def scheduler() -> Iterator[str]:
    with dask.config.set(SETTINGS), LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as one:
        yield one.scheduler_address


@pytest.fixture
def start(grading: FakeGrading, scheduler: str) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def workers(*names: str, version: str = "", **environment: str) -> list[subprocess.Popen[str]]:
        for name in names:
            words = [
                sys.executable,
                "-m",
                "tests.fakes.fake_worker",
                scheduler,
                name,
                *([version] if version else []),
            ]
            process = subprocess.Popen(
                words,
                cwd=grading.top,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            started.append(process)
            assert process.stdout is not None
            assert any("waits for work" in line for line in process.stdout)
        return started

    yield workers
    for process in started:
        process.terminate()
    for process in started:
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def hand_in(grading: FakeGrading, **words: str) -> None:
    for who, word in words.items():
        grading.hand_in(who, "rules.iptables", f"# on the DUT: {word}\n{COMMIT}")


def verdicts(grading: FakeGrading) -> dict[str, str]:
    return {row["who"]: row["verdict"] for row in grading.marks()}


def test_two_workers_give_the_marks_of_one(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("one", "two")
    hand_in(grading, ann="slow", bob="leaks", cid="slow", dan="fine", eve="idle")
    assert grading.run("--scheduler", scheduler).returncode == 1
    assert verdicts(grading) == {"ann": "pass", "bob": "fail", "cid": "pass", "dan": "pass", "eve": "inconclusive"}
    found = verify(Project(grading.top), grading.results)
    assert (found.judged, found.marks, found.faults) == (5, [], [])
    text = (grading.results / "record.jsonl").read_text()
    assert len(set(re.findall(r'"entry":"machines","name":"([^"]+)"', text))) == 2, "both have graded"


def test_a_worker_that_dies_loses_nothing(grading: FakeGrading, scheduler: str, start: Start) -> None:
    first, _ = start("one", "two")
    hand_in(grading, **{f"s{number}": "slow" for number in range(6)})
    killed = f"kill -9 {first.pid} 2>/dev/null; true"
    done = grading.run("--scheduler", scheduler, "-k", "s0", FAKE_WHILE_MEASURING="")
    assert done.returncode == 0
    os.kill(first.pid, signal.SIGSTOP)  # it holds the next task, and is killed with it
    with subprocess.Popen(["sh", "-c", f"sleep 3; {killed}"]):
        done = grading.run("--scheduler", scheduler, "--resume")
    assert done.returncode == 0, done.stderr
    assert set(verdicts(grading).values()) == {"pass"}
    assert "1 rulesets were graded before" in done.stderr


def test_a_worker_whose_machines_do_not_answer_is_not_used(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("sick", FAKE_DEAD="the DUT does not answer")
    start("well")
    hand_in(grading, ann="fine", bob="fine", cid="leaks")
    done = grading.run("--scheduler", scheduler)
    assert "sick: not used any more: its machines do not answer" in done.stderr
    assert verdicts(grading) == {"ann": "pass", "bob": "pass", "cid": "fail"}
    assert "died" not in done.stderr, "it was given up, and no ruleset is to blame"


def test_a_submission_that_kills_three_workers_is_named(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("one", "two", "three", "four")
    hand_in(grading, ann="fine", bob="crashes", cid="fine")
    done = grading.run("--scheduler", scheduler)
    assert done.returncode == 3
    assert verdicts(grading) == {"ann": "pass", "bob": "inconclusive", "cid": "pass"}
    (reason,) = [row["reason"] for row in grading.marks() if row["who"] == "bob"]
    assert reason == "3 workers died while they measured it"


def test_a_worker_of_another_version_is_refused(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("old", version="0.0.1")
    hand_in(grading, ann="fine")
    done = grading.run("--scheduler", scheduler)
    assert done.returncode == 3
    assert "this worker has version 0.0.1, the grading" in done.stderr
    start("new")
    done = grading.run("--scheduler", scheduler, "--resume")
    assert done.returncode == 0, done.stdout
    assert verdicts(grading) == {"ann": "pass"}


def test_a_worker_with_another_lab_is_not_used_any_more(grading: FakeGrading, scheduler: str, start: Start) -> None:
    """It took a copy of the labs as it started."""
    start("old")
    with (grading.top / "labs" / LAB / "lab.yml").open("a") as file:
        file.write("# changed\n")
    start("new")
    hand_in(grading, ann="fine", bob="fine", cid="fine")
    done = grading.run("--scheduler", scheduler)
    assert done.returncode == 0, done.stderr
    assert f"old: not used any more: labs/{LAB}/lab.yml is not the same here" in done.stderr


def test_a_worker_ends_cleanly(grading: FakeGrading, scheduler: str, start: Start) -> None:
    (worker,) = start("one")
    homes = grading.top / ".fwlab" / "workers"
    assert len(list(homes.glob("*/"))) == 1
    hand_in(grading, ann="fine")
    assert grading.run("--scheduler", scheduler).returncode == 0
    worker.terminate()
    assert worker.wait(60) == 0
    assert worker.stdout is not None
    assert "machines down" in worker.stdout.read()
    assert list(homes.glob("*/")) == []
    with Client(scheduler) as client, contextlib.suppress(TimeoutError):
        end = time.monotonic() + 30
        while client.scheduler_info()["workers"] and time.monotonic() < end:
            time.sleep(0.1)
        assert not client.scheduler_info()["workers"]


def test_a_scheduler_that_comes_back_is_found_again(grading: FakeGrading, tmp_path: Path) -> None:
    """The workers keep their machines meanwhile."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    hand_in(grading, ann="fine", bob="fine")

    def once(*words: str) -> SimpleNamespace:
        own = {"host": "127.0.0.1", "scheduler_port": port, "dashboard_address": "127.0.0.1:0"}
        with dask.config.set(SETTINGS), LocalCluster(n_workers=0, **own):
            return grading.run("--scheduler", address, *words)

    words = [sys.executable, "-m", "tests.fakes.fake_worker", address, "one"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    said = tmp_path / "said"
    with (
        said.open("w") as output,
        subprocess.Popen(words, cwd=grading.top, env=environment, stdout=output, stderr=subprocess.STDOUT) as worker,
    ):
        assert once("-k", "ann").returncode == 0
        assert once("--resume").returncode == 0
        worker.terminate()
    assert verdicts(grading) == {"ann": "pass", "bob": "pass"}
    lines = said.read_text().splitlines()
    assert sum("waits for work" in line for line in lines) == 2
    assert sum(line.startswith("machines up") for line in lines) == 1


def test_over_a_network_everything_has_the_key(grading: FakeGrading, tmp_path: Path) -> None:
    key, other = tmp_path / "class.pem", tmp_path / "other.pem"
    for path in (key, other):
        write_key(path, 1)
    assert key.stat().st_mode & 0o077 == 0
    own = {"host": "127.0.0.1", "protocol": "tls://", "dashboard_address": "127.0.0.1:0"}
    known = security("tls://127.0.0.1:1", key)
    hand_in(grading, ann="fine")
    with dask.config.set(SETTINGS), LocalCluster(n_workers=0, security=known, **own) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        words = [sys.executable, "-m", "tests.fakes.fake_worker", address, "one", "", str(key)]
        with subprocess.Popen(words, cwd=grading.top, env={**os.environ, "PYTHONPATH": str(ROOT)}) as worker:
            refused = grading.run("--scheduler", address, "--key", str(other))
            assert refused.returncode == 3
            assert f"no scheduler answers at {address}" in refused.stderr
            assert grading.run("--scheduler", address, "--key", str(key)).returncode == 0
            worker.terminate()
    assert verdicts(grading) == {"ann": "pass"}


def test_a_key_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "class.pem"
    write_key(key, 1)
    with pytest.raises(BadInput, match=r"class\.pem exists already"):
        write_key(key, 1)
    (tmp_path / "none.pem").write_text("no key")
    with pytest.raises(BadInput, match="not a key of a cluster"):
        security("tls://192.0.2.7:8786", tmp_path / "none.pem")

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime.now(tz) + datetime.timedelta(days=2)

    monkeypatch.setattr(keys, "datetime", SimpleNamespace(datetime=Later, UTC=datetime.UTC))
    with pytest.raises(BadInput, match="the key expired on "):
        security("tls://192.0.2.7:8786", key)


def test_a_scheduler_that_is_not_there(grading: FakeGrading) -> None:
    hand_in(grading, ann="fine")
    done = grading.run("--scheduler", "tcp://127.0.0.1:9")
    assert done.returncode == 3
    assert "no scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert verdicts(grading) == {"ann": "inconclusive"}
    assert EXERCISE in (grading.results / "marks.csv").read_text()
