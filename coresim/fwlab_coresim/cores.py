# SPDX-License-Identifier: GPL-2.0-or-later
"""The reference cores (cores.yml): what each waits for, and how long; and the core that a run was modelled on."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from fwlab.model.declared import Frozen, first_fault
from fwlab.model.errors import BadInput
from fwlab.model.results import TestbedFacts
from fwlab_coresim.counts import CycleCounts

Count = Annotated[int, Field(ge=1)]
Cycles = Annotated[int, Field(ge=0)]


class Cache(Frozen):
    """A cache with lines of 64 bytes. `latency`: cycles from a load to the use of what it loaded."""

    kib: Count
    ways: Count
    latency: Cycles


class Instructions(Frozen):
    """The instruction cache of the first level. Its latency is hidden."""

    kib: Count
    ways: Count


class Pages(Frozen):
    """Translations that a TLB of the first level holds, for pages of 4 KiB (`small`) and 2 MiB (`large`)."""

    small: Count
    small_ways: Count
    large: Count
    large_ways: Count


class SecondTlb(Frozen):
    """The second level of TLBs. `latency`: cycles more than for the first; `split`: one each for code and data."""

    pages: Count
    ways: Count
    latency: Cycles
    split: bool
    large: bool


class Directions(Frozen):
    """Two-bit counters for conditional branches, and how many last outcomes choose one of them."""

    counters: Count
    outcomes: Cycles


class Targets(Frozen):
    """Entries for targets of indirect branches, and how many last targets choose one of them."""

    entries: Count
    history: Cycles


class ReferenceCore(Frozen):
    """One core.

    width           instructions per cycle, at best
    memory_latency  cycles from a load to its use, if no cache has the line
    returns         entries of the return stack
    mispredicted    cycles that a mispredicted branch costs
    retpolines      how the kernel's retpolines are priced: as what they are, returns that are always mispredicted, or
                    as the indirect branches that they replace, for a core that needs none
    locked          cycles of an instruction with a lock prefix
    sources         where each parameter comes from
    """

    title: str
    width: Count
    l1i: Instructions
    l1d: Cache
    l2: Cache
    llc: Cache | None = None
    memory_latency: Cycles
    itlb: Pages
    dtlb: Pages
    second_tlb: SecondTlb
    directions: Directions
    targets: Targets
    returns: Annotated[int, Field(ge=1, le=64)]
    mispredicted: Cycles
    retpolines: Literal["predicted", "mispredicted"]
    locked: Cycles
    sources: dict[str, str] = {}

    @model_validator(mode="after")
    def _every_parameter_has_a_source(self) -> Self:
        wanted = {name for name in type(self).model_fields if getattr(self, name) is not None} - {"title", "sources"}
        if self.sources.keys() != wanted:
            differ = ", ".join(sorted(self.sources.keys() ^ wanted))
            raise ValueError(f"`sources` must name exactly the parameters; these differ: {differ}")
        return self

    def words(self) -> list[str]:
        """The parameters as plugin/settings.c reads them."""
        llc = self.llc
        return [
            f"l1i={self.l1i.kib << 10}:{self.l1i.ways}",
            *(_cache(name, level) for name, level in (("l1d", self.l1d), ("l2", self.l2))),
            *([_cache("llc", llc)] if llc else []),
            f"memory={self.memory_latency}",
            *_pages("itlb", self.itlb),
            *_pages("dtlb", self.dtlb),
            f"stlb={self.second_tlb.pages}:{self.second_tlb.ways}:{self.second_tlb.latency}",
            f"stlb_split={int(self.second_tlb.split)}",
            f"stlb_large={int(self.second_tlb.large)}",
            f"directions={self.directions.counters}:{self.directions.outcomes}",
            f"targets={self.targets.entries}:{self.targets.history}",
            f"returns={self.returns}",
            f"mispredicted={self.mispredicted}",
            f"retpolines_predicted={int(self.retpolines == 'predicted')}",
            f"locked={self.locked}",
        ]

    def cycles(self, found: CycleCounts) -> float:
        """The cycles of a window, or of a part of its code: instructions at full width, and what they wait for."""
        return found.instructions / self.width + found.waits


@cache
def reference_cores() -> dict[str, ReferenceCore]:
    """The cores that can be modelled, by name."""
    declared = yaml.safe_load(Path(__file__).with_name("cores.yml").read_text(encoding="utf-8"))
    return {name: ReferenceCore.model_validate(core) for name, core in declared.items()}


def core_of(testbed: TestbedFacts) -> ReferenceCore | None:
    """The core that a run was modelled on, as it was then; None if it was not. Raises BadInput if it is not of ours."""
    if testbed.core is None:
        return None
    try:
        return ReferenceCore.model_validate(testbed.core.model_dump(exclude={"name"}))
    except ValidationError as error:
        message = f"{testbed.core.name}: not a core of this model: {first_fault(error)}"
        raise BadInput(message, "fwlab run LAB") from error


def _cache(name: str, level: Cache) -> str:
    return f"{name}={level.kib << 10}:{level.ways}:{level.latency}"


def _pages(name: str, pages: Pages) -> list[str]:
    return [f"{name}={pages.small}:{pages.small_ways}", f"{name}_large={pages.large}:{pages.large_ways}"]
