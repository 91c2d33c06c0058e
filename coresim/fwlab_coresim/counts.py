# SPDX-License-Identifier: GPL-2.0-or-later
"""What the model of a core counts. Results hold these fields by name."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import Field, ValidationError

from fwlab.model.declared import Frozen, first_fault
from fwlab.model.errors import BadInput


class CycleCounts(Frozen):
    """What a piece of code does on a modelled core: instructions, and the cycles that it waits for each reason."""

    instructions: int = Field(ge=0)
    fetch_wait: int = Field(ge=0)
    load_wait: int = Field(ge=0)
    tlb_wait: int = Field(ge=0)
    branch_wait: int = Field(ge=0)
    locked_wait: int = Field(ge=0)

    @property
    def memory_wait(self) -> int:
        """Cycles that loads and fetches wait for caches, memory and translations."""
        return self.fetch_wait + self.load_wait + self.tlb_wait

    @property
    def waits(self) -> int:
        """Cycles of waiting, for whatever reason."""
        return self.memory_wait + self.branch_wait + self.locked_wait


class Modelled(CycleCounts):
    """What the model (plugin/core.h) counted in one trial. Waits are cycles, everything else is a count.

    l2_misses, llc_misses  of loads, stores, fetches and page walks; without a last level, every miss of L2 is one
    itlb_misses, dtlb_misses  of the first level; `walks`: of both levels
    conditional, indirect, returns, retpolines, locked  instructions of these kinds
    """

    loads: int = Field(ge=0)
    stores: int = Field(ge=0)
    l1i_misses: int = Field(ge=0)
    l1d_misses: int = Field(ge=0)
    l2_misses: int = Field(ge=0)
    llc_misses: int = Field(ge=0)
    itlb_misses: int = Field(ge=0)
    dtlb_misses: int = Field(ge=0)
    walks: int = Field(ge=0)
    conditional: int = Field(ge=0)
    indirect: int = Field(ge=0)
    returns: int = Field(ge=0)
    retpolines: int = Field(ge=0)
    locked: int = Field(ge=0)
    direction_misses: int = Field(ge=0)
    target_misses: int = Field(ge=0)
    return_misses: int = Field(ge=0)

    @property
    def mispredicted(self) -> int:
        """Branches that were mispredicted."""
        return self.direction_misses + self.target_misses + self.return_misses


Counts = TypeVar("Counts", bound=CycleCounts)


def parsed(kind: type[Counts], found: Mapping[str, int]) -> Counts:
    """The counts of a result. Raises BadInput if another model has counted them."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise BadInput(f"counts of another model of a core: {first_fault(error)}", "fwlab run LAB") from error
