# SPDX-License-Identifier: GPL-2.0-or-later
"""Throttling a process of the test: a thread runs in slices, and freely again however the tracer ends.

No test compares wall-clock time with a bound. The CPU time of a throttled thread is compared with that of a free one,
so a busy host slows both.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fwlab.model.errors import CannotMeasure
from fwlab.testbed import throttle, vcpu_throttle
from fwlab.testbed.kinds.virtual import OPEN_LOOP
from fwlab.testbed.qemu_process import qemu_of, vcpu_thread
from fwlab.testbed.throttle import Levels, Throttle, throttled, try_throttling
from tests import ROOT

#: A process with a waiting main thread and one busy thread, named like a virtual CPU of QEMU.
SPINNER = """
    import threading, time
    def spin():
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as name:
            name.write("ALL CPUs/TCG")
        print("spinning", flush=True)
        while True:
            pass
    threading.Thread(target=spin, daemon=True).start()
    time.sleep(600)
"""
#: Seconds to wait for what takes no time on an idle host.
PATIENCE_S = 60


class Spinner:
    def __init__(self) -> None:
        argv = [sys.executable, "-c", textwrap.dedent(SPINNER)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "spinning\n"
        self.pid = self.process.pid
        self.thread = vcpu_thread(self.pid)

    def cpu_s(self) -> float:
        """CPU seconds of the busy thread, in steps of 10 ms."""
        ticks = self._stat()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def state(self) -> str:
        return self._stat()[0]

    def _stat(self) -> list[str]:
        return Path(f"/proc/{self.pid}/task/{self.thread}/stat").read_text().rpartition(") ")[2].split()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def spinners() -> Iterator[Callable[[], Spinner]]:
    made: list[Spinner] = []

    def make() -> Spinner:
        made.append(Spinner())
        return made[-1]

    yield make
    for spinner in made:
        spinner.end()


def throttle_thread(thread: int, run_s: float, stop_s: float) -> subprocess.Popen[str]:
    """Start vcpu_throttle.py. Skips the test on a host that forbids ptrace."""
    argv = [sys.executable, vcpu_throttle.__file__, str(thread), str(run_s), str(stop_s)]
    tracer = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if tracer.stdout.readline() != "throttling\n":
        _, words = tracer.communicate()
        if tracer.returncode == 1 and "permitted" in words:
            pytest.skip(f"this host does not let a process trace its sibling: {words.strip()}")
        pytest.fail(f"vcpu_throttle.py ended with {tracer.returncode}: {words}")
    return tracer


def finish(tracer: subprocess.Popen[str]) -> int:
    tracer.communicate(timeout=PATIENCE_S)
    return tracer.returncode


def eventually(what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"never: {what}")
        time.sleep(0.01)


def runs_again(spinner: Spinner) -> None:
    before = spinner.cpu_s()
    eventually("the thread runs freely again", lambda: spinner.cpu_s() >= before + 0.1)


@pytest.fixture
def stopped(spinners: Callable[[], Spinner]) -> Iterator[tuple[Spinner, subprocess.Popen[str]]]:
    """A thread stopped for longer than any test lasts, and its tracer."""
    spinner = spinners()
    tracer = throttle_thread(spinner.thread, 0.01, 3600)
    eventually("the thread is stopped", lambda: spinner.state() == "t")
    yield spinner, tracer
    tracer.kill()
    finish(tracer)


def test_throttled_thread_gets_a_fraction_of_a_free_threads_time(spinners: Callable[[], Spinner]) -> None:
    slow, free = spinners(), spinners()
    tracer = throttle_thread(slow.thread, 0.005, 0.045)
    slow_before, free_before = slow.cpu_s(), free.cpu_s()
    eventually("the throttled one runs in its slices", lambda: slow.cpu_s() >= slow_before + 0.05)
    eventually("the free one has run for a second", lambda: free.cpu_s() >= free_before + 1)
    share = (slow.cpu_s() - slow_before) / (free.cpu_s() - free_before)
    tracer.terminate()
    assert finish(tracer) == 0
    assert share < 0.6, "a share of 0.1 was asked for"
    runs_again(slow)


def test_only_the_one_thread_is_stopped(stopped: tuple[Spinner, subprocess.Popen[str]]) -> None:
    """QEMU's other threads go on filling the DUT's receive ring."""
    spinner, _ = stopped
    main_thread = Path(f"/proc/{spinner.pid}/task/{spinner.pid}/stat").read_text().rpartition(") ")[2]
    assert main_thread[0] == "S"
    before = spinner.cpu_s()
    time.sleep(0.2)
    assert spinner.cpu_s() == before


def test_killed_tracer_releases_the_thread(stopped: tuple[Spinner, subprocess.Popen[str]]) -> None:
    spinner, tracer = stopped
    tracer.send_signal(signal.SIGKILL)
    assert finish(tracer) == -signal.SIGKILL
    runs_again(spinner)


def test_tracer_ends_with_its_parent(spinners: Callable[[], Spinner]) -> None:
    spinner = spinners()
    argv = [sys.executable, vcpu_throttle.__file__, str(spinner.thread), "0.002", "0.01"]
    script = "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); p.wait()"
    parent = subprocess.Popen([sys.executable, "-c", script, *argv], stdout=subprocess.PIPE, text=True)
    words = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
    if "throttling" not in words:
        parent.communicate()
        pytest.skip("this host does not let a process trace its sibling")
    (pid,) = words - {"throttling"}
    parent.kill()
    parent.wait()
    parent.stdout.close()
    stat = Path(f"/proc/{pid}/stat")
    # If nothing reaps it, the ended tracer stays as a zombie.
    eventually("the tracer ends", lambda: not stat.exists() or stat.read_text().rpartition(") ")[2][0] == "Z")
    runs_again(spinner)


def test_process_may_end_meanwhile_or_be_gone_already(spinners: Callable[[], Spinner]) -> None:
    spinner = spinners()
    tracer = throttle_thread(spinner.thread, 0.005, 0.01)
    spinner.end()
    assert finish(tracer) == 0
    argv = [sys.executable, vcpu_throttle.__file__, str(spinner.pid), "0.01", "0.01"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_denied_trace_has_a_message() -> None:
    """The kernel lets no process trace itself, just as it denies tracing another user's."""
    script = (
        "import os, runpy, sys; sys.argv[1:] = [str(os.getpid()), '1', '1'];"
        f"runpy.run_path({vcpu_throttle.__file__!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Operation not permitted\n")


def test_leaving_the_throttled_block_restores_full_speed(spinners: Callable[[], Spinner]) -> None:
    spinner = spinners()
    finish_early = throttle_thread(spinner.thread, 0.01, 0.01)  # skips where tracing is not allowed
    finish_early.terminate()
    finish(finish_early)
    status = Path(f"/proc/{spinner.pid}/task/{spinner.thread}/status")
    with pytest.raises(ValueError, match="from inside"), throttled(spinner.pid, OPEN_LOOP[-1]):  # noqa: PT012
        assert "TracerPid:\t0\n" not in status.read_text()
        raise ValueError("from inside")
    assert "TracerPid:\t0\n" in status.read_text()
    runs_again(spinner)


def test_level_0_of_an_open_loop_does_not_throttle() -> None:
    with Throttle(Levels(OPEN_LOOP, OPEN_LOOP), "127.0.0.1", 1)(0):
        pass
    shares = [level.share for level in OPEN_LOOP]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)


def test_denied_ptrace_names_the_process_and_the_setting(
    spinners: Callable[[], Spinner], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "denied.py"
    program.write_text("import sys; sys.exit('Operation not permitted')")
    monkeypatch.setattr(vcpu_throttle, "__file__", str(program))
    spinner = spinners()
    with pytest.raises(CannotMeasure) as refused, throttled(spinner.pid, OPEN_LOOP[-1]):
        pytest.fail("was throttled")
    assert refused.value.message == (
        f"cannot throttle QEMU (pid {spinner.pid}): ptrace denied (Operation not permitted)"
    )
    assert "kernel.yama.ptrace_scope" in refused.value.hint


def test_a_machine_that_does_not_run_and_a_process_that_is_none_are_named() -> None:
    with pytest.raises(CannotMeasure, match="no QEMU forwards 127.0.0.1:1") as refused:
        qemu_of("127.0.0.1", 1)
    assert refused.value.hint == "vagrant up LAB"
    with pytest.raises(CannotMeasure, match=f"QEMU {os.getpid()} names no CPU thread"):
        vcpu_thread(os.getpid())


@pytest.mark.parametrize(("apart", "found"), [([], True), (["unshare", "--net"], False), (["unshare", "-rn"], False)])
def test_the_qemu_of_a_container_with_the_same_port_is_not_ours(apart: list[str], found: bool) -> None:
    """A process that looks like QEMU, in our network and in one of its own."""
    if apart and subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip(f"{' '.join(apart)} is not allowed here")
    script = ["-c", "print('up', flush=True); input()", "hostfwd=tcp:127.0.0.1:64999-10.0.2.15:22"]
    argv = [*apart, "bash", "-c", 'exec -a qemu-made-up "$@"', "bash", sys.executable, *script]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, text=True, **pipes) as process:
        assert process.stdout.readline() == "up\n"
        if found:
            assert qemu_of("127.0.0.1", 64999) == process.pid
        else:
            with pytest.raises(CannotMeasure):
                qemu_of("127.0.0.1", 64999)
        process.kill()


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
def test_a_qemu_without_a_machine_shows_whether_throttling_is_allowed() -> None:
    try_throttling(str(ROOT / "provision" / "host" / "qemu-traceable"))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("/bin/false", "ended with exit code 1"),
        ("/none/qemu", "cannot start /none/qemu: No such"),
        ("#!/bin/sh\nexec sleep 600\n", "did not become QEMU within 0 s"),
    ],
)
def test_a_program_that_does_not_become_qemu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    if "\n" in program:
        (tmp_path / "waits").write_text(program)
        (tmp_path / "waits").chmod(0o755)
        program = str(tmp_path / "waits")
        monkeypatch.setattr(throttle, "PATIENCE_S", 0)
    with pytest.raises(CannotMeasure, match=words):
        try_throttling(program)
