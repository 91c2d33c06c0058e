# SPDX-License-Identifier: GPL-2.0-or-later
"""Access to the DUT's kernel: its files under /proc and /sys, and its tools."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable

from fwlab.rulesets.kind import Refusal

DEVICES = "/sys/class/net"


class Kernel:
    """What the agent and the loaders of rulesets see of the DUT. Tests put another one in its place."""

    def run(self, *argv: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a tool whose failure does not matter. A missing tool is a failure (exit status 127)."""
        try:
            return self.call(list(argv), text)
        except OSError as error:
            return subprocess.CompletedProcess(argv, 127, "", str(error))

    def call(self, argv: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a tool with `text` as its standard input. Raises OSError if it cannot be started."""
        # Some tools cut their messages in the middle of a character.
        return subprocess.run(argv, input=text, capture_output=True, text=True, errors="replace", check=False)

    def read(self, path: str) -> str:
        """The text of a file of the kernel. Raises OSError."""
        return read(path)

    def write(self, path: str, text: str) -> None:
        """Write to a file of the kernel. An error does not matter."""
        with contextlib.suppress(OSError), open(path, "w") as file:
            file.write(text)

    def reader(self, path: str) -> Callable[[], str]:
        """Reads a file of the kernel again and again; it stays open as long as this reader exists. Raises OSError."""
        file = open(path, "rb", buffering=0)

        def again() -> str:
            file.seek(0)
            return file.read().decode()

        return again

    def writer(self, path: str) -> Callable[[str], bool]:
        """Writes to a file of the kernel, which stays open as long as this writer exists. False if that failed."""
        try:
            file = open(path, "wb", buffering=0)
        except OSError:
            return lambda _text: False

        def write(text: str) -> bool:
            try:
                return bool(file.write(text.encode()))
            except OSError:
                return False

        return write

    def exists(self, path: str) -> bool:
        """Whether the file exists."""
        return os.path.exists(path)

    def modules(self) -> list[str]:
        """Names of the loaded modules, the youngest first."""
        return [line.split()[0] for line in self.read("/proc/modules").splitlines()]

    def devices(self) -> list[str]:
        """Names of the Ethernet devices."""
        return sorted(name for name in os.listdir(DEVICES) if name.startswith("eth"))

    def busy_clock(self) -> float:
        """CPU seconds: for each CPU, the clock less its idle time."""
        idle = idle_ns()
        return time.monotonic() * len(idle) - sum(idle) / 1e9


def read(path: str) -> str:
    """The text of a file. Raises OSError."""
    with open(path) as file:
        return file.read()


def idle_ns(cpus: int | None = None) -> list[int]:
    """Nanoseconds that each CPU has been idle since boot (kernel: tick_sched.idle_sleeptime). Raises Refusal."""
    cpus = cpus or os.cpu_count() or 1
    found: list[int] = []
    with open("/proc/timer_list") as lines:
        for line in lines:
            if ".idle_sleeptime" in line:
                found.append(int(line.split(":")[1].split()[0]))
                if len(found) == cpus:
                    return found
    raise Refusal(f"/proc/timer_list has idle_sleeptime for {len(found)} of {cpus} CPUs")
