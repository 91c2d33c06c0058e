# SPDX-License-Identifier: GPL-2.0-or-later
"""What one grading covers: labs and works. Made and checked before any machine starts."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from fwlab.generator.selection import AUTO
from fwlab.grading.course import Course, read_course, refuse_unknown
from fwlab.grading.graded import OUTCOMES, Work, handed_in, own_work
from fwlab.grading.resume import Earlier, read_earlier
from fwlab.grading.set_machines import further_machines
from fwlab.grading.submissions import Submissions
from fwlab.host.project import Project, is_measured, lab_ids
from fwlab.measure.context import RunContext
from fwlab.measure.labs import load_lab, measured_elsewhere, on_dut
from fwlab.measure.plan import base_cases, chosen_cases, refuse_unplayable_traffic, with_able_engine
from fwlab.measure.saved_runs import reports_folder
from fwlab.model.drawn import seed_or_new
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.systems import several
from fwlab.testbed.dut_choice import topology_of
from fwlab.testbed.selection import TestbedRequest


@dataclass(frozen=True)
class GradingOptions:
    """The options of `pytest --testinfra`, as they were given.

    labs         the labs to grade; None means every lab that has published results
    submissions  the folder of a class
    parts        which of the lab's own rulesets to grade; None means the default
    further      whether a class's further exercises are graded, too; they count apart
    machines     the lab whose machines are used instead of the graded lab's own
    course       a course.yml
    results      the folder for the files of the grading, instead of reports/LAB/grading
    resume       take over what an earlier grading in that folder has decided
    seed         draws the traffic; None means a new one for a class, and 1 for the lab's own rulesets
    sets         how many sets of machines share a class
    force_sets   do not ask whether the host is large enough for them
    one_of_sets  this grading is one further set's (sets.py): it starts the machines that `machines` names
    """

    labs: list[str] | None = None
    submissions: Path | None = None
    parts: list[str] | None = None
    further: bool = False
    testbed: str = "auto"
    machines: str | None = None
    engine: str = AUTO
    course: Path | None = None
    results: Path | None = None
    resume: bool = False
    seed: int | None = None
    sets: int = 1
    force_sets: bool = False
    one_of_sets: bool = False


@dataclass(frozen=True)
class GradingPlan:
    """Labs to grade and, by lab, the works to grade. `submissions` holds a class's files, if there is a class.

    course     how verdicts become grades
    results    where the files of the grading go, if that was said
    earlier    a grading to continue
    notes      what to tell before it begins
    options    as they were given
    sets       the labs whose machines make further sets, beside those of the context
    elsewhere  by lab, why its other exercises are left out: they are measured on another system. A class's are
               inconclusive; of the lab's own rulesets they are not among `works`
    """

    project: Project
    contexts: dict[str, RunContext]
    works: dict[str, list[Work]]
    submissions: Submissions | None = None
    elsewhere: dict[str, str] = field(default_factory=dict)
    course: Course = field(default_factory=Course)
    results: Path | None = None
    earlier: Earlier | None = None
    notes: tuple[str, ...] = ()
    options: GradingOptions = field(default_factory=GradingOptions)
    sets: tuple[Lab, ...] = ()

    def folder(self, lab: str) -> Path:
        """Where the files of this lab's grading go."""
        return self.results or reports_folder(self.project, lab) / "grading"

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
    for name in ("course", "resume"):
        if getattr(options, name) and options.submissions is None:
            raise BadInput(f"--{name} needs --submissions", "name the folder of the class")
    if options.sets != 1 and options.submissions is None:
        raise BadInput("--sets needs --submissions", "the lab's own rulesets are graded on one set of machines")
    if options.results is not None and not only:
        raise BadInput("--results needs one --lab", "name the lab that is graded")
    contexts = {name: _context(project, name, options) for name in labs}
    wanted = 1 if options.one_of_sets else options.sets
    sets = () if wanted == 1 else further_machines(contexts[labs[0]], wanted, force=options.force_sets)
    course = Course() if options.course is None else read_course(project, options.course)
    for context in contexts.values():
        refuse_unknown(course, context.lab, str(options.course))
    plan = GradingPlan(project, contexts, {}, course=course, results=options.results, options=options, sets=sets)
    if options.resume:
        plan = _continued(plan)
        if plan.earlier is not None and options.seed is None and plan.earlier.run.seed != contexts[labs[0]].seed:
            # The whole class gets the traffic that was drawn for its first part.
            return plan_grading(project, replace(options, seed=plan.earlier.run.seed))
    # The first set removes what a further one leaves, even if that is killed.
    inside = options.submissions.parent if options.submissions is not None and options.one_of_sets else None
    submissions = Submissions(inside) if options.submissions is not None else None
    works = {name: _works(context, options, submissions, course) for name, context in contexts.items()}
    for name, context in contexts.items():
        exercises = [work.exercise for work in works[name]]
        cases = [*chosen_cases(context.lab, [], quick=True), *base_cases(context.lab, exercises)]
        traffics = [*(c.traffic for c in cases), *(e.traffic for e in exercises)]
        contexts[name] = with_able_engine(context, traffics)
        refuse_unplayable_traffic(contexts[name], traffics)
    elsewhere = {name: reason for name, context in contexts.items() if (reason := _elsewhere(context))}
    odd = tuple(submissions.odd) if submissions is not None else ()
    found = replace(plan, works=works, submissions=submissions, elsewhere=elsewhere)
    return replace(found, contexts=contexts, notes=(*plan.notes, *odd))


def _context(project: Project, name: str, options: GradingOptions) -> RunContext:
    lab, other_lab = load_lab(project, name), load_lab(project, options.machines) if options.machines else None
    topology = topology_of(project, other_lab or lab)
    lab = on_dut(lab, topology, other_lab or lab)
    return RunContext(
        project,
        topology,
        lab,
        TestbedRequest(options.testbed, grading=True),
        seed_or_new(1 if options.seed is None and options.submissions is None else options.seed),
        other_lab=other_lab,
        engine=options.engine,
        starts=options.one_of_sets,
        untrusted=True,
    )


def _continued(plan: GradingPlan) -> GradingPlan:
    """The plan with the earlier grading that it goes on with, if there is one."""
    [lab] = plan.contexts
    earlier, why = read_earlier(plan.project, plan.contexts[lab].lab, plan.class_folder(lab))
    if earlier is not None and plan.course.secret is None and any(one.individual for one in earlier.grading.students):
        raise BadInput(
            "the earlier grading has individual tasks, and without the course's secret nobody has one",
            "the same command with --course course.yml",
        )
    note = f"nothing is taken over from an earlier grading: {why}"
    return replace(plan, earlier=earlier, notes=(*plan.notes, note) if earlier is None else plan.notes)


def _elsewhere(context: RunContext) -> str | None:
    """Which exercises of the lab another system measures, and how to grade them; None if there are none."""
    lab, own = context.lab, {exercise.id for exercise in context.lab.exercises}
    others = [exercise for exercise in lab.whole.exercises if exercise.id not in own]
    if not others:
        return None
    first = others[0]
    names, system = ", ".join(e.id for e in others if e.system == first.system), str(first.system)
    return f"{names}: {measured_elsewhere(lab, 'the exercise', system)}"


def _works(context: RunContext, options: GradingOptions, submissions: Submissions | None, course: Course) -> list[Work]:
    """The lab's own rulesets, none by default beside a class's, then the class's."""
    default = list(OUTCOMES) if submissions is None else []
    works = own_work(context, default if options.parts is None else options.parts)
    if submissions is not None and options.submissions is not None:
        works += handed_in(context, options.submissions, submissions, course, further=options.further)
    return works
