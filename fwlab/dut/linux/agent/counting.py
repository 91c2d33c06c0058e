# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts packets over busy time, and judges by itself which trials count: the host is too far away for that."""

import glob
import os
import time

from fwlab.dut.linux.agent.kernel import Refusal, idle_ns, read
from fwlab.dut.linux.agent.tasks import SOFTIRQ_THREAD, Tasks

#: Work that packets make outside of ksoftirqd took 2.8 % where it was seen; more than this is a disturbance, however
#: alike the trials are.
MOST_OWN = 0.1
#: So many trials in which a program ran are borne.
MOST_BUSY = 8


def task(name):
    for path in glob.glob("/proc/[0-9]*/comm"):
        if read(path).strip() == name:
            return path.split("/")[2]
    raise Refusal(f"the DUT runs no {name}")


class Counters:
    """Packet counters of the link devices, read through files that stay open as long as it lives."""

    opened = ()

    def __init__(self, devices):
        names = [(d, c) for d in devices for c in ("rx_packets", "tx_packets", "rx_dropped", "rx_bytes")]
        path = "/sys/class/net/{}/statistics/{}"
        self.softirqs = os.open(f"/proc/{task(SOFTIRQ_THREAD)}/schedstat", os.O_RDONLY)
        self.files = {"{}.{}".format(*name): os.open(path.format(*name), os.O_RDONLY) for name in names}
        self.opened = [self.softirqs, *self.files.values()]

    def __del__(self):
        # One is made for each case, and a session has hundreds: left open they would run out.
        for number in self.opened:
            os.close(number)

    def served(self):
        """Nanoseconds that ksoftirqd has run: under overload all packets are served in it, and nowhere else."""
        return int(os.pread(self.softirqs, 64, 0).split()[0])

    def read(self):
        return {name: int(os.pread(number, 32, 0)) for name, number in self.files.items()}

    def read_at(self):
        """(time in ns, counts), read without the receive work in between.

        The CPU is ours or the receive softirq's, never both: if the reading took longer than usual it
        was interrupted, and is done again.
        """
        best = None
        for _ in range(8):
            before = time.monotonic_ns()
            counts = self.read()
            took = time.monotonic_ns() - before
            if best is None or took < best[0]:
                best = (took, before, counts)
            elif took <= best[0] * 1.2:
                return before, counts
        return best[1], best[2]


def wait_for_packets(counters, device, patience_s):
    start = time.monotonic()
    first = counters.read()[device + ".rx_packets"]
    while counters.read()[device + ".rx_packets"] < first + 64:
        if time.monotonic() - start > patience_s:
            raise Refusal(f"no packet arrived at {device} within {patience_s:g} s")
        time.sleep(0.005)


def drain(request):
    """Wait until the receive ring is empty: no packet came in for `quiet_s`, for a slow ruleset takes one in bursts."""
    counters = Counters([request["device"]])
    name = request["device"] + ".rx_packets"
    patience = time.monotonic() + request["patience_s"]
    last = None
    while (now := counters.read()[name]) != last and time.monotonic() < patience:
        last = now
        time.sleep(request["quiet_s"])
    return {}


def window(counters, device, seconds, packets):
    """One trial: counts over at least `seconds` and `packets`, and how long the CPU was idle around them (ns).

    Packets are served in bursts of 64, and a slow ruleset needs a while for one.
    """
    idle_before = idle_ns()
    known = counters.served() + time.process_time_ns()
    begin, first = counters.read_at()
    name = device + ".rx_packets"
    while True:
        time.sleep(seconds)
        end, last = counters.read_at()
        if last[name] - first[name] >= packets or end - begin > 20e9 * seconds:
            break
    known = counters.served() + time.process_time_ns() - known
    counts = {name: last[name] - first[name] for name in last}
    idle = idle_ns() - idle_before
    return {"duration_ns": end - begin, "idle_ns": idle, "other_ns": max(0, end - begin - known), "counts": counts}


def own_work(disturbed, other_share):
    """Of these trials the ones in which something else ran as long as in all others; none if they are few.

    That is no disturbance but work that the packets make elsewhere: a kernel thread that ends the grace periods of
    what they free, such as a route that is made anew for each. It takes a small share, and no program has part in it.
    """
    able = [trial for trial in disturbed if trial["other_ns"] <= MOST_OWN * trial["duration_ns"]]
    able = [trial for trial in able if trial["programs_ns"] <= other_share * trial["duration_ns"]]
    if not able:
        return []
    least = min(trial["other_ns"] / trial["duration_ns"] for trial in able)
    alike = [t for t in able if t["other_ns"] / t["duration_ns"] <= least + other_share]
    return alike if len(alike) > len(disturbed) // 2 else []


def measure(request):
    """`windows` trials in which the CPU was never idle; gives up once more than `most_idle` others were.

    A trial in which it was idle was no overload and says nothing about capacity: it is left out and counted. Those
    beside it are doubtful too, as a ring that is almost empty is served in smaller bursts; but those bursts are served
    outside of ksoftirqd, which shows as something else that ran. A trial in which anything else ran for a noticeable
    time (a kernel thread that frees what the ruleset before left behind) is left out and counted as well; `ran` says
    for how many nanoseconds each program and each [kernel thread] ran around these. Where programs keep running it
    gives up early: somebody is logged in, and no further trial would do.
    """
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    try:
        counters, tasks = Counters(request["devices"]), None
        wait_for_packets(counters, request["devices"][0], request["patience_s"])
        time.sleep(request["settle_s"])
        wanted, kept, idle, disturbed, ran = request["windows"], [], [], [], {}
        while len(kept) < wanted and len(idle) <= request["most_idle"] and len(disturbed) <= 5 * wanted:
            trial = window(counters, request["devices"][0], request["window_s"], request["packets"])
            overload = trial["idle_ns"] <= request["idle_share"] * trial["duration_ns"]
            alone = trial["other_ns"] <= request["other_share"] * trial["duration_ns"]
            (idle if not overload else kept if alone else disturbed).append(trial)
            if overload and not alone:
                # To look at all tasks takes a while: not before it is needed, so of the first one nothing is known.
                trial["programs_ns"] = attribute(tasks.look(), ran) if tasks else trial["other_ns"]
                tasks = tasks or Tasks()
                busy = [t for t in disturbed if t["programs_ns"] > request["other_share"] * t["duration_ns"]]
                if len(busy) > max(MOST_BUSY, 2 * len(kept)):
                    break
            if not kept and len(disturbed) >= 2 * wanted:
                kept = own_work(disturbed, request["other_share"])[:wanted]
        return {"kept": kept, "idle": idle, "disturbed": disturbed, "ran": ran}
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def attribute(looked, ran):
    """Add what ran to `ran`, by name; returns the nanoseconds that belong to programs, not to kernel threads."""
    for (name, kernel), took in looked.items():
        shown = f"[{name}]" if kernel else name  # as ps does
        ran[shown] = ran.get(shown, 0) + took
    return sum(took for (_, kernel), took in looked.items() if not kernel)


def sample(request):
    return Counters(request["devices"]).read()
