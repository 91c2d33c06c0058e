# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run is about: the lab, the testbed that was asked for, and whose machines are used."""

from dataclasses import dataclass, replace
from functools import cached_property

from fwlab.checkout.project import Project
from fwlab.generator.selection import AUTO
from fwlab.generator.selection import choose as choose_engine
from fwlab.generator.traffic_store import TrafficStore
from fwlab.measure.core_models import model_of
from fwlab.measure.individual_tasks import with_own_task
from fwlab.measure.labs import load_lab, on_dut
from fwlab.model.drawn import seed_or_new
from fwlab.model.lab import Lab
from fwlab.model.topology import Topology
from fwlab.testbed.choices import topology_of
from fwlab.testbed.selection import TestbedRequest


@dataclass(frozen=True)
class RunContext:
    """Everything that a plan and a session need to know about one run.

    other_lab  another lab whose machines are used; None if the lab uses its own. All labs have the same three nodes, so
               the machines of any lab can serve the others.
    core       the name of the core that the DUT is modelled on; empty: none
    seed       seeds the random choices of traffic profiles
    keep       leave the machines running that the session starts
    engine     auto, or the name of an engine
    engine_why why that engine was chosen by default; empty if the user named one, or it is auto
    untrusted  rulesets that may break the DUT will be measured, so its state is saved before anything else
    """

    project: Project
    topology: Topology
    lab: Lab
    testbed: TestbedRequest
    seed: int = 1
    keep: bool = False
    other_lab: Lab | None = None
    engine: str = AUTO
    engine_why: str = ""
    core: str = ""
    untrusted: bool = False

    def __post_init__(self) -> None:
        if self.core:
            model_of(self.core)  # to fail at once if there is none

    @property
    def machines_lab(self) -> Lab:
        """The lab whose machines are used."""
        return self.other_lab or self.lab

    def played_by(self, engine: str, why: str) -> "RunContext":
        """The same with this engine, and with the traffic that is loaded already."""
        other = replace(self, engine=engine, engine_why=why)
        vars(other)["store"] = self.store
        return other

    @cached_property
    def store(self) -> TrafficStore:
        """The lab's traffic as frames, built once: a check before the session and the session itself share it."""
        return TrafficStore(self.project, self.topology, self.lab, self.seed)


def same_machines(one: RunContext, other: RunContext) -> bool:
    """Whether both use the machines of the same lab, in the same way."""

    def used(context: RunContext) -> tuple[object, ...]:
        way = context.testbed, context.engine, context.core, context.untrusted
        return context.machines_lab.id, context.topology, *way

    return used(one) == used(other)


def run_context(
    project: Project,
    lab_id: str,
    testbed: str,
    *,
    keep: bool = False,
    seed: int | None = 1,
    machines: str | None = None,
    engine: str = AUTO,
    core: str = "",
    untrusted: bool = False,
) -> RunContext:
    """What a command is about; without a seed, a new one. Raises BadInput for a wrong name.

    Raises CannotMeasure for an engine that is not there.
    """
    lab = load_lab(project, lab_id)
    other_lab = load_lab(project, machines) if machines else None
    choose_engine(project, engine)  # to fail at once if it is not there
    topology = topology_of(project, other_lab or lab)
    lab = with_own_task(project, on_dut(lab, topology, other_lab or lab))
    return RunContext(
        project,
        topology,
        lab,
        TestbedRequest(testbed),
        seed_or_new(seed),
        keep,
        other_lab,
        engine,
        core=core,
        untrusted=untrusted,
    )
