# SPDX-License-Identifier: GPL-2.0-or-later
"""One grading: which labs and whose work; machines that are up for one lab at a time; every work measured once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import testinfra
from rich.console import Console
from testinfra.host import Host

from fwlab.generator.selection import AUTO
from fwlab.grading.graded import OUTCOMES, Work, handed_in, own_work, unreadable
from fwlab.grading.inconclusive import Inconclusive
from fwlab.grading.marks import Records, table
from fwlab.grading.submissions import Submissions
from fwlab.host.project import Project, is_measured, lab_ids, load_lab, load_topology
from fwlab.judge.verdicts import judge_cases, judge_exercise
from fwlab.measure.context import RunContext
from fwlab.measure.plan import base_cases, case_task, chosen_cases
from fwlab.measure.saved_runs import reports_folder
from fwlab.measure.session import Session, open_session
from fwlab.measure.traffic_check import refuse_unplayable_traffic
from fwlab.metrics.measurement import Task
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.results import Measured
from fwlab.model.verdict import Verdict
from fwlab.report import write_report
from fwlab.report.progress import listener
from fwlab.testbed.selection import TestbedRequest


@dataclass
class GradingSession:
    """All that is graded in one pytest session. Close it, and machines that it started are gone."""

    project: Project
    contexts: dict[str, RunContext]
    works: dict[str, list[Work]]
    console: Console
    records: Records
    submissions: Submissions | None = None
    graded: dict[str, list[Work]] = field(default_factory=dict)
    aloud: Callable[[str], None] | None = None
    _lab: str | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _session: Session | None = None
    _verdicts: dict[tuple[str, str], list[Verdict]] = field(default_factory=dict)
    _measured: dict[tuple[str, str], Measured] = field(default_factory=dict)
    _lost: dict[tuple[str, str], str] = field(default_factory=dict)
    _loaded: tuple[str, str] | None = None
    _down: dict[str, CannotMeasure] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        project: Project,
        lab: str | None,
        submissions: Path | None,
        parts: list[str] | None,
        testbed: str,
        console: Console,
        machines: str | None = None,
        engine: str = AUTO,
    ) -> GradingSession:
        """Raises BadInput naming what is wrong; no machine is touched."""
        labs = [lab] if lab else [name for name in lab_ids(project) if is_measured(project, name)]
        if submissions is not None and lab is None:
            raise BadInput("--submissions needs --lab", "say which lab was handed in")
        topology, chosen = load_topology(project), TestbedRequest(testbed, grading=True)
        borrowed = load_lab(project, machines) if machines else None
        contexts = {
            name: RunContext(project, topology, load_lab(project, name), chosen, borrowed_from=borrowed, engine=engine)
            for name in labs
        }
        works: dict[str, list[Work]] = {}
        read = Submissions() if submissions is not None else None
        for name, context in contexts.items():
            own = own_work(context, parts if parts is not None else [] if read is not None else list(OUTCOMES))
            works[name] = own + (handed_in(context, submissions, read) if read is not None else [])
            exercises = [work.exercise for work in works[name]]
            cases = [*chosen_cases(context.lab, [], quick=True), *base_cases(context.lab, exercises)]
            refuse_unplayable_traffic(context, (item.traffic for item in [*cases, *exercises]))

        def tell(text: str) -> None:
            console.print(text, markup=False, highlight=False, soft_wrap=True)

        return cls(project, contexts, works, console, Records(tell), read)

    def begin(self, works: dict[str, list[Work]]) -> None:
        """The files of the marks are there before the first mark: what is to be graded, and what was handed in."""
        self.graded = works
        for lab in works:
            self._keep_marks(lab)
            if self.submissions is not None:
                self.records.write(self._folder(lab) / "submissions.json", self.submissions.document())

    # -- machines --

    def session(self, lab: str) -> Session:
        """The lab's machines, up; another lab's are let go first. Raises CannotMeasure."""
        if lab in self._down:  # every test would try again, for minutes
            raise self._down[lab]
        if self._lab != lab:
            self.close()
            context = self.contexts[lab]
            tell = self._stack.enter_context(listener(self.console, aloud=self.aloud))
            try:
                self._session = self._stack.enter_context(open_session(context, tell))
            except CannotMeasure as error:
                self._down[lab] = error
                raise
            self._lab = lab
        return self._session

    def host(self, lab: str, role: str = "dut") -> Host:
        """The node as Testinfra sees it."""
        return testinfra.get_host(f"ssh://{role}", ssh_config=str(self.session(lab).ssh_config), sudo=True)

    def close(self) -> None:
        """Keep the results and let the machines go; they go whatever became of the results."""
        lab, session, stack = self._lab, self._session, self._stack
        self._session, self._lab, self._loaded = None, None, None
        self._stack = contextlib.ExitStack()
        with stack:
            if session is not None:
                self.records.attempt(write_report, self.contexts[lab].lab, session.run, self._folder(lab))
                self._keep_marks(lab)

    # -- measuring, each thing once --

    def case_verdicts(self, lab: str, case: str) -> tuple[Measured, list[Verdict]]:
        """The case, measured after all quick ones were: ratios need them."""
        session = self.session(lab)
        quick = chosen_cases(self.contexts[lab].lab, [], quick=True)
        self._measure_cases(session, [c.id for c in quick])
        verdicts = [v for v in judge_cases(self.contexts[lab].lab, session.run) if v.subject == case]
        return session.run.case(case), verdicts

    def verdicts(self, lab: str, work: Work) -> list[Verdict]:
        """One verdict a check of the work's exercise. Raises CannotMeasure; once so, always so."""
        key = (lab, work.name)
        if key not in self._verdicts:
            if key in self._lost:
                raise CannotMeasure(self._lost[key])
            try:
                self._verdicts[key] = self._judged(lab, work)
            except CannotMeasure as error:
                self._lost[key] = error.message
                raise
            except Exception as error:  # a defect of ours is no student's failure, and stops nobody else's grading
                self.console.print_exception()
                self._lost[key] = f"the grading itself failed: {type(error).__name__}: {error}"
                raise CannotMeasure(self._lost[key], "see the traceback above") from error
            finally:
                self._keep_marks(lab)
        return self._verdicts[key]

    def _judged(self, lab: str, work: Work) -> list[Verdict]:
        reason = unreadable(work, self.contexts[lab])
        if reason is None:
            measured = self._measure(lab, work)
        else:
            measured = self._refused(lab, work, reason)
            self.session(lab).run.exercises.append(measured)
        self._measured[(lab, work.name)] = measured
        return judge_exercise(work.exercise, measured, self.session(lab).run)

    def measured(self, lab: str, work: Work) -> Measured:
        """What the verdicts rest on: why it was not loaded, or what went wrong meanwhile."""
        self.verdicts(lab, work)
        return self._measured[(lab, work.name)]

    def loaded(self, lab: str, work: Work, *, anew: bool = False) -> Task:
        """The work's ruleset, on the DUT now; `anew` loads it once more. Raises Inconclusive where it cannot be there.

        The verdicts stay those of the first measurement.
        """
        self.verdicts(lab, work)
        if anew or self._loaded != (lab, work.name):
            again = self._measure(lab, work)
            reason = "; ".join(again.problems) or why_not_loaded(again)
            if reason:
                raise Inconclusive(f"it was loaded, and the second time it could not be: {reason}")
        return work.task(self.contexts[lab])

    def _measure(self, lab: str, work: Work) -> Measured:
        session, context = self.session(lab), self.contexts[lab]
        self._measure_cases(session, [c.id for c in base_cases(context.lab, [work.exercise])])
        self._loaded = None
        session.measure_exercises([work.task(context)])
        measured = session.run.exercises[-1]
        if not measured.problems and why_not_loaded(measured) is None:
            self._loaded = (lab, work.name)
        return measured

    def _measure_cases(self, session: Session, wanted: list[str]) -> None:
        missing = [name for name in wanted if session.run.case(name) is None]
        if missing:
            context = session.context
            session.measure_cases([case_task(context, context.lab.cases[name], None) for name in missing])
            self._loaded = None

    def _refused(self, lab: str, work: Work, reason: str) -> Measured:
        """In the results, too: who reads them finds every work."""
        exercise, ruleset = work.exercise, work.ruleset(self.contexts[lab])
        return Measured(id=exercise.id, title=exercise.title, ruleset=ruleset, ruleset_hash="", refused=reason)

    # -- marks --

    def marks(self, lab: str) -> str:
        """The class as CSV: every work that is to be graded, whether it was or not."""

        def found(work: Work) -> list[Verdict] | str | None:
            key = (lab, work.name)
            return self._verdicts.get(key) or self._lost.get(key)

        return table(self.graded.get(lab, []), found)

    def _keep_marks(self, lab: str) -> None:
        self.records.write(self._folder(lab) / "marks.csv", self.marks(lab))

    def _folder(self, lab: str) -> Path:
        return reports_folder(self.project, lab) / "grading"


def why_not_loaded(measured: Measured) -> str | None:
    """A tool refused it, or the DUT did not survive it; None where it was on the DUT at the end."""
    if measured.refused is not None:
        return f"not loaded: {measured.refused}"
    lost = measured.lost
    return lost[-1] if lost else None
