# SPDX-License-Identifier: GPL-2.0-or-later
"""Cycles per packet on a modelled core, in the trials of capacity: a second figure beside the clock, no part of it."""

from collections.abc import Sequence

from fwlab.metrics.capacity import FLOOD, MOST_IDLE
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, NeedsClock, Tolerance, TrafficKind
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import Modelled, Trial

#: The clock counts a trial's instructions, too. If the model's count differs by more than this share, it saw another
#: window than the clock, and says nothing about this trial.
MOST_APART = 0.002


class ModelCycles(MeasurableMetric):
    """Instructions at full width, and what the core waits for: caches, memory, translations, branches, locks."""

    name = "model_cycles"
    unit = "count"
    position = 12
    display = Display("model cycles per packet", whole=True)
    tolerance = Tolerance(share=0.015, ratio=0.03)
    clock = NeedsClock("instructions", "the model is a plugin of the emulator (fwlab run --model)")
    #: It decides no mark.
    portable = False
    least_busy = 1 - MOST_IDLE

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        core = testbed.core
        if core is None:
            return []
        return [core.cycles(found) / trial.processed for trial, found in counted(measured, testbed)]

    def steps(self, spec: MeasurementSpec, played: TrafficKind) -> Sequence[Step]:
        return [FLOOD]

    def trials(self, measured: Measured) -> Sequence[Trial]:
        return measured.trials


METRIC = ModelCycles()


def counted(measured: Measured, testbed: TestbedFacts) -> list[tuple[Trial, Modelled]]:
    """The trials that were modelled, with what the model counted; without those that it saw another part of."""
    return [
        (trial, trial.modelled)
        for trial in measured.trials
        if trial.modelled is not None and trial.processed and apart(trial, testbed) <= MOST_APART
    ]


def apart(trial: Trial, testbed: TestbedFacts) -> float:
    """How far the model's count of instructions is from the clock's, as a share of this; 1 if one is missing."""
    if trial.modelled is None or not testbed.ns_per_instruction or not trial.busy_s:
        return 1.0
    by_clock = trial.busy_s * 1e9 / testbed.ns_per_instruction
    return abs(trial.modelled.instructions / by_clock - 1)
