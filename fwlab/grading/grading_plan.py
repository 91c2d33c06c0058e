# SPDX-License-Identifier: GPL-2.0-or-later
"""What one grading covers: labs and works. Made and checked before any machine starts."""

from dataclasses import dataclass
from pathlib import Path

from fwlab.generator.selection import AUTO
from fwlab.grading.graded import OUTCOMES, Work, handed_in, own_work
from fwlab.grading.submissions import Submissions
from fwlab.host.project import Project, is_measured, lab_ids
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab
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
    """Labs to grade and, by lab, the works to grade. `submissions` holds a class's files, if there is a class."""

    project: Project
    contexts: dict[str, RunContext]
    works: dict[str, list[Work]]
    submissions: Submissions | None = None


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
        contexts[name] = RunContext(project, topology, lab, testbed, other_lab=other_lab, engine=options.engine)
    submissions = Submissions() if options.submissions is not None else None
    works = {name: _works(context, options, submissions) for name, context in contexts.items()}
    for name, context in contexts.items():
        exercises = [work.exercise for work in works[name]]
        cases = [*chosen_cases(context.lab, [], quick=True), *base_cases(context.lab, exercises)]
        refuse_unplayable_traffic(context, [*(c.traffic for c in cases), *(e.traffic for e in exercises)])
    return GradingPlan(project, contexts, works, submissions)


def _works(context: RunContext, options: GradingOptions, submissions: Submissions | None) -> list[Work]:
    """The lab's own rulesets, none by default beside a class's, then the class's."""
    default = list(OUTCOMES) if submissions is None else []
    works = own_work(context, default if options.parts is None else options.parts)
    if submissions is not None and options.submissions is not None:
        works += handed_in(context, options.submissions, submissions)
    return works
