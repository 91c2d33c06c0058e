# SPDX-License-Identifier: GPL-2.0-or-later
"""What a model of a core counted in the trials of capacity, function by function of the DUT's kernel.

Each function's share of all cycles, and what each of them waits for, with the packet's cost from the trials. A call
stack has the share of its innermost function, divided among this function's stacks as its samples are: the model knows
where a packet waits, and not who called.
"""

from collections import Counter

from fwlab.measure.core_models import FunctionCost
from fwlab.metrics.call_stacks import Stacks
from fwlab.model.results import Measured, TestbedFacts
from fwlab_coresim.cores import ReferenceCore, core_of
from fwlab_coresim.counts import CycleCounts, parsed
from fwlab_coresim.metric import counted

#: Stacks are weighted in whole numbers: parts of all cycles.
PARTS = 10_000_000


def function_costs(measured: Measured, testbed: TestbedFacts) -> list[FunctionCost]:
    """Every function, most cycles first; empty if nothing was counted.

    The functions were counted in all trials, and packets only in the valid ones: the sum of the functions is made that
    of the valid trials.
    """
    core = core_of(testbed)
    trials = counted(measured, testbed)
    found = _by_function(measured)
    total = sum(one.instructions for one in found.values())
    if core is None or not trials or not total:
        return []
    packets = total * sum(units for units, _ in trials) / sum(window.instructions for _, window in trials)
    costs = [
        FunctionCost(
            name,
            one.instructions / packets,
            core.cycles(one) / packets,
            one.memory_wait / packets,
            one.branch_wait / packets,
            one.locked_wait / packets,
        )
        for name, one in found.items()
    ]
    return sorted(costs, key=lambda cost: (-cost.cycles, cost.name))


def weighted(stacks: Stacks, measured: Measured, core: ReferenceCore, *, waits: bool) -> dict[str, int]:
    """Stacks of samples with the cycles of their innermost function as weights, or only those that it waits.

    A function that was never sampled is a stack of its own.
    """
    values = {n: one.waits if waits else core.cycles(one) for n, one in _by_function(measured).items()}
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


def _by_function(measured: Measured) -> dict[str, CycleCounts]:
    return {name: parsed(CycleCounts, one) for name, one in measured.functions.items()}


def _innermost(stack: str) -> str:
    return stack.rpartition(";")[2]
