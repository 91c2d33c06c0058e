# SPDX-License-Identifier: GPL-2.0-or-later
"""One grading: which labs and whose work; machines that are up for one lab at a time; every work measured once."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import testinfra
from testinfra.host import Host

from fwlab.doors.progress import listener
from fwlab.logic.judge import judge_cases, judge_exercise
from fwlab.outside.engine import AUTO
from fwlab.outside.project import Project, is_measured, lab_ids, load_lab, load_topology
from fwlab.outside.testbed import TestbedRequest
from fwlab.runs.grading import OUTCOMES, Work, handed_in, own_work, unreadable
from fwlab.runs.report import write_atomically, write_report
from fwlab.runs.saved import reports_folder
from fwlab.runs.session import Session, Setting, open_session, refuse_wrong_traffic
from fwlab.runs.task import Task
from fwlab.runs.tasks import base_cases, case_task, chosen_cases
from fwlab.words.errors import BadInput
from fwlab.words.results import Measured
from fwlab.words.verdict import Outcome, Verdict, overall


@dataclass
class Classroom:
    """All that is graded in one pytest session. Close it, and machines that it started are gone."""

    project: Project
    settings: dict[str, Setting]
    works: dict[str, list[Work]]
    console: object
    aloud: Callable[[str], None] | None = None
    _lab: str | None = None
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _session: Session | None = None
    _verdicts: dict[tuple[str, str], list[Verdict]] = field(default_factory=dict)
    _measured: dict[tuple[str, str], Measured] = field(default_factory=dict)
    _bases_of: set[str] = field(default_factory=set)
    _loaded: tuple[str, str] | None = None

    @classmethod
    def of(
        cls,
        project: Project,
        lab: str | None,
        submissions: Path | None,
        parts: list[str] | None,
        testbed: str,
        console: object,
        machines: str | None = None,
        engine: str = AUTO,
    ) -> Classroom:
        """Raises BadInput naming what is wrong; no machine is touched."""
        labs = [lab] if lab else [name for name in lab_ids(project) if is_measured(project, name)]
        if submissions is not None and lab is None:
            raise BadInput("--submissions needs --lab", "say which lab was handed in")
        topology, chosen = load_topology(project), TestbedRequest(testbed, grading=True)
        borrowed = load_lab(project, machines) if machines else None
        settings = {
            name: Setting(project, topology, load_lab(project, name), chosen, borrowed=borrowed, engine=engine)
            for name in labs
        }
        works = {}
        for name, setting in settings.items():
            own = own_work(setting, parts if parts is not None else [] if submissions else list(OUTCOMES))
            works[name] = own + (handed_in(setting, submissions) if submissions else [])
            exercises = [work.exercise for work in works[name]]
            cases = [*chosen_cases(setting.lab, [], quick=True), *base_cases(setting.lab, exercises)]
            refuse_wrong_traffic(setting, (item.traffic for item in [*cases, *exercises]))
        return cls(project, settings, works, console)

    # -- machines --

    def session(self, lab: str) -> Session:
        """The lab's machines, up; another lab's are let go first. Raises CannotMeasure."""
        if self._lab != lab:
            self.close()
            setting = self.settings[lab]
            tell = self._stack.enter_context(listener(self.console, aloud=self.aloud))
            self._session = self._stack.enter_context(open_session(setting, tell))
            self._lab = lab
        return self._session

    def host(self, lab: str, role: str = "dut") -> Host:
        """The node as Testinfra sees it."""
        return testinfra.get_host(f"ssh://{role}", ssh_config=str(self.session(lab).ssh_config), sudo=True)

    def close(self) -> None:
        if self._session is not None:
            self._keep_results()
        self._session, self._lab, self._loaded = None, None, None
        self._stack.close()
        self._stack = contextlib.ExitStack()

    # -- measuring, each thing once --

    def case_verdicts(self, lab: str, case: str) -> tuple[Measured, list[Verdict]]:
        """The case, measured after all quick ones were: ratios need them."""
        session = self.session(lab)
        quick = chosen_cases(self.settings[lab].lab, [], quick=True)
        self._measure_cases(session, [c.id for c in quick])
        verdicts = [v for v in judge_cases(self.settings[lab].lab, session.run) if v.subject == case]
        return session.run.case(case), verdicts

    def verdicts(self, lab: str, work: Work) -> list[Verdict]:
        """One verdict a check of the work's exercise."""
        key = (lab, work.name)
        if key not in self._verdicts:
            setting = self.settings[lab]
            reason = unreadable(work, setting)
            if reason is not None:
                measured = self._refused(work, reason)
                run = self.session(lab).run
            else:
                measured, run = self._measure(lab, work), self._session.run
            self._measured[key] = measured
            self._verdicts[key] = judge_exercise(work.exercise, measured, run)
        return self._verdicts[key]

    def loaded(self, lab: str, work: Work) -> Task:
        """The work's ruleset, on the DUT now."""
        self.verdicts(lab, work)
        if self._loaded != (lab, work.name):
            self._measured[(lab, work.name)] = self._measure(lab, work)
        return work.task(self.settings[lab])

    def _measure(self, lab: str, work: Work) -> Measured:
        session, setting = self.session(lab), self.settings[lab]
        self._measure_cases(session, [c.id for c in base_cases(setting.lab, [work.exercise])])
        session.measure_exercises([work.task(setting)])
        self._loaded = (lab, work.name)
        return session.run.exercises[-1]

    def _measure_cases(self, session: Session, wanted: list[str]) -> None:
        missing = [name for name in wanted if session.run.case(name) is None]
        if missing:
            setting = session.setting
            session.measure_cases([case_task(setting, setting.lab.cases[name], None) for name in missing])
            self._loaded = None

    @staticmethod
    def _refused(work: Work, reason: str) -> Measured:
        exercise = work.exercise
        return Measured(id=exercise.id, title=exercise.title, ruleset=work.name, ruleset_hash="", refused=reason)

    # -- marks --

    def marks(self, lab: str) -> str:
        """The class as CSV: who, exercise, verdict, checks passed, checks, what failed first."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["who", "exercise", "verdict", "passed", "checks", "reason"])
        for work in self.works[lab]:
            verdicts = self._verdicts.get((lab, work.name))
            if verdicts is None:
                continue
            passed = sum(v.outcome is Outcome.PASS for v in verdicts)
            reason = next((v.text for v in verdicts if v.outcome is not Outcome.PASS), "")
            verdict = overall([v.outcome for v in verdicts])
            writer.writerow([work.who, work.exercise.id, verdict.value, passed, len(verdicts), _harmless(reason)])
        return out.getvalue()

    def _keep_results(self) -> None:
        folder = reports_folder(self.project, self._lab) / "grading"
        write_report(self.settings[self._lab].lab, self._session.run, folder)
        write_atomically(folder / "marks.csv", self.marks(self._lab))


def _harmless(text: str) -> str:
    """One line that no spreadsheet takes for a formula: it may quote a student's file."""
    line = " ".join(text.split())
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line
