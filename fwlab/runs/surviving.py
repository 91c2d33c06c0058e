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

from fwlab.runs.light_load import through
from fwlab.runs.task import Nodes, Task
from fwlab.runs.under_way import under_way
from fwlab.words.errors import CannotMeasure
from fwlab.words.results import Measured
from fwlab.words.trial import Delivery

#: A play takes about so long, in real seconds; up to four times that where it is a slow DUT that has to take enough.
PLAY_S, LONGEST_S = 2.5, 10.0
#: If the sink counts less than this share of what the DUT sent on, it did not keep up. What it misses it misses
#: blindly: the share of a class is told from what it counted, and how many there were from what the DUT sent on.
KEPT_UP = 0.9
#: So many packets of the class are wanted; too few say nothing of it.
ENOUGH, FEWEST = 1000, 100


def survive(nodes: Nodes, task: Task, found: Measured, base: Measured | None) -> None:
    """After the trials of capacity with the same mix. `base` is the baseline, measured in the same session."""
    unit = _unit(base)
    if unit is None:
        found.problems.append(f"the load is a multiple of the capacity of {task.baseline}, which was not measured")
        return
    for step in range(found.slowed, nodes.steps):
        delivery = _play(nodes, task, task.offered * unit, step, PLAY_S)
        if (taken := _taken(delivery, task)) < ENOUGH:
            seconds = min(LONGEST_S, PLAY_S * ENOUGH / max(1.0, taken))
            delivery = _play(nodes, task, task.offered * unit, step, seconds)
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
    rates = [trial.processed / trial.busy_s for trial in base.trials if trial.busy_s > 0]
    return statistics.median(rates) if rates else None


def _play(nodes: Nodes, task: Task, load: float, step: int, seconds: float) -> Delivery:
    """One play flat out, counted at the DUT and at the sink."""
    nodes.sink.declare(nodes.classes)
    before = through(nodes)
    with nodes.slowed(step), under_way(nodes.engine.start()) as playing:
        time.sleep(seconds)
        played = playing.stop()
    arrived = nodes.sink.settled_counts()
    received, sent_on = (after - then for after, then in zip(through(nodes), before, strict=True))
    delivery = Delivery(
        intended_load=round(load, 1),
        sent=played.sent,
        offered=nodes.tables.offered(task.traffic, played.sent, nodes.classes),
        arrived=arrived,
        taken=received,
        sent_on=sent_on,
    )
    if not (delivery.sent and delivery.taken):
        raise CannotMeasure("no packet reached the DUT", "fwlab doctor")
    return delivery
