# SPDX-License-Identifier: GPL-2.0-or-later
"""What one grading covers: labs and works. Made and checked before any machine starts."""

from dataclasses import dataclass, field
from pathlib import Path

from fwlab.checkout.project import Project, is_measured, lab_ids
from fwlab.grading.course import Course, read_course, reject_unknown
from fwlab.grading.grader import Setup
from fwlab.grading.options import GradingOptions
from fwlab.grading.record import FILE, read_record
from fwlab.grading.submissions import Submissions
from fwlab.grading.works import OUTCOMES, Work, handed_in, own_work
from fwlab.measure.context import RunContext
from fwlab.measure.host_room import reject_too_many
from fwlab.measure.individual_tasks import Tasks, read_tasks
from fwlab.measure.labs import measured_elsewhere
from fwlab.measure.plan import base_cases, chosen_cases, reject_unplayable_traffic, with_able_engine
from fwlab.measure.saved_runs import reports_folder
from fwlab.model.drawn import seed_or_new
from fwlab.model.errors import BadInput
from fwlab.model.systems import several
from fwlab.testbed.testbeds import default_testbed


@dataclass(frozen=True)
class GradingPlan:
    """Labs to grade and, by lab, the works to grade. `submissions` holds a class's files, if there is a class.

    course     how verdicts become grades
    notes      what to tell before it begins
    options    as they were given
    elsewhere  by lab, why its other exercises are left out: they are measured on another system. A class's are
               inconclusive; of the lab's own rulesets they are not among `works`
    """

    project: Project
    contexts: dict[str, RunContext]
    works: dict[str, list[Work]]
    submissions: Submissions | None = None
    elsewhere: dict[str, str] = field(default_factory=dict)
    course: Course = field(default_factory=Course)
    notes: tuple[str, ...] = ()
    options: GradingOptions = field(default_factory=GradingOptions)

    @property
    def with_cases(self) -> bool:
        """Whether the lab's quick cases are part of it."""
        parts = self.options.parts
        return self.options.submissions is None and (not parts or "all" in parts)

    def folder(self, lab: str) -> Path:
        """Where the files of this lab's grading go."""
        return self.options.results or reports_folder(self.project, lab) / "grading"

    def class_folder(self, lab: str) -> Path:
        """Where the record, the grades and the pages of a class go: for a lab for several systems, one of each."""
        context = self.contexts[lab]
        system = context.topology.nodes["dut"].system
        return self.folder(lab) / system if several(context.lab) else self.folder(lab)


def plan_grading(project: Project, options: GradingOptions) -> GradingPlan:
    """Read labs and submissions. Raises BadInput naming what is wrong; no machine is touched."""
    labs = list(dict.fromkeys(options.labs or [])) or [name for name in lab_ids(project) if is_measured(project, name)]
    only = bool(options.labs) and len(labs) == 1
    if options.submissions is not None and not only:
        raise BadInput("--submissions needs one --lab", "name the lab whose exercises were handed in")
    if options.course is not None and options.submissions is None:
        raise BadInput("--course needs --submissions", "name the folder of the class")
    if options.tasks is not None and options.submissions is None:
        raise BadInput("--tasks needs --submissions", "name the folder of the class")
    if options.results is not None and not only:
        raise BadInput("--results needs one --lab", "name the lab that is graded")
    if options.tests and not only:
        raise BadInput("tests of your own need one --lab", "name the lab whose machines they are for")
    _reject_workers(options)
    seed = options.seed
    if seed is None:
        # A class that is graded further gets the traffic that was drawn for its first part.
        seed = _seed_before(project, labs[0], options) if options.resume and only else None
        seed = seed_or_new(1 if seed is None and options.submissions is None else seed)
    contexts = {name: _context(project, name, options, seed) for name in labs}
    course = Course() if options.course is None else read_course(project, options.course)
    for context in contexts.values():
        reject_unknown(course, context.lab, str(options.course))
    if options.workers > 1 and not options.force_workers:
        reject_too_many(project, options.workers)
    tasks = None if options.tasks is None else read_tasks(options.tasks)
    if tasks is not None and course.secret is not None:
        raise BadInput(f"{options.course} has a secret, which draws the tasks", "leave out --tasks, or the secret")
    submissions = Submissions() if options.submissions is not None else None
    works = {name: _works(context, options, submissions, course, tasks) for name, context in contexts.items()}
    for name, context in contexts.items():
        exercises = [work.exercise for work in works[name]]
        cases = [*chosen_cases(context.lab, [], quick=True), *base_cases(context.lab, exercises)]
        traffics = [*(c.traffic for c in cases), *(e.traffic for e in exercises)]
        contexts[name] = with_able_engine(context, traffics)
        reject_unplayable_traffic(contexts[name], traffics)
    elsewhere = {name: reason for name, context in contexts.items() if (reason := _elsewhere(context))}
    notes = tuple(submissions.odd) if submissions is not None else ()
    return GradingPlan(project, contexts, works, submissions, elsewhere, course, notes, options)


def _reject_workers(options: GradingOptions) -> None:
    if options.workers < 1:
        raise BadInput(f"--workers {options.workers}: must be at least 1", "give the number of sets of machines")
    several = options.workers > 1 or options.scheduler is not None
    if several and options.testbed not in ("auto", default_testbed().name):
        why = f"figures of the {options.testbed} testbed depend on what else the host does"
        raise BadInput(f"several workers are for the {default_testbed().name} testbed: {why}", "leave out --workers")
    if several and options.machines is not None:
        raise BadInput("--machines is for one worker: several workers start their own machines", "leave out --machines")
    if options.scheduler is not None and options.workers != 1:
        raise BadInput("--workers is for this host, --scheduler for workers elsewhere", "leave out one of them")
    if options.scheduler is not None:
        from fwlab.grading.cluster import security

        security(options.scheduler, options.key)


def _seed_before(project: Project, lab: str, options: GradingOptions) -> int | None:
    """The seed of the grading that is resumed; None if there is none."""
    context = _context(project, lab, options, 1)
    folder = GradingPlan(project, {lab: context}, {}, options=options).class_folder(lab)
    return read_record(folder).begun.seed if (folder / FILE).exists() else None


def _context(project: Project, name: str, options: GradingOptions, seed: int) -> RunContext:
    setup = Setup(name, "", seed, options.testbed, options.engine, machines=options.machines or "")
    return setup.context(project)


def _elsewhere(context: RunContext) -> str | None:
    """Which exercises of the lab another system measures, and how to grade them; None if there are none."""
    lab, own = context.lab, {exercise.id for exercise in context.lab.exercises}
    others = [exercise for exercise in lab.whole.exercises if exercise.id not in own]
    if not others:
        return None
    first = others[0]
    names, system = ", ".join(e.id for e in others if e.system == first.system), str(first.system)
    return f"{names}: {measured_elsewhere(lab, 'the exercise', system)}"


def _works(
    context: RunContext,
    options: GradingOptions,
    submissions: Submissions | None,
    course: Course,
    tasks: Tasks | None,
) -> list[Work]:
    """The lab's own rulesets, by default only without a class, then the class's."""
    default = list(OUTCOMES) if submissions is None else []
    works = own_work(context, default if options.parts is None else options.parts)
    if submissions is not None and options.submissions is not None:
        works += handed_in(context, options.submissions, submissions, course, tasks, further=options.further)
    return works
