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
from typing import Any, cast

import dask
import pytest
from distributed import Client, LocalCluster
from distributed.comm import CommClosedError

from fwlab.checkout.project import Project
from fwlab.grading import grader, keys
from fwlab.grading.cluster import SETTINGS, Cluster, security
from fwlab.grading.engine import Engine
from fwlab.grading.grading_plan import plan_grading
from fwlab.grading.keys import write_key
from fwlab.grading.options import GradingOptions
from fwlab.grading.verify import verify
from fwlab.measure.context import RunContext
from fwlab.model.errors import BadInput
from tests.fakes import fake_class
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading
from tests.fakes.fake_worker import FakeWorker

#: Starts workers with these names, of another version if one is given.
Start = Callable[..., list[FakeWorker]]


@pytest.fixture
def scheduler() -> Iterator[str]:
    with dask.config.set(SETTINGS), LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as one:
        yield one.scheduler_address


@pytest.fixture
def start(grading: FakeGrading, scheduler: str) -> Iterator[Start]:
    started: list[FakeWorker] = []

    def workers(*names: str, version: str = "", **environment: str) -> list[FakeWorker]:
        for name in names:
            started.append(FakeWorker(grading.top, scheduler, name, version, **environment))
            assert any("waits for work" in line for line in started[-1].stdout)
        return started

    yield workers
    for worker in started:
        worker.terminate()
    for worker in started:
        worker.end()


def test_two_workers_give_the_marks_of_one(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("one", "two")
    grading.hand_in_all(ann="slow", bob="leaks", cid="slow", dan="fine", eve="idle")
    assert grading.run("--scheduler", scheduler).returncode == 1
    assert grading.verdicts() == {"ann": "pass", "bob": "fail", "cid": "pass", "dan": "pass", "eve": "inconclusive"}
    found = verify(Project(grading.top), grading.results)
    assert (found.judged, found.marks, found.faults) == (5, [], [])
    text = (grading.results / "record.jsonl").read_text()
    assert len(set(re.findall(r'"entry":"machines","name":"([^"]+)"', text))) == 2, "both have graded"


def test_a_worker_that_dies_loses_nothing(grading: FakeGrading, scheduler: str, start: Start) -> None:
    first, _ = start("one", "two")
    grading.hand_in_all(**{f"s{number}": "slow" for number in range(6)})
    assert grading.run("--scheduler", scheduler, "-k", "s0").returncode == 0
    os.kill(first.pid, signal.SIGSTOP)  # it holds the next task, and is killed with it
    with subprocess.Popen(["sh", "-c", f"sleep 3; kill -9 {first.pid} 2>/dev/null"]):
        done = grading.run("--scheduler", scheduler, "--resume")
    assert done.returncode == 0, done.stderr
    assert set(grading.verdicts().values()) == {"pass"}
    assert "1 rulesets were graded before" in done.stderr


def test_a_worker_whose_machines_do_not_answer_is_not_used(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("sick", FAKE_DEAD="the DUT does not answer")
    start("well")
    grading.hand_in_all(ann="fine", bob="fine", cid="leaks")
    done = grading.run("--scheduler", scheduler)
    assert "sick: not used any more: its machines do not answer" in done.stderr
    assert grading.verdicts() == {"ann": "pass", "bob": "pass", "cid": "fail"}
    assert "died" not in done.stderr, "it was given up, and no ruleset is to blame"


def test_a_submission_that_kills_three_workers_is_named(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("one", "two", "three", "four")
    grading.hand_in_all(ann="fine", bob="crashes", cid="fine")
    done = grading.run("--scheduler", scheduler)
    assert done.returncode == 3
    assert grading.verdicts() == {"ann": "pass", "bob": "inconclusive", "cid": "pass"}
    (reason,) = [row["reason"] for row in grading.marks() if row["who"] == "bob"]
    assert reason == "3 workers died while they measured it"


def test_a_second_worker_of_one_name_is_refused(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("one")
    with FakeWorker(grading.top, scheduler, "one") as second:
        assert f"one: a worker of this name grades for {scheduler} already" in second.stdout.read()
        assert second.wait()
    grading.hand_in_all(ann="fine")
    assert grading.run("--scheduler", scheduler).returncode == 0


def test_a_worker_of_another_version_is_refused(grading: FakeGrading, scheduler: str, start: Start) -> None:
    start("old", version="0.0.1")
    grading.hand_in_all(ann="fine")
    done = grading.run("--scheduler", scheduler)
    assert done.returncode == 3
    assert "this worker has version 0.0.1, the grading" in done.stderr
    start("new")
    done = grading.run("--scheduler", scheduler, "--resume")
    assert done.returncode == 0, done.stdout
    assert grading.verdicts() == {"ann": "pass"}


def test_a_worker_with_another_lab_is_not_used_any_more(grading: FakeGrading, scheduler: str, start: Start) -> None:
    """It took a copy of the labs as it started."""
    start("old")
    with (grading.top / "labs" / LAB / "lab.yml").open("a") as file:
        file.write("# changed\n")
    start("new")
    grading.hand_in_all(ann="fine", bob="fine", cid="fine")
    done = grading.run("--scheduler", scheduler)
    assert done.returncode == 0, done.stderr
    assert f"old: not used any more: labs/{LAB}/lab.yml is not the same here" in done.stderr


def test_a_worker_ends_cleanly(grading: FakeGrading, scheduler: str, start: Start) -> None:
    (worker,) = start("one")
    homes = grading.top / ".fwlab" / "workers"
    assert len(list(homes.glob("*/"))) == 1
    grading.hand_in_all(ann="fine")
    assert grading.run("--scheduler", scheduler).returncode == 0
    worker.terminate()
    assert worker.wait(60) == 0
    assert "machines down" in worker.stdout.read()
    assert list(homes.glob("*/")) == []
    with Client(scheduler) as client:
        end = time.monotonic() + 30
        while client.scheduler_info()["workers"]:
            assert time.monotonic() < end
            time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_scheduler_that_comes_back_is_found_again(grading: FakeGrading) -> None:
    """The workers keep their machines meanwhile."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    grading.hand_in_all(ann="fine", bob="fine")

    def once(*words: str) -> SimpleNamespace:
        own = {"host": "127.0.0.1", "scheduler_port": port, "dashboard_address": "127.0.0.1:0"}
        with dask.config.set(SETTINGS), LocalCluster(n_workers=0, **own):
            return grading.run("--scheduler", address, *words)

    with FakeWorker(grading.top, address, "one") as worker:
        assert once("-k", "ann").returncode == 0
        assert once("--resume").returncode == 0
        worker.terminate()
        lines = worker.stdout.read().splitlines()
    assert grading.verdicts() == {"ann": "pass", "bob": "pass"}
    assert sum("waits for work" in line for line in lines) == 2
    assert sum(line.startswith("machines up") for line in lines) == 1


def test_a_scheduler_that_dies_ends_the_grading(grading: FakeGrading) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    program = [str(Path(sys.executable).with_name("dask")), "scheduler", "--no-dashboard", "--host", address]
    grading.hand_in_all(**{f"s{number}": "slow" for number in range(9)})
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    decided = f'until grep -q \'"entry":"work"\' {grading.results}/record.jsonl; do sleep 0.1; done'
    with (
        subprocess.Popen(program, **quiet) as scheduler,
        FakeWorker(grading.top, address, "one"),
        subprocess.Popen(["sh", "-c", f"{decided}; sleep 2; kill -9 {scheduler.pid}"], **quiet),
    ):
        done = grading.fwlab("grade", LAB, "--submissions", str(grading.folder), "--scheduler", address)
        scheduler.kill()
    assert done.returncode == 3
    assert "the scheduler does not answer any more" in done.stderr
    assert "Traceback" not in done.stderr
    assert set(grading.verdicts().values()) == {"pass", "inconclusive"}


def test_over_a_network_everything_has_the_key(grading: FakeGrading, tmp_path: Path) -> None:
    key, other = tmp_path / "class.pem", tmp_path / "other.pem"
    for path in (key, other):
        write_key(path, 1)
    assert key.stat().st_mode & 0o077 == 0
    own = {"host": "127.0.0.1", "protocol": "tls://", "dashboard_address": "127.0.0.1:0"}
    known = security("tls://127.0.0.1:1", key)
    grading.hand_in_all(ann="fine")
    with dask.config.set(SETTINGS), LocalCluster(n_workers=0, security=known, **own) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        with FakeWorker(grading.top, address, "one", key=key):
            refused = grading.run("--scheduler", address, "--key", str(other))
            assert refused.returncode == 3
            assert f"no scheduler answers at {address}" in refused.stderr
            assert grading.run("--scheduler", address, "--key", str(key)).returncode == 0
    assert grading.verdicts() == {"ann": "pass"}


def test_a_key_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "class.pem"
    write_key(key, 1)
    with pytest.raises(BadInput, match=r"class\.pem exists already"):
        write_key(key, 1)
    (tmp_path / "none.pem").write_text("no key")
    with pytest.raises(BadInput, match="not a key of a cluster"):
        security("tls://192.0.2.7:8786", tmp_path / "none.pem")

    for days, what in ((2, "the key expired on "), (-2, "the key is not valid before .* this host's clock says")):
        today = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        clock = SimpleNamespace(datetime=SimpleNamespace(now=lambda _, today=today: today), UTC=datetime.UTC)
        monkeypatch.setattr(keys, "datetime", clock)
        with pytest.raises(BadInput, match=what):
            security("tls://192.0.2.7:8786", key)


def test_a_scheduler_that_is_not_there(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine")
    done = grading.run("--scheduler", "tcp://127.0.0.1:9")
    assert done.returncode == 3
    assert "no scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert grading.verdicts() == {"ann": "inconclusive"}
    assert EXERCISE in (grading.results / "marks.csv").read_text()


def test_frame_tables_of_the_plan_serve_the_worker_of_this_process(
    grading: FakeGrading, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    @contextlib.contextmanager
    def session(context: RunContext, tell: object) -> Iterator[fake_class.FakeSession]:
        opened.append(context)
        yield fake_class.FakeSession(context)

    monkeypatch.setattr(grader, "open_session", session)
    project = Project(grading.top)
    plan = plan_grading(project, GradingOptions(labs=[LAB]))
    [planned] = plan.contexts.values()
    setup = grader.Setup(LAB, "linux", planned.seed, engine=planned.engine, engine_why=planned.engine_why)
    for contexts in ([planned], []):
        worker = grader.Grader(project, lambda _event: None, contexts)
        worker.session(setup)
        worker.close()
    assert [context.store is planned.store for context in opened] == [True, False]


def test_no_worker_is_known_while_the_scheduler_is_away() -> None:
    def away(**_: Any) -> None:
        raise CommClosedError("in <TCP (closed) ConnectionPool.identity>: ConnectionResetError")

    cluster: Any = SimpleNamespace(_client=SimpleNamespace(scheduler_info=away))
    assert cast(Any, Cluster.workers).fget(cluster) == {}


def test_that_there_is_no_worker_is_reported_once_each_time() -> None:
    said: list[str] = []
    options = SimpleNamespace(scheduler="tls://192.0.2.7:8786")
    engine: Any = SimpleNamespace(_waiting=False, notify=said.append, plan=SimpleNamespace(options=options))
    for workers in ({}, {}, {"one": 1}, {}):
        Engine._wait_for_workers(engine, cast(Any, SimpleNamespace(workers=workers)))
    assert said == ["waiting for a worker; next, on each host: fwlab worker tls://192.0.2.7:8786"] * 2
