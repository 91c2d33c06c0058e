# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes are ended, and traffic is stopped, whatever happens."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from fwlab.generator.protocol import traffic_guard
from fwlab.host.process import wait_or_kill

#: Ignores SIGTERM.
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("here", flush=True)
time.sleep(600)
"""


def started(program: str) -> subprocess.Popen:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", program], **pipes)


def closed(process: subprocess.Popen) -> bool:
    return all(pipe.closed for pipe in (process.stdin, process.stdout, process.stderr))


def test_process_that_exits_by_itself_gets_no_signal() -> None:
    process = started("input()")
    process.stdin.close()
    wait_or_kill(process, 60)
    assert process.returncode == 1, "end of file, and no signal"
    assert closed(process)


def test_process_that_does_not_exit_is_killed() -> None:
    process = started(STUBBORN)
    assert process.stdout.readline() == b"here\n"
    process.terminate()
    wait_or_kill(process, 0.1)
    assert process.returncode == -9
    assert closed(process)


def test_unread_input_is_harmless() -> None:
    process = started("pass")
    process.wait()
    process.stdin.write(b"stop\n")  # buffered, so that closing the pipe fails
    wait_or_kill(process, 1)
    assert closed(process)


def test_process_without_pipes() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    wait_or_kill(process, 60)
    assert process.returncode == 0


class Traffic:
    abandoned = 0

    def abandon(self) -> None:
        self.abandoned += 1


@pytest.mark.parametrize("trouble", [OSError, KeyboardInterrupt])
def test_traffic_stops_if_its_measurement_fails(trouble: type[BaseException]) -> None:
    traffic = Traffic()
    with contextlib.suppress(trouble), traffic_guard(traffic):
        raise trouble
    assert traffic.abandoned == 1


def test_traffic_goes_on_until_it_is_stopped() -> None:
    traffic = Traffic()
    with traffic_guard(traffic) as playing:
        assert playing is traffic
    assert not traffic.abandoned
