# SPDX-License-Identifier: GPL-2.0-or-later
"""Modelled cores: what a packet would cost on a CPU that the DUT is not, counted from outside of the DUT.

None is built in. Another distribution, such as `coresim/`, registers one in the group `fwlab.core_models`. Results keep
its counts as it gave them: `TestbedFacts.core`, `Trial.modelled` and `Measured.functions`.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from fwlab.dut.protocol import CoreModel
from fwlab.metrics.call_stacks import Stacks
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.errors import BadInput
from fwlab.model.events import EventSink, StepStarted
from fwlab.model.registry import Registry, discover
from fwlab.model.results import Measured, Run, TestbedFacts
from fwlab.testbed.machines import Machines


@dataclass(frozen=True)
class CoreTable:
    """Figures of the modelled cases, for people: a case's name and a cell for each of `heads` in every row."""

    heads: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    caption: str


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


@dataclass(frozen=True)
class CoreProfile:
    """Where a packet waits: the core's title, every function, most cycles first, and stacks weighted by their waits."""

    title: str
    functions: Sequence[FunctionCost]
    stacks: Stacks

    @property
    def cycles(self) -> float:
        """Cycles per packet."""
        return sum(one.cycles for one in self.functions)

    @property
    def waits(self) -> float:
        """Cycles of these that the core waits."""
        return sum(one.waits for one in self.functions)


class CoreModels(Protocol):
    """Cores that one distribution can model. `name`: the distribution's."""

    name: str

    def cores(self) -> Mapping[str, str]:
        """The titles of the cores, by name."""

    def facts(self, core: str) -> dict[str, Any]:
        """A core's title and parameters, which a run records."""

    def attached(
        self, core: str, machines: Machines, forwarded: tuple[str, int]
    ) -> contextlib.AbstractContextManager[CoreModel]:
        """The core's model, watching the DUT while the context is open. Raises CannotMeasure.

        forwarded  the address and port on which the DUT's QEMU forwards SSH
        """

    def asked(self, spec: MeasurementSpec) -> MeasurementSpec:
        """The same measurement, which also asks for the model's figures."""

    def table(self, run: Run, cases: Iterable[Measured]) -> CoreTable | None:
        """Figures of these cases of a run; None if another kind modelled it."""

    def profile(self, measured: Measured, testbed: TestbedFacts) -> CoreProfile | None:
        """Where a packet of this case waits; None if its functions were not counted."""


@cache
def core_models() -> Registry[CoreModels]:
    """All of them, by name. When this module is imported, those that import it in turn cannot be loaded yet."""
    return discover("core model", None, "", "fwlab.core_models", CoreModels)


def known_cores() -> dict[str, str]:
    """Titles of all cores that can be modelled, by name."""
    return {name: title for kind in core_models().values() for name, title in kind.cores().items()}


def model_of(core: str) -> CoreModels:
    """What models this core. Raises BadInput if nothing does."""
    for kind in core_models().values():
        if core in kind.cores():
            return kind
    if not core_models():
        raise BadInput(f"cannot model {core}: no model of a core is installed", "pip install ./coresim")
    raise BadInput(f"no core is called {core}; there are: {', '.join(known_cores())}", "fwlab run --help")


@contextlib.contextmanager
def modelled(core: str, machines: Machines, forwarded: tuple[str, int], emit: EventSink) -> Iterator[CoreModel | None]:
    """The model of this core, attached to the DUT; None if no core is named. Raises CannotMeasure."""
    if not core:
        yield None
        return
    emit(StepStarted(f"attaching a model of {core} to the DUT"))
    with model_of(core).attached(core, machines, forwarded) as counters:
        yield counters


def modelled_specs(core: str, specs: Iterable[MeasurementSpec]) -> list[MeasurementSpec]:
    """The same, with what the model of this core needs where traffic is played; unchanged if no core is named."""
    kind = model_of(core) if core else None
    return [kind.asked(spec) if kind is not None and spec.traffic is not None else spec for spec in specs]


def core_tables(run: Run, cases: Iterable[Measured]) -> list[CoreTable]:
    """What was modelled in these cases of a run, one table for each model that counted."""
    measured = list(cases)
    found = [kind.table(run, measured) for kind in core_models().values()] if run.testbed.core else []
    return [table for table in found if table is not None]


def core_profile(measured: Measured, testbed: TestbedFacts) -> CoreProfile | None:
    """Where a packet of this case waits on the modelled core; None if that was not counted."""
    kinds = core_models().values() if testbed.core else ()
    return next((found for kind in kinds if (found := kind.profile(measured, testbed)) is not None), None)
