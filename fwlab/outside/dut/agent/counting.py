# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts packets over busy time, and judges by itself which trials count: the host is too far away for that."""

import glob
import os
import time

from fwlab.outside.dut.agent.kernel import Refusal, idle_ns, read


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
        self.softirqs = os.open("/proc/{}/schedstat".format(task("ksoftirqd/0")), os.O_RDONLY)
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


def steady(disturbed, other_share):
    """Of these trials the ones in which something else ran as long as in all others; none if they are few.

    That is no disturbance but work that the packets make elsewhere: a kernel thread that ends the grace periods of
    what they free, such as a route that is made anew for each.
    """
    shares = [trial["other_ns"] / trial["duration_ns"] for trial in disturbed]
    alike = [t for t, share in zip(disturbed, shares, strict=True) if share <= min(shares) + other_share]
    return alike if len(alike) > len(disturbed) // 2 else []


def measure(request):
    """`windows` trials in which the CPU was never idle; gives up once more than `most_idle` others were.

    A trial in which it was idle was no overload and says nothing about capacity: it is left out and counted. Those
    beside it are doubtful too, as a ring that is almost empty is served in smaller bursts; but those bursts are served
    outside of ksoftirqd, which shows as something else that ran. A trial in which anything else ran for a noticeable
    time (a kernel thread that frees what the ruleset before left behind) is left out and counted as well.
    """
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    try:
        counters = Counters(request["devices"])
        wait_for_packets(counters, request["devices"][0], request["patience_s"])
        time.sleep(request["settle_s"])
        wanted, kept, idle, disturbed = request["windows"], [], [], []
        while len(kept) < wanted and len(idle) <= request["most_idle"] and len(disturbed) <= 5 * wanted:
            trial = window(counters, request["devices"][0], request["window_s"], request["packets"])
            overload = trial["idle_ns"] <= request["idle_share"] * trial["duration_ns"]
            alone = trial["other_ns"] <= request["other_share"] * trial["duration_ns"]
            (idle if not overload else kept if alone else disturbed).append(trial)
            if not kept and len(disturbed) >= 2 * wanted:
                kept = steady(disturbed, request["other_share"])[:wanted]
        return {"kept": kept, "idle": idle, "disturbed": disturbed}
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def sample(request):
    return Counters(request["devices"]).read()


def clock(_request):
    """The DUT's clock and how much of it the CPU was idle, in ns."""
    return {"now_ns": time.monotonic_ns(), "idle_ns": idle_ns()}
