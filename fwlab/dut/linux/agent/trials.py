# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures trials under overload, and decides which are valid: to ask the host would take too long."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from fwlab.dut.linux.agent.counters import Counters
from fwlab.dut.linux.agent.kernel import idle_ns
from fwlab.dut.linux.agent.marks import Marks
from fwlab.dut.linux.agent.retired import Retired
from fwlab.dut.linux.agent.tasks import Tasks

#: Largest share of the CPU that packets may use outside ksoftirqd. 2.8 % was seen; more is a disturbance, however
#: similar the trials are.
MOST_OWN = 0.1
#: How many trials in which a program ran are tolerated.
MOST_BUSY = 8

Window = dict[str, Any]


@contextlib.contextmanager
def ahead_of_packets() -> Iterator[None]:
    """Run with a real-time priority: under overload ksoftirqd would leave no time for this program."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def window(
    counters: Counters,
    retired: Retired,
    device: str,
    seconds: float,
    packets: int,
    marks: Marks | None = None,
    idle_of: Callable[[], list[int]] | None = None,
) -> Window:
    """One trial of at least `seconds` and `packets`.

    Returns duration_ns, idle_ns (how long the CPU was idle), other_ns (how long anything but packets and this program
    ran), instructions (of all CPUs; None without a counter) and counts. Packets are served in bursts of 64, which takes
    a slow ruleset a while. Of several CPUs the busiest counts: where traffic reaches only some of them, the others are
    idle however much arrives.
    """
    marks = marks or Marks()
    idle_of = idle_of or idle_ns
    idle_before = idle_of()
    served_before, own = counters.served_ns(), time.process_time_ns()
    begin, first = counters.read_at()
    marks.begin()
    retired_before = retired.read()
    name = device + ".rx_packets"
    while True:
        time.sleep(seconds)
        end, last = counters.read_at()
        if last[name] - first[name] >= packets or end - begin > 20e9 * seconds:
            break
    marks.end()  # as far behind the reading of the counters as the other mark
    retired_after = retired.read()
    known = max(_growth(served_before, counters.served_ns())) + time.process_time_ns() - own
    counts = {name: last[name] - first[name] for name in last}
    idle = min(_growth(idle_before, idle_of()))
    return {
        "duration_ns": end - begin,
        "idle_ns": idle,
        "other_ns": max(0, end - begin - known),
        "instructions": None if retired_before is None or retired_after is None else retired_after - retired_before,
        "counts": counts,
    }


def _growth(before: list[int], after: list[int]) -> list[int]:
    """The differences, by CPU."""
    return [later - earlier for earlier, later in zip(before, after, strict=True)]


def own_work(perturbed: list[Window], other_share: float) -> list[Window]:
    """The trials in which something else ran equally long; none if they are not the majority.

    This is no disturbance but work that the packets cause elsewhere: a kernel thread that ends the grace periods of
    what they free, such as a route made anew for each packet. It takes a small share, and no program runs. It sets in
    within the first trials, which are therefore not like the rest.
    """
    able = [trial for trial in perturbed if trial["other_ns"] <= MOST_OWN * trial["duration_ns"]]
    able = [trial for trial in able if trial["programs_ns"] <= other_share * trial["duration_ns"]]
    if not able:
        return []
    shares = [trial["other_ns"] / trial["duration_ns"] for trial in able]
    usual = sorted(shares)[len(shares) // 2]
    alike = [trial for trial, share in zip(able, shares, strict=True) if abs(share - usual) <= other_share]
    return alike if len(alike) > len(perturbed) // 2 else []


def measure(
    counters: Counters,
    retired: Retired,
    device: str,
    *,
    windows: int,
    window_s: float,
    packets: int,
    idle_share: float,
    other_share: float,
    most_idle: int,
    marks: Marks | None = None,
    idle_of: Callable[[], list[int]] | None = None,
) -> dict[str, Any]:
    """`windows` valid trials, and those that are not. Gives up after more than `most_idle` unsaturated ones.

    An unsaturated trial says nothing about capacity. Its neighbours are doubtful too, since an almost empty ring is
    read in smaller bursts; but those are served outside ksoftirqd, so they show as perturbed. A trial is perturbed if
    anything else ran for a noticeable time, such as a kernel thread that frees what the last ruleset has left.
    `cpu_ns` says how long each program and each [kernel thread] ran around those. If programs keep running, somebody
    is logged in and more trials would not help, so it gives up early. `number` counts the trials in their order.
    """
    valid: list[Window] = []
    unsaturated: list[Window] = []
    perturbed: list[Window] = []
    cpu_ns: dict[str, int] = {}
    tasks = None
    number = 0
    while len(valid) < windows and len(unsaturated) <= most_idle and len(perturbed) <= 5 * windows:
        trial = window(counters, retired, device, window_s, packets, marks, idle_of)
        trial["number"] = number
        number += 1
        saturated = trial["idle_ns"] <= idle_share * trial["duration_ns"]
        alone = trial["other_ns"] <= other_share * trial["duration_ns"]
        (unsaturated if not saturated else valid if alone else perturbed).append(trial)
        if saturated and not alone:
            # Reading all tasks takes a while, so it waits until it is needed. Nothing is known of the first trial.
            trial["programs_ns"] = attribute(tasks.since_last(), cpu_ns) if tasks else trial["other_ns"]
            tasks = tasks or Tasks()
            busy = [t for t in perturbed if t["programs_ns"] > other_share * t["duration_ns"]]
            if len(busy) > max(MOST_BUSY, 2 * len(valid)):
                break
        if not valid and len(perturbed) >= 2 * windows:
            valid = own_work(perturbed, other_share)[:windows]
    return {"valid": valid, "unsaturated": unsaturated, "perturbed": perturbed, "cpu_ns": cpu_ns}


def attribute(ran: dict[tuple[str, bool], int], cpu_ns: dict[str, int]) -> int:
    """Add what ran to `cpu_ns`, by name. Returns the nanoseconds of programs, without kernel threads."""
    for (name, kernel), took in ran.items():
        shown = f"[{name}]" if kernel else name  # as ps shows them
        cpu_ns[shown] = cpu_ns.get(shown, 0) + took
    return sum(took for (_, kernel), took in ran.items() if not kernel)
