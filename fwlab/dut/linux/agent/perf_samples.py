# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples the kernel under load with perf, so that the cost of a packet can be told function by function.

The event is the software clock (cpu-clock): it needs no counters of the CPU, and on the virtual testbed it ticks in
instructions. It is there once for each rate that is asked for, with a timer of its own, and all write into one buffer.
perf itself is started before the packets come and read after they have gone; in between it sleeps, since its buffer
holds all samples.
"""

import os
import subprocess
import time

from fwlab.dut.linux.agent.counting import Counters, wait_for_packets
from fwlab.dut.linux.agent.kernel import Refusal

DATA = "/run/fwlab-perf.data"
#: 4000 samples of 40 functions; perf wakes when its buffer is half full.
BUFFER = "8M"
PATIENCE_S = 60
running = []


def clocks(rates):
    """The software clock once for each of these rates (Hz), as perf's -e has it."""
    return ",".join(f"cpu-clock/freq={hertz}/" for hertz in rates)


class Perf:
    """`perf record`, told through a pipe when to count. It answers each word with one of its own."""

    def __init__(self, rates):
        words, self.tell = os.pipe()
        self.answers, answer = os.pipe()
        self.process = subprocess.Popen(
            [
                *("perf", "record", "-q", "-a", "-g", "-e", clocks(rates), "-m", BUFFER),
                *("-D", "-1", "--control", f"fd:{words},{answer}", "-B", "-N", "-o", DATA),
            ],
            pass_fds=(words, answer),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(words)
        os.close(answer)

    def say(self, word):
        """Returns once perf has done it."""
        try:
            os.write(self.tell, f"{word}\n".encode())
            if os.read(self.answers, 64):
                return
        except OSError:
            pass
        self.process.kill()
        raise Refusal(f"perf ended: {self.process.communicate()[1].strip()[-500:]}")

    def end(self):
        """Write the samples out."""
        self.process.terminate()
        said = self.process.communicate(timeout=PATIENCE_S)[1]
        os.close(self.tell)
        os.close(self.answers)
        if not os.path.exists(DATA):
            raise Refusal(f"perf wrote nothing: {said.strip()[-500:]}")


def prepare_stacks(request):
    """Start perf, so that it is there before the packets are."""
    while running:  # of a recording that failed
        running.pop().process.kill()
    perf = Perf(request["rates"])
    perf.say("disable")  # it has answered, so it listens
    running.append(perf)
    return {}


def record_stacks(request):
    """Sample for `seconds` while packets come."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    perf = running[-1]
    os.sched_setscheduler(perf.process.pid, os.SCHED_FIFO, os.sched_param(10))
    try:
        counters = Counters(request["devices"])
        wait_for_packets(counters, request["devices"][0], request["patience_s"])
        time.sleep(request["settle_s"])
        begin, first = counters.read_at()
        perf.say("enable")
        time.sleep(request["seconds"])
        perf.say("disable")
        end, last = counters.read_at()
        return {"duration_ns": end - begin, "counts": {name: last[name] - first[name] for name in last}}
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def read_stacks(_request):
    """The samples by stack: "program;outermost function;…;innermost function". perf is gone afterwards."""
    running.pop().end()
    script = ["perf", "script", "-i", DATA, "--no-inline", "-F", "comm,ip,sym"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    os.unlink(DATA)
    if done.returncode:
        raise Refusal(f"perf script: {done.stderr.strip()[-500:]}")
    return {"stacks": fold(done.stdout.splitlines())}


def fold(lines):
    """Count equal stacks of `perf script`: a line with the program, a line for each function from the innermost
    outwards, an empty line."""
    found, program, functions = {}, "", []
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
