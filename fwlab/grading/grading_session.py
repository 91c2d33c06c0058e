# SPDX-License-Identifier: GPL-2.0-or-later
"""One grading under way: machines, measurements, verdicts and marks."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import testinfra
from rich.console import Console
from testinfra.host import Host

from fwlab.dut.registry import dut_system
from fwlab.grading.graded import Work, unreadable
from fwlab.grading.grading_plan import GradingPlan
from fwlab.grading.inconclusive import Inconclusive
from fwlab.grading.known import Key, Known
from fwlab.grading.marks import Records
from fwlab.grading.needs import Present, present_on
from fwlab.grading.resume import Earlier
from fwlab.grading.saving import Saving
from fwlab.grading.sets import Sets
from fwlab.judge.verdicts import judge_cases, judge_exercise
from fwlab.measure.context import same_machines
from fwlab.measure.labs import measured_elsewhere
from fwlab.measure.plan import base_cases, case_spec, chosen_cases
from fwlab.measure.session import Session, open_session
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import Value
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured
from fwlab.model.verdict import Outcome, Verdict
from fwlab.report.progress import listener

#: Time for all rulesets of a student that crash the DUT or keep themselves from being measured (s): half of what ten
#: that each exceed their limit twice would take.
STUDENT_S = 2400.0
#: How often a grading that waits for another set of machines looks at what it has saved (s).
POLL_S = 0.5


class GradingSession:
    """The machines and the results of one grading: one lab's machines at a time, each work measured once.

    announce  prints at once, even where pytest captures output; None prints to the console
    """

    def __init__(self, plan: GradingPlan, console: Console, announce: Callable[[str], None] | None = None) -> None:
        def tell(text: str) -> None:
            console.print(text, markup=False, highlight=False, soft_wrap=True)

        self.plan, self.console = plan, console
        self.records = Records(tell)
        self._say = announce or tell
        self._announce = announce
        self._stack = contextlib.ExitStack()
        #: The lab whose machines are up, and the session on them.
        self._open: tuple[str, Session] | None = None
        self._known = Known()
        self._loaded: Key | None = None
        #: The student whose ruleset was measured last: for the next one, the DUT is restored.
        self._student: str | None = None
        #: Seconds that such rulesets of each student took so far.
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._down: dict[str, CannotMeasure] = {}
        self._present: dict[str, Present] = {}
        self._saving = Saving(plan, self.records, self._known)
        self._sets: Sets | None = None

    def begin(self, works: dict[str, list[Work]]) -> None:
        """Write the files of the marks before the first mark, and start further sets of machines."""
        for note in self.plan.notes:
            self.records.tell(note)
        self._saving.begin(works)
        for lab in works if self.plan.sets else ():
            with contextlib.suppress(CannotMeasure):  # the first test says why
                self._start_sets(lab, self.session(lab), works[lab])

    # -- further sets of machines --

    def _start_sets(self, lab: str, session: Session, works: Sequence[Work]) -> None:
        """Divide what is to be measured among the sets. These machines are up: without them nothing is graded."""
        measured = {exercise.id for exercise in self.plan.contexts[lab].lab.exercises}
        left = [work for work in works if work.exercise.id in measured and not self._known.of(lab, work)]
        self._sets = Sets(self.plan, lab, self._known, self._say)
        self._sets.start([work for work in left if work.handed_in is not None and work.handed_in.files])

    def turn(self, work: Work | None) -> int:
        """The number of the set that grades the work; 1 for what is no work."""
        return 1 if self._sets is None or work is None else self._sets.turn(work)

    def _hear(self, lab: str, session: Session) -> None:
        """Take over what other sets have decided since the last time."""
        for name, given, earlier in self._sets.news() if self._sets is not None else ():
            why, works = earlier.why_not(session.run), [w for w in self.plan.works[lab] if w.name in given]
            if why is not None:
                self._say(f"{name}: its results are not used: {why}")
            elif self._add(lab, session, works, (name, earlier)):
                self._saving.marks(lab, session.run)

    def _wait(self, lab: str, work: Work) -> None:
        """Wait while another set may still decide the work."""
        while self._sets is not None and (lab, work.name) not in self._known.kept and self._sets.working_on(work):
            self._hear(lab, self.session(lab))
            time.sleep(POLL_S)

    # -- machines --

    def session(self, lab: str) -> Session:
        """The session on the lab's machines; another lab's is ended first. Raises CannotMeasure."""
        if lab in self._down:  # otherwise every test would try again, for minutes
            raise self._down[lab]
        if self._open is not None and self._open[0] == lab:
            return self._open[1]
        context, before = self.plan.contexts[lab], self._open[1] if self._open is not None else None
        if before is not None and not before.dead and same_machines(before.context, context):
            self._end()
            session = before.for_lab(context)
        else:
            self.close()
            tell = self._stack.enter_context(listener(self.console, announce=self._announce))
            try:
                session = self._stack.enter_context(open_session(context, tell))
            except CannotMeasure as error:
                self._down[lab] = error
                raise
        self._open = lab, session
        self._take_over(lab, session)
        return session

    def _take_over(self, lab: str, session: Session) -> None:
        """Add what an earlier grading decided to this session's results, before anything is measured."""
        earlier = self.plan.earlier
        if earlier is None:
            return
        why = earlier.why_not(session.run)
        if why is not None:
            self._say(f"nothing is taken over from an earlier grading: {why}")
            return
        count = self._add(lab, session, self.plan.works[lab], ("earlier", earlier))
        self._say(f"{count} rulesets were graded before and are not measured again")
        self._save(lab)

    def _add(self, lab: str, session: Session, works: Sequence[Work], other: tuple[str, Earlier]) -> int:
        return self._known.take_over(self.plan.contexts[lab], works, session.run, other, self._numbers)

    def _numbers(self, work: Work) -> dict[str, Value]:
        return self.plan.submissions.individual.get(work.who, {}) if self.plan.submissions else {}

    def kept(self, lab: str, work: Work) -> bool:
        """Whether the verdicts come from an earlier grading."""
        self.session(lab)
        return (lab, work.name) in self._known.kept

    def holds(self, lab: str, work: Work) -> None:
        """Record that the DUT holds what the work's files say."""
        self._known.held.add((lab, work.name))

    def host(self, lab: str, role: str = "dut") -> Host:
        """The node, for Testinfra."""
        return testinfra.get_host(f"ssh://{role}", ssh_config=str(self.session(lab).ssh_config), sudo=True)

    def forwarding(self, lab: str) -> str:
        """The sysctl that says whether the DUT forwards."""
        return dut_system(self.plan.contexts[lab].topology.nodes["dut"].system).forwarding

    def present(self, lab: str) -> Present:
        """What the DUT has of what the lab needs; asked once."""
        if lab not in self._present:
            needs = self.plan.contexts[lab].lab.needs
            sysctls = dict.fromkeys([self.forwarding(lab), *needs.sysctls])
            self._present[lab] = present_on(self.host(lab), needs.packages, needs.modules, sysctls)
        return self._present[lab]

    def close(self) -> None:
        """Save the results and release the machines, even if saving fails."""
        stack, self._stack = self._stack, contextlib.ExitStack()
        with stack:
            self._end()

    def _end(self) -> None:
        """Save the results of the lab whose session is open."""
        opened, self._open, self._loaded, self._student = self._open, None, None, None
        if opened is None:
            return
        lab, session = opened
        if self._sets is not None:
            self._sets.stop()
            self._hear(lab, session)
            self._sets = None
        self._saving.end(lab, session.run)

    # -- measurements, each made once --

    def case_verdicts(self, lab: str, case: str) -> tuple[Measured, list[Verdict]]:
        """The case and its verdicts. All quick cases are measured first, because ratios need them."""
        session = self.session(lab)
        quick = chosen_cases(self.plan.contexts[lab].lab, [], quick=True)
        self._measure_cases(session, [c.id for c in quick])
        verdicts = [v for v in judge_cases(self.plan.contexts[lab].lab, session.run, METRICS) if v.subject == case]
        measured = session.run.case(case)
        if measured is None:
            raise CannotMeasure(f"case {case} was not measured")
        return measured, verdicts

    def verdicts(self, lab: str, work: Work) -> list[Verdict]:
        """One verdict per check of the work's exercise. Raises CannotMeasure, on every call if on the first."""
        key = (lab, work.name)
        if key not in self._known.verdicts:
            if key in self._known.lost:
                raise CannotMeasure(self._known.lost[key])
            try:
                self._known.verdicts[key] = self._judged(lab, work)
            except CannotMeasure as error:
                self._known.lost[key] = error.message
                raise
            except Exception as error:  # a bug must not fail a student or stop the grading
                self.console.print_exception()
                self._known.lost[key] = f"internal error while grading: {type(error).__name__}: {error}"
                raise CannotMeasure(self._known.lost[key], "see the traceback above") from error
            finally:
                self._save(lab)
            self._hear(lab, self.session(lab))
        return self._known.verdicts[key]

    def _judged(self, lab: str, work: Work) -> list[Verdict]:
        context = self.plan.contexts[lab]
        if context.lab.exercise(work.exercise.id) is None:
            elsewhere = measured_elsewhere(context.lab, work.exercise.id, work.exercise.system)
            raise CannotMeasure(elsewhere.message, elsewhere.hint)
        self._wait(lab, work)
        if self.kept(lab, work):  # taken over as the machines came up, which may be just now
            return self._known.verdicts[(lab, work.name)]
        reason = unreadable(work, self.plan.contexts[lab])
        if reason is None and work.handed_in is not None and self._spent[work.who] > STUDENT_S:
            minutes = f"{STUDENT_S / 60:g} minutes"
            reason = (
                f"exercises of {work.who} that could not be measured took more than {minutes}, and no student has more"
            )
        if reason is None:
            measured = self._measure(lab, work)
        else:
            measured = self._refused(lab, work, reason)
            self.session(lab).run.exercises.append(measured)
        self._known.measured[(lab, work.name)] = measured
        return judge_exercise(work.exercise, measured, self.session(lab).run, METRICS)

    def measured(self, lab: str, work: Work) -> Measured:
        """The measurement behind the verdicts, with its problems or the reason why the ruleset was not loaded."""
        self.verdicts(lab, work)
        return self._known.measured[(lab, work.name)]

    def loaded(self, lab: str, work: Work, *, anew: bool = False) -> MeasurementSpec:
        """Make sure that the work's ruleset is loaded on the DUT now; `anew` loads it again in any case.

        The verdicts stay those of the first measurement. Raises Inconclusive if the ruleset cannot be loaded again.
        """
        self.verdicts(lab, work)
        if anew or self._loaded != (lab, work.name):
            again = self._measure(lab, work)
            reason = "; ".join(again.problems) or why_not_loaded(again)
            if reason:
                raise Inconclusive(f"the ruleset was loaded once, but not a second time: {reason}")
        return work.spec(self.plan.contexts[lab])

    def _measure(self, lab: str, work: Work) -> Measured:
        session, context = self.session(lab), self.plan.contexts[lab]
        self._measure_cases(session, [c.id for c in base_cases(context.lab, [work.exercise])])
        self._loaded = None
        began = time.monotonic()
        if work.handed_in is not None and work.who != self._student:
            session.start_over()
            self._student = work.who
        spec = work.spec(context)
        if work.made is not None and work.expected is Outcome.FAIL:  # there are many, and any failure will do
            spec = replace(spec, decided=lambda so_far: self._fails(lab, work, so_far))
        session.measure_exercises([spec], *([work.own] if work.own else []))
        measured = session.run.exercises[-1]
        if measured.lost or measured.fine_without:  # else the host may be slow
            self._spent[work.who] += time.monotonic() - began
        if not measured.problems and why_not_loaded(measured) is None:
            self._loaded = (lab, work.name)
        return measured

    def _fails(self, lab: str, work: Work, so_far: Measured) -> bool:
        verdicts = judge_exercise(work.exercise, so_far, self.session(lab).run, METRICS)
        return any(verdict.outcome is Outcome.FAIL for verdict in verdicts)

    def _measure_cases(self, session: Session, wanted: list[str]) -> None:
        missing = [name for name in wanted if session.run.case(name) is None]
        if missing:
            context = session.context
            session.measure_cases([case_spec(context, context.lab.cases[name], None) for name in missing])
            self._loaded = None

    def _refused(self, lab: str, work: Work, reason: str) -> Measured:
        """A result for a work that was not measured, so that the results list every work."""
        exercise, ruleset = work.exercise, work.ruleset(self.plan.contexts[lab])
        return Measured(id=exercise.id, title=exercise.title, ruleset=ruleset, ruleset_hash="", refused=reason)

    # -- marks --

    @property
    def graded(self) -> dict[str, list[Work]]:
        """By lab, the works of this grading."""
        return self._saving.graded

    def marks(self, lab: str) -> str:
        """The marks as CSV, one row per work, graded or not."""
        return self._saving.table(lab)

    def _save(self, lab: str) -> None:
        self._saving.marks(lab, self._open[1].run if self._open is not None else None)


def why_not_loaded(measured: Measured) -> str | None:
    """Why the ruleset is not on the DUT: a tool refused it, or the DUT crashed; None if it is."""
    if measured.refused is not None:
        return f"not loaded: {measured.refused}"
    lost = measured.lost
    return lost[-1] if lost else None
