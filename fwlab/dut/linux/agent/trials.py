# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures trials under overload, and decides which are valid: to ask the host would take too long."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fwlab.dut.linux.agent.counters import Counters
from fwlab.dut.linux.agent.kernel import idle_ns
from fwlab.dut.linux.agent.marks import Marks
from fwlab.dut.linux.agent.retired import Retired
from fwlab.dut.linux.agent.tasks import Tasks

if TYPE_CHECKING:  # it stays on the host
    from fwlab.dut.agent_protocol import Terms, TrialCounts, Trials


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
    terms: Terms,
    marks: Marks | None = None,
    idle_of: Callable[[], list[int]] | None = None,
) -> TrialCounts:
    """One trial of at least `window_s` and `packets`, unless few packets arrive.

    Packets are served in bursts of 64, which takes a slow ruleset a while. Of several CPUs the busiest counts: where
    traffic reaches only some of them, the others are idle however much arrives.
    """
    marks = marks or Marks()
    idle_of = idle_of or idle_ns
    seconds, packets, longest_ns = terms["window_s"], terms["packets"], 1e9 * terms["max_length"] * terms["window_s"]
    idle_before = idle_of()
    served_before, own = counters.served_ns(), time.process_time_ns()
    begin, first = counters.read_at()
    marks.begin()
    retired_before = retired.read()
    name = device + ".rx_packets"
    while True:
        time.sleep(seconds)
        end, last = counters.read_at()
        if last[name] - first[name] >= packets or end - begin > longest_ns:
            break
        if min(_growth(idle_before, idle_of())) > terms["max_idle"] * (end - begin):
            break  # the DUT waits for packets, not for the time to serve them
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


def own_work(perturbed: list[TrialCounts], terms: Terms) -> list[TrialCounts]:
    """The perturbed trials in which something else ran equally long; none if they are not the majority.

    This is no disturbance but work that the packets cause elsewhere: a kernel thread that ends the grace periods of
    what they free, such as a route created for each packet. It takes a small share, and no program runs. It sets in
    within the first trials, which are therefore not like the rest.
    """
    able = [trial for trial in perturbed if trial["other_ns"] <= terms["max_own_share"] * trial["duration_ns"]]
    able = [trial for trial in able if trial["programs_ns"] <= terms["other_share"] * trial["duration_ns"]]
    if not able:
        return []
    shares = [trial["other_ns"] / trial["duration_ns"] for trial in able]
    usual = sorted(shares)[len(shares) // 2]
    alike = [trial for trial, share in zip(able, shares, strict=True) if abs(share - usual) <= terms["other_share"]]
    return alike if len(alike) > len(perturbed) // 2 else []


def sort_trials(take: Callable[[], TrialCounts], programs_ns: Callable[[TrialCounts], int], terms: Terms) -> Trials:
    """Take trials until there are enough valid ones, or it is time to give up: the policy that Terms describes.

    programs_ns  how long programs ran in a perturbed trial

    An unsaturated trial says nothing about capacity. Its neighbours are doubtful too, since an almost empty ring is
    read in smaller bursts; but those are served outside ksoftirqd, so they show as perturbed.
    """
    valid: list[TrialCounts] = []
    unsaturated: list[TrialCounts] = []
    perturbed: list[TrialCounts] = []
    wanted, busy = terms["windows"], 0
    while (
        len(valid) < wanted
        and len(unsaturated) <= terms["max_unsaturated"]
        and len(perturbed) <= terms["max_perturbed"] * wanted
    ):
        trial = take()
        if trial["idle_ns"] > terms["idle_share"] * trial["duration_ns"]:
            unsaturated.append(trial)
        elif trial["other_ns"] <= terms["other_share"] * trial["duration_ns"]:
            valid.append(trial)
        else:
            perturbed.append(trial)
            trial["programs_ns"] = programs_ns(trial)
            busy += trial["programs_ns"] > terms["other_share"] * trial["duration_ns"]
            if busy > max(terms["max_busy"], terms["max_busy_for_each"] * len(valid)):
                break
        if not valid and len(perturbed) >= terms["own_work_after"] * wanted:
            valid = own_work(perturbed, terms)[:wanted]
    return {"valid": valid, "unsaturated": unsaturated, "perturbed": perturbed, "cpu_ns": {}}


def measure(
    counters: Counters,
    retired: Retired,
    device: str,
    terms: Terms,
    *,
    marks: Marks | None = None,
    idle_of: Callable[[], list[int]] | None = None,
) -> Trials:
    """The trials that the terms ask for. `cpu_ns` says what ran around the perturbed ones.

    A trial is perturbed if anything else ran for a noticeable time, such as a kernel thread that frees what the last
    ruleset has left.
    """
    cpu_ns: dict[str, int] = {}
    tasks: Tasks | None = None
    numbers = itertools.count()

    def take() -> TrialCounts:
        return {**window(counters, retired, device, terms, marks, idle_of), "number": next(numbers)}

    def programs_ns(trial: TrialCounts) -> int:
        # Reading all tasks takes a while, so it waits until it is needed. Nothing is known of the first trial.
        nonlocal tasks
        ran = attribute(tasks.since_last(), cpu_ns) if tasks else trial["other_ns"]
        tasks = tasks or Tasks()
        return ran

    return {**sort_trials(take, programs_ns, terms), "cpu_ns": cpu_ns}


def attribute(ran: dict[tuple[str, bool], int], cpu_ns: dict[str, int]) -> int:
    """Add what ran to `cpu_ns`, by name. Returns the nanoseconds of programs, without kernel threads."""
    for (name, kernel), took in ran.items():
        shown = f"[{name}]" if kernel else name  # as ps shows them
        cpu_ns[shown] = cpu_ns.get(shown, 0) + took
    return sum(took for (_, kernel), took in ran.items() if not kernel)
