# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions per packet under overload: counted by the clock on the virtual testbed, by the CPU on the real one."""

from collections.abc import Sequence

from fwlab.judge.statistics import scale
from fwlab.metrics.capacity import FLOOD, MOST_IDLE
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.protocol import MeasurableMetric
from fwlab.metrics.step import Step
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, TestbedFacts
from fwlab.model.trial import Trial


class Instructions(MeasurableMetric):
    """From the trials of capacity. A CPU that waits for packets halts, and retires nothing meanwhile.

    The two testbeds' figures are close but not equal: a CPU's own counter counts an interrupt as one more instruction
    and a repeated string instruction as one, and a kernel patches its own code to suit the CPU.
    """

    name = "instructions"
    unit = "count"
    position = 11
    display = Display("instructions per packet", whole=True)
    tolerance = Tolerance(share=0.015, ratio=0.03)
    needs_clock = True
    least_busy = 1 - MOST_IDLE

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        found = [per_packet(trial, testbed) for trial in measured.trials if trial.processed]
        return [value for value in found if value is not None]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [FLOOD]

    def trials(self, measured: Measured) -> Sequence[Trial]:
        return measured.trials


METRIC = Instructions()


def per_packet(trial: Trial, testbed: TestbedFacts) -> float | None:
    """Instructions for one processed packet; None if nothing counted them."""
    if testbed.ns_per_instruction:
        return trial.busy_s * 1e9 / scale(testbed) / trial.processed
    return None if trial.instructions is None else trial.instructions / trial.processed
