# SPDX-License-Identifier: GPL-2.0-or-later
"""One grading under way: machines, measurements, verdicts and marks."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import testinfra
from rich.console import Console
from testinfra.host import Host

from fwlab.grading.graded import Work, unreadable
from fwlab.grading.grading_plan import GradingPlan
from fwlab.grading.inconclusive import Inconclusive
from fwlab.grading.marks import Records, table
from fwlab.judge.verdicts import judge_cases, judge_exercise
from fwlab.measure.labs import measured_elsewhere
from fwlab.measure.plan import base_cases, case_spec, chosen_cases
from fwlab.measure.saved_runs import reports_folder
from fwlab.measure.session import Session, open_session
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured
from fwlab.model.systems import several
from fwlab.model.verdict import Verdict
from fwlab.report.files import write_report
from fwlab.report.model import build_model
from fwlab.report.progress import listener


class GradingSession:
    """The machines and the results of one grading: one lab's machines at a time, each work measured once.

    announce  prints at once, even where pytest captures output; None prints to the console
    """

    def __init__(self, plan: GradingPlan, console: Console, announce: Callable[[str], None] | None = None) -> None:
        def tell(text: str) -> None:
            console.print(text, markup=False, highlight=False, soft_wrap=True)

        self.plan, self.console = plan, console
        self.records = Records(tell)
        self.graded: dict[str, list[Work]] = {}
        self._announce = announce
        self._stack = contextlib.ExitStack()
        #: The lab whose machines are up, and the session on them.
        self._open: tuple[str, Session] | None = None
        self._verdicts: dict[tuple[str, str], list[Verdict]] = {}
        self._measured: dict[tuple[str, str], Measured] = {}
        self._lost: dict[tuple[str, str], str] = {}
        self._loaded: tuple[str, str] | None = None
        self._down: dict[str, CannotMeasure] = {}

    def begin(self, works: dict[str, list[Work]]) -> None:
        """Write the files of the marks before the first mark: which works will be graded, and what was handed in."""
        self.graded = works
        for lab in works:
            self._save_marks(lab)
            if self.plan.submissions is not None:
                self.records.write(self._folder(lab) / "submissions.json", self.plan.submissions.document())

    # -- machines --

    def session(self, lab: str) -> Session:
        """The session on the lab's machines; another lab's session is closed first. Raises CannotMeasure."""
        if lab in self._down:  # otherwise every test would try again, for minutes
            raise self._down[lab]
        if self._open is not None and self._open[0] == lab:
            return self._open[1]
        self.close()
        tell = self._stack.enter_context(listener(self.console, announce=self._announce))
        try:
            session = self._stack.enter_context(open_session(self.plan.contexts[lab], tell))
        except CannotMeasure as error:
            self._down[lab] = error
            raise
        self._open = lab, session
        return session

    def host(self, lab: str, role: str = "dut") -> Host:
        """The node, for Testinfra."""
        return testinfra.get_host(f"ssh://{role}", ssh_config=str(self.session(lab).ssh_config), sudo=True)

    def close(self) -> None:
        """Save the results and release the machines, even if saving fails."""
        opened, stack = self._open, self._stack
        self._open, self._loaded, self._stack = None, None, contextlib.ExitStack()
        with stack:
            if opened is not None:
                lab, session = opened
                self.records.attempt(self._save_report, lab, session)
                self._save_marks(lab)

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
        if key not in self._verdicts:
            if key in self._lost:
                raise CannotMeasure(self._lost[key])
            try:
                self._verdicts[key] = self._judged(lab, work)
            except CannotMeasure as error:
                self._lost[key] = error.message
                raise
            except Exception as error:  # a bug must not fail a student or stop the grading
                self.console.print_exception()
                self._lost[key] = f"internal error while grading: {type(error).__name__}: {error}"
                raise CannotMeasure(self._lost[key], "see the traceback above") from error
            finally:
                self._save_marks(lab)
        return self._verdicts[key]

    def _judged(self, lab: str, work: Work) -> list[Verdict]:
        context = self.plan.contexts[lab]
        if context.lab.exercise(work.exercise.id) is None:
            elsewhere = measured_elsewhere(context.lab, work.exercise.id, work.exercise.system)
            raise CannotMeasure(elsewhere.message, elsewhere.hint)
        reason = unreadable(work, self.plan.contexts[lab])
        if reason is None:
            measured = self._measure(lab, work)
        else:
            measured = self._refused(lab, work, reason)
            self.session(lab).run.exercises.append(measured)
        self._measured[(lab, work.name)] = measured
        return judge_exercise(work.exercise, measured, self.session(lab).run, METRICS)

    def measured(self, lab: str, work: Work) -> Measured:
        """The measurement behind the verdicts, with its problems or the reason why the ruleset was not loaded."""
        self.verdicts(lab, work)
        return self._measured[(lab, work.name)]

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
        session.measure_exercises([work.spec(context)])
        measured = session.run.exercises[-1]
        if not measured.problems and why_not_loaded(measured) is None:
            self._loaded = (lab, work.name)
        return measured

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

    def marks(self, lab: str) -> str:
        """The marks as CSV, one row per work, graded or not."""

        def found(work: Work) -> list[Verdict] | str | None:
            key = (lab, work.name)
            return self._verdicts.get(key) or self._lost.get(key)

        return table(self.graded.get(lab, []), found)

    def _save_marks(self, lab: str) -> None:
        context = self.plan.contexts[lab]
        system = context.topology.nodes["dut"].system
        name = f"marks-{system}.csv" if several(context.lab) else "marks.csv"
        self.records.write(self._folder(lab) / name, self.marks(lab))

    def _save_report(self, lab: str, session: Session) -> None:
        write_report(build_model(self.plan.contexts[lab].lab, session.run), self._folder(lab))

    def _folder(self, lab: str) -> Path:
        return reports_folder(self.plan.project, lab) / "grading"


def why_not_loaded(measured: Measured) -> str | None:
    """Why the ruleset is not on the DUT: a tool refused it, or the DUT crashed; None if it is."""
    if measured.refused is not None:
        return f"not loaded: {measured.refused}"
    lost = measured.lost
    return lost[-1] if lost else None
