# SPDX-License-Identifier: GPL-2.0-or-later
"""Capacity: trials flat out, with the DUT slowed until it is never idle (FRMOL of RFC 2285, per busy second)."""

from __future__ import annotations

from fwlab.logic.figures import MOST_IDLE, MOST_OTHER
from fwlab.runs.task import Nodes, Task
from fwlab.words.results import Measured
from fwlab.words.trial import Trial


class Overload:
    """Remembers how much the DUT had to be slowed: the next case starts from there."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._step = 0

    def measure(self, task: Task, found: Measured) -> None:
        """Trials flat out, the DUT slowed step by step until it is never idle."""
        first, steps, wanted = self._step, self._nodes.steps, task.trial.count
        for step in range(first, steps):
            kept, idle, disturbed = self._flat_out(task, found, step)
            found.slowed, found.trials = step, kept
            found.idle_trials, found.disturbed_trials = len(idle), len(disturbed)
            if len(kept) == wanted:
                # Gently down again: a case with more rules needs less of it, and runs faster with less.
                self._step = max(0, step - (not idle and step == first))
                return
        self._step = max(0, steps - 1)
        busy = min((t.busy_share for t in idle), default=0.0)
        found.problems.append(
            f"the DUT was not saturated: {len(kept)} of {wanted} trials were an overload and nothing else; "
            f"in {len(idle)} it was idle at times (busy {busy:.1%}), in {len(disturbed)} something else ran"
        )

    def _flat_out(self, task: Task, found: Measured, step: int) -> tuple[list[Trial], ...]:
        nodes, trial = self._nodes, task.trial
        with nodes.slowed(step):
            last = step == nodes.steps - 1
            nodes.dut.arm(
                windows=trial.count,
                window_s=trial.seconds,
                packets=trial.packets,
                settle_s=trial.settle,
                idle_share=MOST_IDLE,
                other_share=MOST_OTHER if nodes.steps > 1 else 1.0,
                # A slower DUT costs more than a few trials in vain. Those next to an idle one count as disturbed.
                most_idle=(6 if last else 1) * trial.count,
            )
            playing = nodes.engine.start()
            try:
                trials = nodes.dut.collect(timeout=900)
            except BaseException:
                playing.abandon()
                raise
        played = playing.stop()
        found.generator_sent = played.sent
        found.generator_pps = round(played.rate, 1)
        return trials
