# SPDX-License-Identifier: GPL-2.0-or-later
"""What a model of a core counted in the trials of capacity, function by function of the DUT's kernel.

Each function's share of all cycles, and what each of them waits for, with the packet's cost from the trials. A call
stack has the share of its innermost function, divided among this function's stacks as its samples are: the model knows
where a packet waits, and not who called.
"""

from collections import Counter
from dataclasses import dataclass

from fwlab.metrics.call_stacks import Stacks
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.model_cycles import counted
from fwlab.metrics.nodes import MeasuringSession
from fwlab.metrics.step import Phase, Step
from fwlab.model.reference_core import ReferenceCore
from fwlab.model.results import Measured, TestbedFacts

#: Stacks are weighed in whole numbers: parts of all cycles.
PARTS = 10_000_000


def fetch(session: MeasuringSession, _spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Add what the model counted by function; nothing without trials."""
    return so_far.plus(functions=session.nodes.dut.modelled_functions()) if so_far.trials else so_far


FUNCTIONS = Step(Phase.FUNCTIONS, fetch)


@dataclass(frozen=True)
class FunctionCost:
    """One function, per packet: instructions, cycles, and the cycles of these in which the core waits."""

    name: str
    instructions: float
    cycles: float
    memory: float
    branches: float
    locks: float

    @property
    def waits(self) -> float:
        """Cycles that it waits, for whatever reason."""
        return self.memory + self.branches + self.locks


def function_costs(measured: Measured, testbed: TestbedFacts) -> list[FunctionCost]:
    """Every function, most cycles first; empty if nothing was counted.

    The functions were counted in all trials, and packets only in the valid ones: the sum of the functions is made that
    of the valid trials.
    """
    core = testbed.core
    trials = counted(measured, testbed)
    total = sum(one.instructions for one in measured.functions.values())
    if core is None or not trials or not total:
        return []
    packets = total * sum(units for units, _ in trials) / sum(found.instructions for _, found in trials)
    costs = [
        FunctionCost(
            name,
            one.instructions / packets,
            core.cycles(one) / packets,
            one.memory_wait / packets,
            one.branch_wait / packets,
            one.locked_wait / packets,
        )
        for name, one in measured.functions.items()
    ]
    return sorted(costs, key=lambda cost: (-cost.cycles, cost.name))


def weighed(stacks: Stacks, measured: Measured, core: ReferenceCore, *, waits: bool) -> dict[str, int]:
    """Stacks of samples with the cycles of their innermost function as weights, or only those that it waits.

    A function that was never sampled is a stack of its own.
    """
    values = {n: one.waits if waits else core.cycles(one) for n, one in measured.functions.items()}
    total = sum(values.values())
    sampled: Counter[str] = Counter()
    for stack, samples in stacks.items():
        sampled[_innermost(stack)] += samples
    scale = PARTS / total if total else 0.0
    found = {name: round(value * scale) for name, value in values.items() if name not in sampled}
    for stack, samples in stacks.items():
        name = _innermost(stack)
        found[stack] = found.get(stack, 0) + round(values.get(name, 0) * scale * samples / sampled[name])
    return {stack: weight for stack, weight in found.items() if weight}


def _innermost(stack: str) -> str:
    return stack.rpartition(";")[2]
