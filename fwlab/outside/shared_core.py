# SPDX-License-Identifier: GPL-2.0-or-later
"""Slow the DUT down in real time, which its own clock cannot see.

On the virtual testbed a second of the DUT is a number of instructions. So the generator need not be
faster than the DUT: it is enough that the DUT gets less of the host. The generator's and the DUT's
virtual CPUs are put on one core of the host; while the generator plays, the DUT gets at most half of
it and its receive ring stays full. Where half is still too much, its priority is lowered step by step.
No root, no cgroup; on a host with one core or with many, idle or busy, the effect is the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from fwlab.words.errors import CannotMeasure

#: Priorities of the DUT's virtual CPU, from gentle to hard (nice values).
STEPS = (0, 5, 10, 19)


def qemu_of(ssh_address: str, ssh_port: int) -> int:
    """Process id of the QEMU that forwards this SSH port. Raises CannotMeasure."""
    wanted = f"hostfwd=tcp:{ssh_address}:{ssh_port}-:22".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            line = (folder / "cmdline").read_bytes()
            if wanted in line and b"qemu" in line.split(b"\0")[0]:
                return int(folder.name)
    raise CannotMeasure(f"no QEMU forwards {ssh_address}:{ssh_port}", "vagrant up LAB")


def vcpu_threads(pid: int) -> list[int]:
    """Thread ids of the virtual CPUs; QEMU names them "CPU n/TCG" or "CPU n/KVM"."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith("CPU "):
                found.append(int(task.name))
    if not found:
        raise CannotMeasure(f"QEMU {pid} names no CPU thread", "start it with debug-threads=on, as libvirt does")
    return sorted(found)


@contextlib.contextmanager
def shared_core(generator_pid: int, dut_pid: int, step: int) -> Iterator[None]:
    """Generator and DUT on one core, the DUT at priority STEPS[step]; undone on leaving where allowed."""
    threads = [*vcpu_threads(generator_pid), *vcpu_threads(dut_pid)]
    before = {thread: os.sched_getaffinity(thread) for thread in threads}
    core = max(os.sched_getaffinity(0))
    dut = vcpu_threads(dut_pid)
    nice = {thread: os.getpriority(os.PRIO_PROCESS, thread) for thread in dut}
    try:
        for thread in threads:
            os.sched_setaffinity(thread, {core})
        for thread in dut:
            # Only root may raise a priority again, so an ordinary user's DUT stays at its lowest.
            if STEPS[step] > nice[thread]:
                os.setpriority(os.PRIO_PROCESS, thread, STEPS[step])
        yield
    except PermissionError as error:
        raise CannotMeasure(
            f"may not move the threads of QEMU {dut_pid}: {error.strerror}",
            "run as the user who ran `vagrant up`",
        ) from error
    finally:
        for thread, cores in before.items():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, cores)
        for thread, value in nice.items():
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, thread, value)
