# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes are ended, and traffic is stopped, whatever happens."""

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


def ended(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit status of a process that was waited for, or killed; its pipes are closed."""
    wait_or_kill(process, timeout_s)
    assert all(pipe.closed for pipe in (process.stdin, process.stdout, process.stderr) if pipe)
    return process.returncode


def started(program: str, **pipes: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], **pipes)


def test_a_process_is_killed_only_if_it_does_not_exit() -> None:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = started("input()", **pipes)
    process.stdin.close()
    assert ended(process, 60) == 1, "end of file, and no signal"
    process = started(STUBBORN, **pipes)
    assert process.stdout.readline() == b"here\n"
    process.terminate()
    assert ended(process, 0.1) == -9
    process = started("pass", **pipes)
    process.wait()
    process.stdin.write(b"stop\n")  # buffered, so that closing the pipe fails
    assert ended(process, 1) == 0
    assert ended(started(""), 60) == 0


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
