# SPDX-License-Identifier: GPL-2.0-or-later
"""Cycles per packet on a modelled core, in the trials of capacity: a second figure, which is no part of the clock.

Of TCP connections flat out, cycles per connection.
"""

from collections.abc import Sequence

from fwlab.metrics.capacity import FLOOD
from fwlab.metrics.connection_rate import CONNECT, MAX_IDLE_LOOP
from fwlab.metrics.measurement import ANY_TRAFFIC, MeasurableMetric, MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.model.metric import Display, NeedsClock, Tolerance, TrafficKind
from fwlab.model.results import Clock, Measured, Profile, TestbedFacts
from fwlab.model.trial import TcpTrial, Trial
from fwlab_coresim.cores import core_of
from fwlab_coresim.counts import CycleCounts, Modelled, parsed

#: The clock counts a trial's instructions, too. If the model's count differs by more than this share, it saw another
#: window than the clock, and says nothing about this trial.
MAX_APART = 0.002


def _fetch_functions(session: MeasuringSession, _spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Add what the model counted by function of the kernel, most waits first; nothing without trials."""
    if not so_far.trials:
        return so_far
    found = session.nodes.dut.modelled_functions()
    order = sorted(found, key=lambda name: (-parsed(CycleCounts, found[name]).waits, name))
    return so_far.plus(Profile(functions={name: found[name] for name in order}))


FUNCTIONS = Step(Phase.FUNCTIONS, _fetch_functions)


class ModelCycles(MeasurableMetric):
    """Instructions at full width, and what the core waits for: caches, memory, translations, branches, locks."""

    name = "model_cycles"
    unit = "count"
    position = 12
    display = Display("model cycles per packet or connection", whole=True)
    tolerance = Tolerance(share=0.015, ratio=0.03)
    clock = NeedsClock("instructions", "the model is a plugin of the emulator (fwlab run --model)")
    #: It decides no mark.
    portable = False
    traffic = ANY_TRAFFIC
    #: Capacity asks for more of its trials, which are the same.
    min_busy = 1 - MAX_IDLE_LOOP

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        core = core_of(testbed)
        if core is None:
            return []
        return [core.cycles(found) / units for units, found in counted(measured, testbed)]

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        if played != "packets":
            return [CONNECT]
        return [FLOOD, FUNCTIONS] if spec.sampled else [FLOOD]

    def trials(self, measured: Measured) -> Sequence[Trial | TcpTrial]:
        return measured.tcp or measured.trials


METRIC = ModelCycles()


def counted(measured: Measured, testbed: TestbedFacts) -> list[tuple[float, Modelled]]:
    """Packets, or connections, of each trial that was modelled, and what the model counted in it.

    Without the trials of which the model saw another part.
    """
    return [
        (units, parsed(Modelled, trial.modelled))
        for trial in METRIC.trials(measured)
        if trial.modelled is not None and (units := _units(trial)) and apart(trial, testbed) <= MAX_APART
    ]


def _units(trial: Trial | TcpTrial) -> float:
    return trial.completed if isinstance(trial, TcpTrial) else trial.processed


def apart(trial: Trial | TcpTrial, testbed: TestbedFacts) -> float:
    """How far the model's count of instructions is from the clock's, as a share of this; 1 if one is missing."""
    if trial.modelled is None or not testbed.ns_per_instruction or not trial.busy_s:
        return 1.0
    by_clock = trial.busy_s * 1e9 / testbed.ns_per_instruction
    return abs(trial.modelled.get("instructions", 0) / by_clock - 1)
