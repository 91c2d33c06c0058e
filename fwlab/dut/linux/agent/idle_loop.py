# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that keeps the CPU busy whenever nothing else would: the DUT's clock then counts nothing but instructions.

A CPU that sleeps has no instructions to count, and QEMU lets its clock follow the host's. The loop has the idle
scheduling class, so whatever else wants to run preempts it at once. For how long it ran is how long the DUT was idle.
"""

import contextlib
import ctypes
import os
import signal


class IdleLoop:
    """Runs from its creation on."""

    def __init__(self) -> None:
        self._pid = os.fork()
        if not self._pid:
            try:
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it must not outlive the agent
                os.closerange(0, 256)  # the conversation's pipes, whose end the host waits for
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
                while True:
                    pass
            finally:
                os._exit(1)
        self._runtime = os.open(f"/proc/{self._pid}/schedstat", os.O_RDONLY)

    def ran_ns(self) -> int:
        """For how long it has run."""
        return int(os.pread(self._runtime, 64, 0).split()[0])

    def stop(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._runtime)
