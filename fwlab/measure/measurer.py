# SPDX-License-Identifier: GPL-2.0-or-later
"""One ruleset, measured: loaded, then every metric that the task asks for, each by its own method."""

from __future__ import annotations

import contextlib
import time

from fwlab.metrics.capacity import Overload
from fwlab.metrics.connection_rate import Connecting
from fwlab.metrics.delivery import deliver, deliver_few
from fwlab.metrics.measurement import Nodes, Task
from fwlab.metrics.perf_profile import sample
from fwlab.metrics.state_table import fill
from fwlab.metrics.survival import survive
from fwlab.model.errors import Refused
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile, ruleset_hash


class Measurer:
    """The nodes of one session, ready to measure task after task."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._overload = Overload(nodes)
        self._connecting = Connecting(nodes)
        self._measured: dict[str, Measured] = {}
        self._on_dut: str | None = None

    def measure(self, task: Task, limit_s: float | None = None) -> Measured:
        """Everything the task asks for, within so many seconds (Overdue). A node that dies raises CannotMeasure."""
        with self._nodes.dut.within(limit_s) if limit_s else contextlib.nullcontext():
            return self._all(task)

    def _all(self, task: Task) -> Measured:
        began = time.monotonic()
        found = Measured(
            id=task.id,
            title=task.title,
            ruleset=task.ruleset,
            ruleset_hash=ruleset_hash(task.files),
            parameters=task.parameters,
            traffic=task.traffic,
            metric=task.metrics[0],
            also=task.metrics[1:],
            tracked=task.tracked,
            offered=task.offered,
        )
        try:
            if not self._stays(task, found):
                self._on_dut = None
                # What is timed is a loading into a DUT that has nothing of it yet.
                left = self._nodes.dut.reset(next_ruleset=None if task.wants("load_time") else task.files)
                if left and self._nodes.restored():
                    left = self._nodes.dut.reset()
                if left:
                    found.problems.append(f"the DUT is not in its start state (vagrant reload LAB): {'; '.join(left)}")
                self._load(task, found)
                self._on_dut = found.ruleset_hash
            self._measure(task, found)
        except Refused as refusal:
            found.refused = refusal.message
        found.wall_s = round(time.monotonic() - began, 1)
        self._measured[task.id] = found
        return found

    def _stays(self, task: Task, found: Measured) -> bool:
        """A sweep over the load alone keeps its ruleset: a long one takes longer to load than to measure."""
        return task.metrics == ["survival"] and self._on_dut == found.ruleset_hash

    def _measure(self, task: Task, found: Measured) -> None:
        nodes = self._nodes
        if task.traffic is not None and not nodes.tables.plays_packets(task.traffic):
            self._connecting.measure(task, found)
        else:
            self._play(task, found)
        if task.wants("entries"):
            found.entries = nodes.dut.entries()

    def _play(self, task: Task, found: Measured) -> None:
        """The metrics of packets."""
        nodes = self._nodes
        if task.traffic is not None:
            nodes.engine.use(nodes.tables, task.traffic)
            # What climbs up the sink's stack may be answered, as IPv6 is with "no route": through the DUT, at its cost.
            nodes.sink.know(nodes.tables.flows(task.traffic))
            nodes.sink.take_all(nodes.classes)
        # First of all: what else is asked for is then measured with these states, not while they come to be.
        if task.wants("states", "state_bytes"):
            fill(nodes, task, found)
        compared = task.wants("delivered") and not task.load_dependent
        if compared:
            deliver_few(nodes, task, found)
        if task.wants("capacity", "delivered", "survival", "generator"):
            self._overload.measure(task, found)
        if task.sampled and found.trials and not found.problems:
            sample(nodes, found)
        if task.wants("delivered") and not found.problems:
            if compared:
                deliver_few(nodes, task, found)
            deliver(nodes, task, found)
        if task.wants("survival") and not found.problems:
            survive(nodes, task, found, self._measured.get(task.baseline or ""))

    def _load(self, task: Task, found: Measured) -> None:
        if not task.files:
            return
        # The first loading also brings the kernel's modules in; what is timed is the second.
        again = task.wants("load_time") and not task.each and _small(task.files)
        report = self._nodes.dut.load(task.files, each=task.each, times=1 + again * max(1, min(3, task.trial.count)))
        runs = report.runs[1:] if again else report.runs
        found.loads = [sum(item.seconds for item in run) for run in runs]


def _small(files: list[RulesetFile]) -> bool:
    return sum(len(f.text) for f in files) < 1 << 20
