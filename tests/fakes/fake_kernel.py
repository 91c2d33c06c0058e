# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for the kernel and the tools of a DUT."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

from fwlab.dut.linux.agent.kernel import Kernel


class FakeKernel(Kernel):
    """It touches nothing on this machine.

    called    every call of a tool, one line each
    fed       the standard input of calls, by line
    answers   what a call prints, by line; `failing`: calls that fail
    files     the kernel's files, by path; `written`: what was written to which
    there     loaded modules
    """

    def __init__(self) -> None:
        self.called: list[str] = []
        self.fed: dict[str, str] = {}
        self.answers: dict[str, str] = {}
        self.failing: set[str] = set()
        self.files: dict[str, str] = {"/proc/vmstat": "nr_free_pages 7\noom_kill 0\n"}
        self.written: dict[str, str] = {}
        self.there: list[str] = []
        self.seconds = 0.0

    def call(self, argv: list[str], text: str | None = None) -> CompletedProcess[str]:
        line = " ".join(argv)
        self.called.append(line)
        if text is not None:
            self.fed[line] = text
        failed = line in self.failing
        return CompletedProcess(argv, int(failed), self.answers.get(line, ""), "line 1: no such set" if failed else "")

    def read(self, path: str) -> str:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def write(self, path: str, text: str) -> None:
        self.written[path] = text

    def reader(self, path: str) -> Callable[[], str]:
        return lambda: self.read(path)

    def writer(self, path: str) -> Callable[[str], bool]:
        def write(text: str) -> bool:
            self.write(path, text)
            return True

        return write

    def exists(self, path: str) -> bool:
        return path in self.files

    def modules(self) -> list[str]:
        return self.there

    def devices(self) -> list[str]:
        return ["eth0", "eth1"]

    def busy_clock(self) -> float:
        """Advances by a second with each call."""
        self.seconds += 1
        return self.seconds
