# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tasks of the DUT ran, and for how long: what disturbed a trial is told by its name."""

import glob
import os

from fwlab.dut.linux.agent.kernel import read

#: Parent of every kernel thread.
KTHREADD = "2"
#: Serves packets under overload: what it does is what is measured.
SOFTIRQ_THREAD = "ksoftirqd/0"


class Tasks:
    """CPU time of every task since the last look, by name. What is new since then has run from its start."""

    def __init__(self):
        self.known = {}
        self.look()

    def look(self):
        """{(name, whether it is a kernel thread): nanoseconds} since the look before this one.

        Without the thread that serves packets and without this agent. A process that began and ended in between is
        not seen; its parent is.
        """
        found, ran = {}, {}
        for path in glob.glob("/proc/[0-9]*"):
            try:
                runtime = int(read(path + "/schedstat").split()[0])
                name, kernel, before = self.known.get(path) or (*described(path), 0)
            except (OSError, ValueError, IndexError):
                continue  # it has just ended
            found[path] = (name, kernel, runtime)
            if runtime > before and name != SOFTIRQ_THREAD and path != f"/proc/{os.getpid()}":
                ran[name, kernel] = ran.get((name, kernel), 0) + runtime - before
        self.known = found
        return ran


def described(path):
    """(name, whether it is a kernel thread) of a process; the name may hold spaces and brackets (proc(5))."""
    before, _, after = read(path + "/stat").rpartition(")")
    return before.partition("(")[2], after.split()[1] == KTHREADD or path == f"/proc/{KTHREADD}"
