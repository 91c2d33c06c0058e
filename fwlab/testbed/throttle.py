# SPDX-License-Identifier: GPL-2.0-or-later
"""Slow the DUT down in real time, which its own clock cannot see.

On the virtual testbed a second of the DUT is a number of instructions. So the generator need not be faster
than the DUT; it is enough that the DUT gets less of the host, until its receive ring never runs dry. Its
virtual CPU runs and stands in turns of some milliseconds (turns.py), while its NIC goes on filling the ring.

What does not work, and why: a priority holds only within one session or one control group, and an ordinary
user cannot take it back; stopping the whole of QEMU (SIGSTOP) stops its NIC as well.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fwlab.host.process import see_off
from fwlab.model.errors import CannotMeasure
from fwlab.testbed import vcpu_throttle

#: Step by step, the share of real time in which the DUT may run. Step 0 leaves it alone.
STEPS: tuple[float, ...] = (1.0, 0.3, 0.12, 0.05)

#: How long a turn of running is, step by step (s). A full ring of 1024 packets must outlast it: on a fast host a DUT
#: that drops in its driver (XDP) is through with one in less than 2 ms.
RUNNING_S: tuple[float, ...] = (0.002, 0.002, 0.001, 0.0005)

#: The same for a closed loop, such as TCP connections, as many steps. Between two turns each connection gets one packet
#: on, so that the connections keep the DUT busy for a short turn only (512 for one of 0.5 ms, with room to spare); and
#: the two ends have more to do for a packet than the DUT has, so that it is never let alone.
LOOP_STEPS: tuple[float, ...] = (0.2, 0.12, 0.08, 0.05)
LOOP_RUNNING_S = 0.0005


def qemu_of(ssh_address: str, ssh_port: int) -> int:
    """Process id of the QEMU that forwards this SSH port. Raises CannotMeasure."""
    wanted = f"{ssh_address}:{ssh_port}-".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if wanted in line and b"qemu" in line.split(b"\0")[0] and _here(folder):
                return int(folder.name)
    raise CannotMeasure(f"no QEMU forwards {ssh_address}:{ssh_port}", "vagrant up LAB")


def _here(process: Path) -> bool:
    """Whether its loopback address is ours: the QEMU of a container on this host may forward the same port."""
    try:
        return (process / "ns/net").stat().st_ino == Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return True  # another user's process, of which that cannot be seen


def vcpu_thread(pid: int) -> int:
    """Thread id of the one virtual CPU: named "CPU 0/TCG", "CPU 0/KVM" or, with -icount, "ALL CPUs/TCG"."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith(("CPU ", "ALL CPUs")):
                return int(task.name)
    raise CannotMeasure(f"QEMU {pid} names no CPU thread", "start it with debug-threads=on, as libvirt does")


@contextlib.contextmanager
def slowed(qemu: int, step: int, *, loop: bool = False) -> Iterator[None]:
    """The virtual CPU of process `qemu` runs for STEPS[step] of the time; at full speed again on leaving.

    With `loop` for LOOP_STEPS[step], in shorter turns: for traffic that waits for its answers.
    """
    share, running_s = (LOOP_STEPS[step], LOOP_RUNNING_S) if loop else (STEPS[step], RUNNING_S[step])
    if share == 1.0:
        yield
        return
    standing = running_s * (1 / share - 1)
    process = subprocess.Popen(
        [sys.executable, vcpu_throttle.__file__, str(vcpu_thread(qemu)), str(running_s), str(standing)],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if not process.stdout.readline():
            words = process.stderr.read().strip()
            raise CannotMeasure(
                f"may not slow the DUT's QEMU ({qemu}): {words}",
                "run as the user who ran `vagrant up`; `sysctl kernel.yama.ptrace_scope` must be 0 or you root",
            )
        yield
    finally:
        process.terminate()
        see_off(process, 10)
