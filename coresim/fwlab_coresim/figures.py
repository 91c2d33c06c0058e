# SPDX-License-Identifier: GPL-2.0-or-later
"""What the model of a core counted: cycles, what waits, and misses. Medians of the trials.

All counts are per packet; of TCP connections, per connection.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from fwlab.model.results import Measured, Run
from fwlab_coresim.cores import ReferenceCore, core_of
from fwlab_coresim.counts import Modelled
from fwlab_coresim.metric import counted

#: Columns after the case: heading, and the text of the figure.
HEADS = ("instr", "cycles", "memory", "branches", "locks", "L1I", "L1D", "L2", "LLC", "TLB", "mispred.")


@dataclass(frozen=True)
class CoreFigures:
    """One case. Counts and cycles are per packet or connection; shares are of the cycles.

    memory, branches, locks  shares of the cycles in which the core waits for these
    l1i, l1d, l2, llc, tlb   misses; `llc`: None for a core without one; `tlb`: of both first levels
    mispredicted             branches
    """

    case: str
    instructions: float
    cycles: float
    memory: float
    branches: float
    locks: float
    l1i: float
    l1d: float
    l2: float
    llc: float | None
    tlb: float
    mispredicted: float

    def cells(self) -> list[str]:
        """The texts under HEADS."""
        shares = [f"{share:.0%}" for share in (self.memory, self.branches, self.locks)]
        misses = [_short(one) for one in (self.l1i, self.l1d, self.l2, self.llc, self.tlb, self.mispredicted)]
        return [f"{self.instructions:,.0f}", f"{self.cycles:,.0f}", *shares, *misses]


def core_figures(measured: Measured, run: Run) -> CoreFigures | None:
    """The figures of a case; None if no trial of it was modelled."""
    core = core_of(run.testbed)
    found = counted(measured, run.testbed)
    if core is None or not found:
        return None

    def each(value: Callable[[Modelled], float]) -> float:
        return median(value(modelled) / units for units, modelled in found)

    def share(value: Callable[[Modelled], float]) -> float:
        return median(value(modelled) / core.cycles(modelled) for _, modelled in found)

    return CoreFigures(
        case=measured.id,
        instructions=each(lambda one: one.instructions),
        cycles=each(core.cycles),
        memory=share(lambda one: one.memory_wait),
        branches=share(lambda one: one.branch_wait),
        locks=share(lambda one: one.locked_wait),
        l1i=each(lambda one: one.l1i_misses),
        l1d=each(lambda one: one.l1d_misses),
        l2=each(lambda one: one.l2_misses),
        llc=each(lambda one: one.llc_misses) if core.llc else None,
        tlb=each(lambda one: one.itlb_misses + one.dtlb_misses),
        mispredicted=each(lambda one: one.mispredicted),
    )


def all_core_figures(cases: Iterable[Measured], run: Run) -> list[CoreFigures]:
    """Those of every case that was modelled."""
    return [found for case in cases if (found := core_figures(case, run)) is not None]


def caption(core: ReferenceCore) -> str:
    """What the columns mean."""
    last = "" if core.llc else " It has no LLC."
    return (
        f"{core.title}, modelled (guides/model.md): instructions, cycles, misses and mispredicted branches per packet, "
        "of TCP per connection; "
        f"memory, branches, locks: shares of the cycles that wait for them.{last}"
    )


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
