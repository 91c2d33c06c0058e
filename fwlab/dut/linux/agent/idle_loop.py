# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that keeps the CPU busy whenever nothing else would: the DUT's clock then counts nothing but instructions.

A CPU that sleeps has no instructions to count, and QEMU lets its clock follow the host's. The loop has the idle
scheduling class, so whatever else wants to run preempts it at once.

It counts its own turns, and so the time in which the DUT had nothing to do. Its CPU time says less: the kernel adds to
it what interrupts do meanwhile, and below overload they do all the work of packets.
"""

import contextlib
import ctypes
import mmap
import os
import signal
import time

from fwlab.rulesets.kind import Refusal

#: For so long the loop runs alone, to learn how long a turn takes (s).
ALONE_S = 0.05
#: Maximum number of checks, a tenth of that apart, whether it has begun.
BEGUN = 1000


class IdleLoop:
    """Runs from its creation on."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._turns = memoryview(self._memory).cast("Q")
        self._pid = os.fork()
        if not self._pid:
            self._run()
        self._turn_ns = self._timed()  # now: once packets come, the loop is no longer alone

    def _timed(self) -> float:
        """How long a turn takes (ns)."""
        for _ in range(BEGUN):
            if self._turns[0]:
                break
            time.sleep(ALONE_S / 10)
        else:
            raise Refusal("the idle loop does not run")
        time.sleep(ALONE_S)  # until what this request itself caused is over
        first, before = self._turns[0], time.monotonic_ns()
        time.sleep(ALONE_S)
        return (time.monotonic_ns() - before) / max(1, self._turns[0] - first)

    def _run(self) -> None:
        try:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it must not outlive the agent
            os.closerange(0, 256)  # the conversation's pipes, whose end the host waits for
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            turns = self._turns
            count = 0
            while True:
                count += 1
                turns[0] = count
        finally:
            os._exit(1)

    def idle_ns(self) -> int:
        """For how long the CPU has had nothing else to do, since the loop began."""
        return round(self._turns[0] * self._turn_ns)

    def stop(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._turns.release()
        self._memory.close()
