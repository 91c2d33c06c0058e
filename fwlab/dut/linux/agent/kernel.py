# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT's kernel says of itself, and how its tools are called."""

import subprocess
import time


class Refusal(Exception):
    """What the host is told in these words: a tool that refuses a file, a DUT that lacks something."""


def read(path):
    with open(path) as file:
        return file.read()


def quiet(*argv, text=None):
    """Run a tool whose failure does not matter; its output is in the answer."""
    return subprocess.run(argv, input=text, capture_output=True, text=True, errors="replace", check=False)


def modules():
    """Names of the loaded modules, the youngest first."""
    return [line.split()[0] for line in read("/proc/modules").splitlines()]


def idle_ns():
    """Nanoseconds that the CPU has been idle since boot (kernel: tick_sched.idle_sleeptime)."""
    with open("/proc/timer_list") as lines:
        for line in lines:
            if ".idle_sleeptime" in line:
                return int(line.split(":")[1].split()[0])
    raise Refusal("/proc/timer_list has no idle_sleeptime")


def busy_clock():
    """Seconds of busy time: the clock less the idle time."""
    return time.monotonic() - idle_ns() / 1e9
