# SPDX-License-Identifier: GPL-2.0-or-later
"""What one grading covers: labs and works. Made and checked before any machine starts."""

from dataclasses import dataclass, field
from pathlib import Path

from fwlab.generator.selection import AUTO
from fwlab.grading.graded import OUTCOMES, Work, handed_in, own_work
from fwlab.grading.submissions import Submissions
from fwlab.host.project import Project, is_measured, lab_ids
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab, measured_elsewhere, on_dut
from fwlab.measure.plan import base_cases, chosen_cases, refuse_unplayable_traffic
from fwlab.model.errors import BadInput
from fwlab.testbed.dut_choice import topology_of
from fwlab.testbed.selection import TestbedRequest


@dataclass(frozen=True)
class GradingOptions:
    """The options of `pytest --testinfra`, as they were given.

    lab          the lab to grade; None means every lab that has published results
    submissions  the folder of a class
    parts        which of the lab's own rulesets to grade; None means the default
    machines     the lab whose machines are used instead of the graded lab's own
    """

    lab: str | None = None
    submissions: Path | None = None
    parts: list[str] | None = None
    testbed: str = "auto"
    machines: str | None = None
    engine: str = AUTO


@dataclass(frozen=True)
class GradingPlan:
    """Labs to grade and, by lab, the works to grade. `submissions` holds a class's files, if there is a class.

    elsewhere  by lab, why its other exercises are left out: they are measured on another system. A class's are
               inconclusive; of the lab's own rulesets they are not among `works`
    """

    project: Project
    contexts: dict[str, RunContext]
    works: dict[str, list[Work]]
    submissions: Submissions | None = None
    elsewhere: dict[str, str] = field(default_factory=dict)


def plan_grading(project: Project, options: GradingOptions) -> GradingPlan:
    """Read labs and submissions. Raises BadInput naming what is wrong; no machine is touched."""
    if options.submissions is not None and options.lab is None:
        raise BadInput("--submissions needs --lab", "name the lab whose exercises were handed in")
    labs = [options.lab] if options.lab else [name for name in lab_ids(project) if is_measured(project, name)]
    testbed = TestbedRequest(options.testbed, grading=True)
    other_lab = load_lab(project, options.machines) if options.machines else None
    contexts = {}
    for name in labs:
        lab = load_lab(project, name)
        topology = topology_of(project, other_lab or lab)
        lab = on_dut(lab, topology, other_lab or lab)
        contexts[name] = RunContext(project, topology, lab, testbed, other_lab=other_lab, engine=options.engine)
    submissions = Submissions() if options.submissions is not None else None
    works = {name: _works(context, options, submissions) for name, context in contexts.items()}
    for name, context in contexts.items():
        exercises = [work.exercise for work in works[name]]
        cases = [*chosen_cases(context.lab, [], quick=True), *base_cases(context.lab, exercises)]
        refuse_unplayable_traffic(context, [*(c.traffic for c in cases), *(e.traffic for e in exercises)])
    elsewhere = {name: reason for name, context in contexts.items() if (reason := _elsewhere(context))}
    return GradingPlan(project, contexts, works, submissions, elsewhere)


def _elsewhere(context: RunContext) -> str | None:
    """Which exercises of the lab another system measures, and how to grade them; None if there are none."""
    lab, own = context.lab, {exercise.id for exercise in context.lab.exercises}
    others = [exercise for exercise in lab.whole.exercises if exercise.id not in own]
    if not others:
        return None
    first = others[0]
    names, system = ", ".join(e.id for e in others if e.system == first.system), str(first.system)
    return f"{names}: {measured_elsewhere(lab, 'the exercise', system)}"


def _works(context: RunContext, options: GradingOptions, submissions: Submissions | None) -> list[Work]:
    """The lab's own rulesets, none by default beside a class's, then the class's."""
    default = list(OUTCOMES) if submissions is None else []
    works = own_work(context, default if options.parts is None else options.parts)
    if submissions is not None and options.submissions is not None:
        works += handed_in(context, options.submissions, submissions)
    return works
