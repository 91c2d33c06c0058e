# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples the kernel under load with perf, to find the cost of a packet function by function.

The event is the software clock (cpu-clock). It needs no counters of the CPU, and on the virtual testbed it counts
instructions. Each rate gets an event with its own timer; all write into one buffer. perf is started before the
packets come and read after they have gone. In between it sleeps, since its buffer holds all samples.
"""

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from typing import Any

from fwlab.dut.linux.agent.counters import Counters
from fwlab.rulesets.kind import Refusal

SYMBOLS = "/proc/kallsyms"
#: Types of symbols that are code (nm).
CODE = "tTwW"
UNKNOWN = "[unknown]"


def names_of(addresses: Sequence[int], lines: Iterable[str] | None = None) -> list[str]:
    """The function that each address lies in. `addresses` are in ascending order; `lines` are those of SYMBOLS."""
    if lines is None:
        with open(SYMBOLS, encoding="ascii", errors="replace") as file:
            return names_of(addresses, file)
    found: list[tuple[int, str]] = []
    for line in lines:
        address, kind, name, *_ = line.split()
        if kind in CODE:
            found.append((int(address, 16), name))
    found.sort(key=lambda one: one[0])  # of several names at one address the first in the list stays first
    names, index, last = [], 0, (0, UNKNOWN)
    for wanted in addresses:
        while index < len(found) and found[index][0] <= wanted:
            if found[index][0] != last[0]:
                last = found[index]
            index += 1
        names.append(last[1])
    return names


DATA = "/run/fwlab-perf.data"
#: 4000 samples of 40 functions; perf wakes when its buffer is half full.
BUFFER = "8M"
END_S = 60


def clocks(rates: Iterable[int]) -> str:
    """The software clock at each of these rates (Hz), as perf's option -e takes it."""
    return ",".join(f"cpu-clock/freq={hertz}/" for hertz in rates)


class Perf:
    """`perf record`, which gets its commands through a pipe and acknowledges each."""

    def __init__(self, rates: Iterable[int]) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self.process = subprocess.Popen(
            [
                *("perf", "record", "-q", "-a", "-g", "-e", clocks(rates), "-m", BUFFER),
                *("-D", "-1", "--control", f"fd:{commands},{answers}", "-B", "-N", "-o", DATA),
            ],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(commands)
        os.close(answers)

    def control(self, command: str) -> None:
        """Returns once perf has acknowledged the command. Raises Refusal if perf has ended."""
        try:
            os.write(self._commands, f"{command}\n".encode())
            if os.read(self._answers, 64):
                return
        except OSError:
            pass
        self.process.kill()
        raise Refusal(f"perf ended: {self.process.communicate()[1].strip()[-500:]}")

    def end(self) -> None:
        """Have the samples written to DATA."""
        self.process.terminate()
        said = self.process.communicate(timeout=END_S)[1]
        os.close(self._commands)
        os.close(self._answers)
        if not os.path.exists(DATA):
            raise Refusal(f"perf wrote nothing: {said.strip()[-500:]}")

    def record(
        self, counters: Counters, device: str, *, seconds: float, settle_s: float, begun: int, patience_s: float
    ) -> Any:
        """Sample for `seconds` as soon as packets arrive. Returns duration_ns and counts."""
        os.sched_setscheduler(self.process.pid, os.SCHED_FIFO, os.sched_param(10))
        counters.wait_for_packets(device, begun, patience_s)
        time.sleep(settle_s)
        begin, first = counters.read_at()
        self.control("enable")
        time.sleep(seconds)
        self.control("disable")
        end, last = counters.read_at()
        return {"duration_ns": end - begin, "counts": {name: last[name] - first[name] for name in last}}

    def stacks(self) -> dict[str, int]:
        """End perf and read its samples: {"program;outermost function;…;innermost function": samples}."""
        self.end()
        script = ["perf", "script", "-i", DATA, "--no-inline", "-F", "comm,ip,sym"]
        done = subprocess.run(script, capture_output=True, text=True, check=False)
        os.unlink(DATA)
        if done.returncode:
            raise Refusal(f"perf script: {done.stderr.strip()[-500:]}")
        return fold(done.stdout.splitlines())


def fold(lines: Iterable[str]) -> dict[str, int]:
    """Count equal stacks of `perf script`: a line with the program, a line for each function from the innermost
    outwards, an empty line."""
    found: dict[str, int] = {}
    program = ""
    functions: list[str] = []
    for line in [*lines, ""]:
        if line.startswith((" ", "\t")):
            functions.append(line.split(None, 1)[1] if len(line.split(None, 1)) > 1 else "[unknown]")
        elif line:
            program = line.strip()
        elif program:
            stack = ";".join([program, *reversed(functions)])
            found[stack] = found.get(stack, 0) + 1
            program, functions = "", []
    return found
