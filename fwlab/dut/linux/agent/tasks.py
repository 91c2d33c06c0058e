# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tasks of the DUT ran, and for how long. This names what perturbed a trial."""

import glob
import os

from fwlab.dut.linux.agent.kernel import read

#: Parent of every kernel thread.
KTHREADD = "2"
#: Each CPU has such a thread, which serves packets under overload: its work is what is measured.
SOFTIRQ_THREADS = "ksoftirqd/"


class Tasks:
    """CPU time of every task since the last call, by name. A task that is new has run since it started."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, bool, int]] = {}
        self.since_last()

    def since_last(self) -> dict[tuple[str, bool], int]:
        """{(name, whether it is a kernel thread): nanoseconds} since the call before this one.

        Without the threads that serve packets and without this agent. A process that began and ended in between is
        not seen, but its parent is.
        """
        found: dict[str, tuple[str, bool, int]] = {}
        ran: dict[tuple[str, bool], int] = {}
        for path in glob.glob("/proc/[0-9]*"):
            try:
                runtime = int(read(path + "/schedstat").split()[0])
                name, kernel, before = self._known.get(path) or (*described(path), 0)
            except (OSError, ValueError, IndexError):
                continue  # it has just ended
            found[path] = (name, kernel, runtime)
            if runtime > before and not name.startswith(SOFTIRQ_THREADS) and path != f"/proc/{os.getpid()}":
                ran[name, kernel] = ran.get((name, kernel), 0) + runtime - before
        self._known = found
        return ran


def described(path: str) -> tuple[str, bool]:
    """(name, whether it is a kernel thread) of a process; the name may hold spaces and brackets (proc(5))."""
    before, _, after = read(path + "/stat").rpartition(")")
    return before.partition("(")[2], after.split()[1] == KTHREADD or path == f"/proc/{KTHREADD}"
