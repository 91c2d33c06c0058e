# SPDX-License-Identifier: GPL-2.0-or-later
"""Capacity: trials flat out, with the DUT slowed until it is never idle (FRMOL of RFC 2285, per busy second)."""

from __future__ import annotations

from collections.abc import Sequence

from fwlab.judge.statistics import scale
from fwlab.metrics.delivery import through
from fwlab.metrics.measurement import Nodes, Task
from fwlab.metrics.protocol import BaseMetric
from fwlab.metrics.saturation import Attempt, Ladder
from fwlab.metrics.traffic_guard import under_way
from fwlab.model.metric import Display, Tolerance
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import Delivery, Trial

#: A trial in which the DUT was idle for more than this share was no overload and says nothing of capacity.
MOST_IDLE = 0.0005
#: A trial on the virtual testbed in which something else than packets took more than this share was disturbed.
MOST_OTHER = 0.005
#: Of what came in on the first link so much may come in on the last: a few packets that nodes say by themselves.
MOST_BACK = 0.001
#: So many idle trials, for each that is wanted, are borne before the DUT is slowed by a step; at the last one more.
#: A few trials in vain cost less than a slower DUT.
IN_VAIN, IN_VAIN_AT_LAST = 2, 6


class Capacity(BaseMetric):
    """Packets per busy second that the DUT processed; on the virtual testbed on the reference CPU."""

    name = "capacity"
    unit = "pps"
    position = 10
    display = Display(
        "capacity",
        "kpps",
        1e-3,
        table="ratio",
        cost_per_packet=True,
        caption="Capacity. Bars reach from the lowest to the highest trial; hollow marks are published ratios, "
        "multiplied by our baseline (dashed).",
    )
    tolerance = Tolerance(share=0.015, ratio=0.03)
    needs_clock = True
    invalidated_by = "any class"
    least_busy = 1 - MOST_IDLE
    usual_spread = 0.02

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        return [capacity(trial, testbed) for trial in measured.trials if trial.busy_s > 0]

    def trials(self, measured: Measured) -> Sequence[Trial]:
        return measured.trials


METRIC = Capacity()


def capacity(trial: Trial, testbed: TestbedFacts) -> float:
    """Packets per busy second that the DUT processed (pps), on the reference CPU where virtual."""
    return trial.processed / trial.busy_s * scale(testbed)


def busy_rates(measured: Measured) -> list[float]:
    """Packets per busy second of the DUT's own clock, trial by trial: not brought to the reference CPU."""
    return [trial.processed / trial.busy_s for trial in measured.trials if trial.busy_s > 0]


class Overload:
    """Climbs a ladder of its own: a flood is kept up otherwise than a loop of answers."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._ladder = Ladder(nodes.steps)

    def measure(self, task: Task, found: Measured) -> None:
        """Trials flat out, the DUT slowed step by step until it is never idle."""
        dut = self._nodes.dut
        before = dut.received()
        attempt = self._ladder.climb(lambda step: self._flat_out(task, found, step), task.trial.count, found)
        found.trials = attempt.kept
        taken, *_, back = (now - then for (now, _), (then, _) in zip(dut.received(), before, strict=True))
        if back > MOST_BACK * taken:
            # Each cost the DUT as much as one that is counted, and none of them is.
            found.problems.append(f"{back} packets came back from the sink, which is to take and not to answer")

    def _flat_out(self, task: Task, found: Measured, step: int) -> Attempt[Trial]:
        nodes, trial = self._nodes, task.trial
        if task.fresh:
            # An attempt before this one, at a smaller step, has made the flows known.
            nodes.dut.reset()
            nodes.dut.load(task.files)
        watched = task.wants("delivered")
        if watched:
            nodes.sink.declare(nodes.classes)
            before = through(nodes)
        with nodes.slowed(step):
            last = step == nodes.steps - 1
            nodes.dut.arm(
                windows=trial.count,
                window_s=trial.seconds,
                packets=trial.packets,
                settle_s=trial.settle,
                idle_share=MOST_IDLE,
                other_share=MOST_OTHER if nodes.steps > 1 else 1.0,
                # Those next to an idle one count as disturbed.
                most_idle=(IN_VAIN_AT_LAST if last else IN_VAIN) * trial.count,
            )
            with under_way(nodes.engine.start()) as playing:
                trials = nodes.dut.collect(timeout=900)
        played = playing.stop()
        found.generator_sent = played.sent
        found.generator_pps = round(played.rate, 1)
        if watched:
            found.flood = self._watched(task, played.sent, before)
        return Attempt(*trials)

    def _watched(self, task: Task, sent: int, before: tuple[int, int]) -> Delivery:
        """What became of this flood, by class: whether the ruleset does in it what it does at a light load."""
        nodes = self._nodes
        nodes.dut.drain()
        arrived = nodes.sink.settled_counts()
        taken, sent_on = (now - then for now, then in zip(through(nodes), before, strict=True))
        return Delivery(
            intended_load=None,
            sent=sent,
            offered=nodes.tables.offered(task.traffic, sent),
            arrived=arrived,
            taken=taken,
            sent_on=sent_on,
        )
