# SPDX-License-Identifier: GPL-2.0-or-later
"""One ruleset, measured: loaded, overloaded, and played at a load that the DUT can carry."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from fwlab.logic.figures import MOST_IDLE, MOST_OTHER
from fwlab.outside.dut import LinuxDut
from fwlab.outside.generator import Replay
from fwlab.outside.sink import Sink
from fwlab.outside.tables import Tables
from fwlab.words.errors import CannotMeasure, Refused
from fwlab.words.lab import TrafficClass
from fwlab.words.metric import Metric
from fwlab.words.results import Measured
from fwlab.words.ruleset import RulesetFile, ruleset_hash
from fwlab.words.trial import Delivery, Trial

#: A trial's least length, in seconds of the DUT's clock and in packets.
WINDOW_S = 0.15
WINDOW_PACKETS = 640
#: The load of a delivery trial, as a share of what the DUT was seen to carry in real time.
LIGHT = 0.25
#: A delivery trial takes about so long, in real seconds, and has so many packets.
DELIVERY_S = 4.0
DELIVERY_PACKETS = (256, 8192)


@dataclass(frozen=True)
class Task:
    """What to measure: a case, or an exercise with one ruleset."""

    id: str
    title: str
    ruleset: str
    files: list[RulesetFile]
    metrics: list[Metric]
    traffic: str | None = None
    parameters: dict[str, int | float | str] = None
    each: bool = False
    trials: int = 5


class Measurer:
    """The nodes of one session, ready to measure task after task.

    `slowed(step)` slows the DUT while the generator plays, by one of `steps` steps; on the host's clock there is
    one step, which does nothing.
    """

    def __init__(
        self,
        dut: LinuxDut,
        engine: Replay,
        sink: Sink,
        tables: Tables,
        classes: dict[str, TrafficClass],
        slowed: Callable[[int], contextlib.AbstractContextManager],
        steps: int,
    ) -> None:
        self._dut, self._engine, self._sink = dut, engine, sink
        self._tables, self._classes, self._slowed, self._steps = tables, classes, slowed, steps
        self._step = 0

    def measure(self, task: Task) -> Measured:
        """Everything the task asks for. A node that dies raises CannotMeasure."""
        began = time.monotonic()
        found = Measured(
            id=task.id,
            title=task.title,
            ruleset=task.ruleset,
            ruleset_hash=ruleset_hash(task.files),
            parameters=task.parameters or {},
            traffic=task.traffic,
            metric=task.metrics[0],
            also=task.metrics[1:],
        )
        try:
            left = self._dut.reset()
            if left:
                found.problems.append(f"the DUT kept the modules {', '.join(left)} of the ruleset before")
            self._load(task, found)
            if task.traffic is not None:
                self._engine.use(self._tables.path(task.traffic))
            if Metric.CAPACITY in task.metrics or Metric.DELIVERED in task.metrics:
                self._overload(task, found)
            if Metric.DELIVERED in task.metrics and not found.problems:
                self._deliver(task, found)
            if Metric.ENTRIES in task.metrics:
                found.entries = self._dut.entries()
        except Refused as refusal:
            found.refused = refusal.message
        found.wall_s = round(time.monotonic() - began, 1)
        return found

    def _load(self, task: Task, found: Measured) -> None:
        if not task.files:
            return
        # The first loading also brings the kernel's modules in; what is timed is the second.
        again = Metric.LOAD_TIME in task.metrics and not task.each and _small(task.files)
        report = self._dut.load(task.files, each=task.each, times=1 + again * max(1, min(3, task.trials)))
        runs = report.runs[1:] if again else report.runs
        found.loads = [sum(item.seconds for item in run) for run in runs]

    def _overload(self, task: Task, found: Measured) -> None:
        """Trials flat out, the DUT slowed step by step until it is never idle. The next case starts from there."""
        first = self._step
        for step in range(first, self._steps):
            kept, idle, disturbed = self._flat_out(task, found, step)
            found.slowed, found.trials = step, kept
            found.idle_trials, found.disturbed_trials = len(idle), len(disturbed)
            if len(kept) == task.trials:
                # Gently down again: a case with more rules needs less of it, and runs faster with less.
                self._step = max(0, step - (not idle and step == first))
                return
        self._step = max(0, self._steps - 1)
        busy = min((t.busy_share for t in idle), default=0.0)
        found.problems.append(
            f"the DUT was not saturated: {len(kept)} of {task.trials} trials were an overload and nothing else; "
            f"in {len(idle)} it was idle at times (busy {busy:.1%}), in {len(disturbed)} something else ran"
        )

    def _flat_out(self, task: Task, found: Measured, step: int) -> tuple[list[Trial], ...]:
        with self._slowed(step):
            last = step == self._steps - 1
            most_idle = 2 * task.trials if last else task.trials // 20
            self._dut.arm(
                windows=task.trials,
                window_s=WINDOW_S,
                packets=WINDOW_PACKETS,
                idle_share=MOST_IDLE,
                other_share=MOST_OTHER if self._steps > 1 else 1.0,
                most_idle=most_idle,
            )
            playing = self._engine.start()
            try:
                trials = self._dut.collect(timeout=900)
            except BaseException:
                playing.abandon()
                raise
        played = playing.stop()
        found.generator_sent = played.sent
        found.generator_pps = round(played.rate, 1)
        return trials

    def _deliver(self, task: Task, found: Measured) -> None:
        """A counted number of packets at a light load; what arrives is counted by class."""
        real_pps = self._real_rate()
        load = max(20.0, LIGHT * real_pps)
        low, high = DELIVERY_PACKETS
        count = int(min(high, max(low, load * DELIVERY_S)))
        self._sink.declare(self._classes)
        played = self._engine.start(load=load, count=count).wait(timeout=count / load * 4 + 60)
        if played.sent < count:
            found.problems.append(f"the generator sent {played.sent} of {count} packets")
        found.deliveries.append(
            Delivery(
                intended_load=round(load, 1),
                sent=played.sent,
                offered=self._tables.offered(task.traffic, played.sent, self._classes),
                arrived=self._sink.settled_counts(),
            )
        )

    def _real_rate(self) -> float:
        """Packets per real second that the DUT processes flat out and not slowed."""
        before = self._dut.sample()
        began = time.monotonic()
        playing = self._engine.start()
        time.sleep(1.5)
        playing.stop()
        after = self._dut.sample()
        took = time.monotonic() - began
        key = next(name for name in after if name.endswith(".rx_packets"))
        processed = after[key] - before[key]
        if processed == 0:
            raise CannotMeasure("no packet reached the DUT", "fwlab doctor")
        return processed / took


def _small(files: list[RulesetFile]) -> bool:
    return sum(len(f.text) for f in files) < 1 << 20
