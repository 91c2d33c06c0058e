# SPDX-License-Identifier: GPL-2.0-or-later
"""Throttle the DUT in real time, which a clock that counts instructions does not notice.

On the virtual testbed one second of the DUT is a number of instructions. So the generator need not be faster than the
DUT: the DUT gets less of the host until its receive ring never runs empty. Its virtual CPU runs and stops in slices of
a few milliseconds (vcpu_throttle.py) while its NIC goes on filling the ring.

Why ptrace and nothing simpler: libvirt's vcpu_quota and the cgroup's cpu.max work in periods of at least 1 ms and need
root; the shortest slice here is 0.5 ms, and an ordinary user measures too. A scheduling priority holds only within one
session or cgroup. SIGSTOP stops all of QEMU, its NIC included.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fwlab.host.environment import timeout_scale
from fwlab.host.process import helper, piped
from fwlab.model.errors import CannotMeasure
from fwlab.testbed import vcpu_throttle
from fwlab.testbed.qemu_process import qemu_of, vcpu_thread

#: What to do where ptrace is denied. With a scope of 1, QEMU allows it itself (provision/host/qemu-traceable).
UNTRACEABLE = "run as the user who ran `vagrant up`; unless you are root, kernel.yama.ptrace_scope must be 0 or 1"

#: How long a program may take to become QEMU (s).
PATIENCE_S = 10


@dataclass(frozen=True)
class Level:
    """The virtual CPU runs for `share` of real time, in slices of `run_s` seconds. A share of 1 does not throttle."""

    share: float
    run_s: float

    @property
    def stop_s(self) -> float:
        """Length of the pause after each slice (s)."""
        return self.run_s * (1 / self.share - 1)


@dataclass(frozen=True)
class Levels:
    """Throttle levels from least to most, as many for each kind of traffic.

    open_loop    the generator sends at its own rate
    closed_loop  the generator waits for answers, as with TCP connections
    """

    open_loop: tuple[Level, ...]
    closed_loop: tuple[Level, ...]

    def __len__(self) -> int:
        return len(self.open_loop)


UNTHROTTLED = Levels((Level(1.0, 0.0),), (Level(1.0, 0.0),))


class Throttle:
    """Throttles the DUT whose QEMU forwards an SSH port."""

    def __init__(self, levels: Levels, ssh_address: str, ssh_port: int) -> None:
        self._levels, self._forwarded = levels, (ssh_address, ssh_port)

    def __len__(self) -> int:
        return len(self._levels)

    @contextlib.contextmanager
    def __call__(self, level: int, *, loop: bool = False) -> Iterator[None]:
        """Throttle to a level while the body runs; `loop` for traffic that waits for answers. Raises CannotMeasure."""
        chosen = (self._levels.closed_loop if loop else self._levels.open_loop)[level]
        if chosen.share == 1.0:
            yield
            return
        # Looked up each time: restoring the DUT starts another process.
        with throttled(qemu_of(*self._forwarded), chosen):
            yield


@contextlib.contextmanager
def throttled(qemu: int, level: Level, thread: int | None = None) -> Iterator[None]:
    """Throttle a thread of process `qemu`, by default its virtual CPU, while the body runs. Raises CannotMeasure."""
    thread = thread or vcpu_thread(qemu)
    with helper(vcpu_throttle.__file__, thread, level.run_s, level.stop_s) as process:
        if not piped(process.stdout).readline():
            reason = piped(process.stderr).read().strip()
            raise CannotMeasure(f"cannot throttle QEMU (pid {qemu}): ptrace denied ({reason})", UNTRACEABLE)
        yield


def try_throttling(emulator: str) -> None:
    """Throttle a QEMU without a machine that this program starts. Raises CannotMeasure if that is denied."""
    words = [emulator, "-machine", "none", "-nodefaults", "-display", "none", "-S"]
    null = subprocess.DEVNULL
    try:
        process = subprocess.Popen(words, start_new_session=True, stdin=null, stdout=null, stderr=null)
    except OSError as error:
        raise CannotMeasure(f"cannot start {emulator}: {error.strerror}", "make setup") from error
    try:
        deadline = time.monotonic() + PATIENCE_S * timeout_scale()
        while not _is_qemu(process.pid):  # the program may be a script that becomes QEMU
            if process.poll() is not None:
                raise CannotMeasure(f"{emulator} ended with exit code {process.returncode}", "make setup")
            if time.monotonic() > deadline:
                raise CannotMeasure(f"{emulator} did not become QEMU within {PATIENCE_S} s", "make setup")
            time.sleep(0.01)
        with throttled(process.pid, Level(0.5, 0.001), process.pid):
            pass
    finally:
        process.kill()
        process.wait()


def _is_qemu(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "qemu-system" in Path(f"/proc/{pid}/exe").readlink().name
    return False
