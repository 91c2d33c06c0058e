# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival: what becomes of one traffic class while the whole load is a multiple of what the DUT can forward.

The multiple is one of the DUT's own clock: at 2, twice as many packets come in one of its seconds as the baseline
forwards in a busy one. No generator can keep such a load on the virtual testbed, where it plays by the host's clock
and the DUT by its instructions. It need not: the same mix is played flat out, so that the DUT's ring is always full.
Then two things are counted that no host can disturb: how many packets of this mix the DUT takes in a busy second, and
which share of what it took of the class reaches the sink. A full ring knows no classes, so at any load above that
rate a class survives in the proportion of the two.
"""

from __future__ import annotations

import statistics
import time
from types import MappingProxyType

from fwlab.metrics.capacity import busy_rates
from fwlab.metrics.delivery import through
from fwlab.metrics.measurement import Nodes, Task
from fwlab.metrics.protocol import BaseMetric
from fwlab.metrics.traffic_guard import under_way
from fwlab.model.errors import CannotMeasure
from fwlab.model.metric import Display, Tolerance
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import Delivery

#: A play ends when the DUT has taken enough, or after so long (real seconds); it is asked for its counts so often (s).
LONGEST_S, POLL_S = 15.0, 0.2
#: Enough is so many rings full, so that what was taken before the ring was full does not matter ...
RINGS = 8
#: If the sink counts less than this share of what the DUT sent on, it did not keep up. What it misses it misses
#: blindly: the share of a class is told from what it counted, and how many there were from what the DUT sent on.
KEPT_UP = 0.9
#: ... and so many packets of the class that chance (the square root of their number, at most) moves the share that
#: survives by no more than this; within these bounds.
CHANCE = 0.01
LEAST, ENOUGH = 300, 1000
#: Fewer say nothing of the class.
FEWEST = 100
#: The mix of a load is told from so many packets.
MIX = 100_000


class Survival(BaseMetric):
    """Share of a traffic class that reaches the sink while the DUT is offered a multiple of what it can forward."""

    name = "survival"
    unit = "ratio"
    position = 50
    display = Display(
        "survival",
        "%",
        100.0,
        significant=5,
        trimmed=True,
        table="sweep",
        caption="Survival: the share of one traffic class that reaches the sink beside a growing attack. Both loads "
        "are multiples of what the DUT can forward without a filter.",
        x_label="{parameter}, times the capacity of {baseline}",
    )
    tolerance = Tolerance(absolute=0.02)
    needs = MappingProxyType(
        {
            "victim_class": "victim_class, the class whose packets survive or not",
            "offered": "offered, a multiple of the baseline",
        }
    )
    invalidated_by = "any class"
    keeps_ruleset = True  # a sweep over the load alone: a long ruleset takes longer to load than to measure

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        tracked = measured.tracked or traffic_class
        shares = [d.survived(tracked, rate) for d in measured.survivals for rate in busy_rates(measured)]
        return [share for share in shares if share is not None]


METRIC = Survival()


def survive(nodes: Nodes, task: Task, found: Measured, base: Measured | None) -> None:
    """After the trials of capacity with the same mix. `base` is the baseline, measured in the same session."""
    unit = _unit(base)
    if unit is None:
        found.problems.append(f"the load is a multiple of the capacity of {task.baseline}, which was not measured")
        return
    load = task.offered * unit
    wanted = _enough(nodes, task, _rate(found) / load)
    for step in range(found.slowed, nodes.steps):
        delivery = _play(nodes, task, load, step, wanted)
        # Where the DUT is slower the sink gets more of the host, and less to count.
        if sum(delivery.arrived.values()) >= KEPT_UP * delivery.sent_on:
            break
    else:
        counted = sum(delivery.arrived.values())
        found.problems.append(f"the sink counted {counted} of {delivery.sent_on} packets that the DUT sent on")
    found.survivals.append(delivery)
    taken = _taken(delivery, task)
    if taken < FEWEST:
        found.problems.append(f"the DUT took {taken:.0f} packets of {task.tracked}; at least {FEWEST} say something")


def _taken(delivery: Delivery, task: Task) -> float:
    """Packets of the class that the DUT took: their share of all that it took."""
    return delivery.taken * delivery.offered[task.tracked] / delivery.sent


def _unit(base: Measured | None) -> float | None:
    """The baseline's capacity as the DUT counted it: packets per busy second of its clock. None if in doubt."""
    if base is None or base.problems:
        return None
    return _rate(base)


def _rate(measured: Measured) -> float | None:
    """Packets per busy second of the DUT's clock, in the trials of capacity. None without any."""
    rates = busy_rates(measured)
    return statistics.median(rates) if rates else None


def _enough(nodes: Nodes, task: Task, survives: float) -> int:
    """How many packets the DUT should take in a play, when about this share of the load finds a place in its ring."""
    mix = nodes.tables.offered(task.traffic, MIX)
    of_class = min(ENOUGH, max(LEAST, (min(1.0, survives) / CHANCE) ** 2))
    return max(RINGS * nodes.ring, round(of_class * MIX / max(1, mix[task.tracked])))


def _play(nodes: Nodes, task: Task, load: float, step: int, wanted: int) -> Delivery:
    """One play flat out until the DUT took the wanted packets, counted at the DUT and at the sink."""
    nodes.sink.declare(nodes.classes)
    before = through(nodes)
    with nodes.slowed(step), under_way(nodes.engine.start()) as playing:
        deadline = time.monotonic() + LONGEST_S
        while through(nodes)[0] - before[0] < wanted and time.monotonic() < deadline:
            time.sleep(POLL_S)
        played = playing.stop()
    arrived = nodes.sink.settled_counts()
    received, sent_on = (after - then for after, then in zip(through(nodes), before, strict=True))
    delivery = Delivery(
        intended_load=round(load, 1),
        sent=played.sent,
        offered=nodes.tables.offered(task.traffic, played.sent),
        arrived=arrived,
        taken=received,
        sent_on=sent_on,
    )
    if not (delivery.sent and delivery.taken):
        raise CannotMeasure("no packet reached the DUT", "fwlab doctor")
    return delivery
