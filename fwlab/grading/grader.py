# SPDX-License-Identifier: GPL-2.0-or-later
"""What a worker does: it measures the rulesets of a task on its machines, and asks the DUT what it holds.

A task holds all works of one student, or of one part of the lab: for the next task the DUT is restored. Tasks and
answers are plain data, because a worker may be on another host. Nothing is judged here.
"""

import contextlib
import os
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import gethostname
from typing import Any

import testinfra
from testinfra.backend.base import CommandResult
from testinfra.host import Host

from fwlab import __version__
from fwlab.checkout.project import Project
from fwlab.dut.registry import dut_system
from fwlab.grading.own_tests import OwnTests
from fwlab.grading.record import CheckMark, changed_files, lab_files
from fwlab.judge.checks import judge_exercise
from fwlab.measure.context import RunContext, same_machines
from fwlab.measure.individual_tasks import individual_lab
from fwlab.measure.labs import load_lab, on_dut
from fwlab.measure.plan import base_cases, case_spec, exercise_spec
from fwlab.measure.session import Session, open_session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import Frozen, Value
from fwlab.model.errors import CannotMeasure
from fwlab.model.events import EventSink
from fwlab.model.lab import Needs
from fwlab.model.printable import MAX_LINE, printable
from fwlab.model.results import Measured, Run
from fwlab.model.ruleset import RulesetFile
from fwlab.model.verdict import Outcome
from fwlab.rulesets.registry import KINDS
from fwlab.testbed.choices import topology_of
from fwlab.testbed.selection import TestbedRequest


class Present(Frozen):
    """Which packages and modules are there, and the values of sysctls by name, with single spaces."""

    packages: frozenset[str]
    modules: frozenset[str]
    sysctls: dict[str, str]

    def lacks(self, needs: Needs, forwarding: str) -> str | None:
        """The first thing that the DUT lacks of what a lab needs; None if it has everything.

        forwarding  the sysctl that makes it a router: otherwise no result means anything
        """
        if self.sysctls.get(forwarding) != "1":
            return f"the DUT does not forward: {forwarding} is {self.sysctls.get(forwarding)}"
        for what, wanted, there in (
            ("package", needs.packages, self.packages),
            ("module", needs.modules, self.modules),
        ):
            if missing := [name for name in wanted if name not in there]:
                return f"the DUT lacks the {what} {missing[0]}"
        for name, value in needs.sysctls.items():
            if self.sysctls.get(name) != str(value):
                return f"the DUT has {name} = {self.sysctls.get(name)}, the lab needs {value}"
        return None


def present_on(dut: Host, packages: Iterable[str], modules: Iterable[str], sysctls: Iterable[str]) -> Present:
    """What the DUT has of these. A module may be there without being loaded; Testinfra has no words for that."""
    return Present(
        packages=frozenset(name for name in packages if dut.package(name).is_installed),
        modules=frozenset(name for name in modules if dut.run("modinfo %s", name).rc == 0),
        sysctls={name: value for name in sysctls if (value := _sysctl(dut, name)) is not None},
    )


def _sysctl(dut: Host, name: str) -> str | None:
    """The value, with single spaces; None if the kernel has no such setting."""
    try:
        return " ".join(str(dut.sysctl(name)).split())
    except AssertionError:  # Testinfra's
        return None


class Inconclusive(Exception):
    """Nothing can be said about a ruleset, for this reason."""


_LOST = "lost the connection to the DUT before it could be asked what it holds"


def absent_from(dut: Host, files: Iterable[RulesetFile]) -> str | None:
    """What the DUT lacks of the first file that it does not hold whole. Raises Inconclusive if it does not answer."""
    for file in files:
        absent = missing(dut, file)
        if absent is not None:
            return f"{file.name}: loaded, but the DUT does not hold: {printable(absent, MAX_LINE)}"
    return None


def missing(dut: Host, file: RulesetFile) -> str | None:
    """What the DUT lacks of this file; None if it holds all of it."""
    lines = [line.partition("#")[0].strip() for line in file.text.splitlines()]
    try:
        return KINDS[file.kind].missing_from_kernel(_Asked(dut), [line for line in lines if line])
    except (LookupError, ValueError, StopIteration):
        return None  # the tool has loaded a form that this check does not understand


class _Asked:
    """The DUT's tools. A tool that cannot be reached says nothing about the ruleset, so Inconclusive is raised."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, command: str, *arguments: str) -> str:
        return str(self._done(command, *arguments).stdout)

    def check_output(self, command: str, *arguments: str) -> str:
        done = self._done(command, *arguments)
        if done.rc:
            words = printable(done.stderr.strip() or f"exit {done.rc}")
            raise Inconclusive(f"the DUT cannot list what it holds: {command.split(maxsplit=1)[0]}: {words}")
        return str(done.stdout).rstrip()

    def _done(self, command: str, *arguments: str) -> CommandResult:
        try:
            done = self._host.run(command, *arguments)
        except (RuntimeError, OSError) as error:  # Testinfra's, if ssh failed
            raise Inconclusive(_LOST) from error
        if done.rc == 255:
            raise Inconclusive(_LOST)
        return done


#: Time for all rulesets of a student that crash the DUT or keep themselves from being measured (s): half of what ten
#: that each exceed their limit twice would take.
STUDENT_S = 2400.0


@dataclass(frozen=True)
class Setup:
    """What all tasks of a lab have in common.

    system    of the DUT
    machines  the lab whose machines are used instead of the lab's own; empty: its own
    engine    that plays, and why that one if no option names it
    version   of the program that gives out the tasks, and SHA-256 of the lab's files there
    tests     files of tests by name: the lab's own and the instructor's
    """

    lab: str
    system: str
    seed: int
    testbed: str = "auto"
    engine: str = "auto"
    engine_why: str = ""
    machines: str = ""
    version: str = __version__
    files: dict[str, str] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)

    def refuses(self, project: Project) -> str | None:
        """Why a worker with this checkout cannot take part; None if it can."""
        if self.version != __version__:
            return f"this worker has version {__version__}, the grading {self.version}"
        if changed := changed_files(self.files, lab_files(project, load_lab(project, self.lab))):
            return f"{changed[0]} is not the same here"
        return None

    def context(self, project: Project) -> RunContext:
        """The lab on this worker's machines. Raises BadInput."""
        other = load_lab(project, self.machines) if self.machines else None
        lab = load_lab(project, self.lab)
        topology = topology_of(project, other or lab)
        return RunContext(
            project,
            topology,
            on_dut(lab, topology, other or lab),
            TestbedRequest(self.testbed, grading=True),
            self.seed,
            other_lab=other,
            engine=self.engine,
            engine_why=self.engine_why,
            untrusted=True,
        )


@dataclass(frozen=True)
class Given:
    """One ruleset of a task.

    ruleset     its name in results
    remarks     further statements about its files
    any_fail    it must fail, by whatever check: it is measured only until it does
    trusted     it is the lab's own
    """

    exercise: str
    ruleset: str
    files: tuple[RulesetFile, ...]
    remarks: tuple[str, ...] = ()
    any_fail: bool = False
    trusted: bool = False


@dataclass(frozen=True)
class Task:
    """The works of one student. `numbers`: those of the student's individual task. `cases`: also measure these."""

    who: str
    works: tuple[Given, ...] = ()
    numbers: dict[str, Value] = field(default_factory=dict)
    cases: tuple[str, ...] = ()


class Answer(Frozen):
    """What became of one work; without an exercise, that the machines are ready.

    machines  their name, and their run with the cases that were measured by then
    present   what the DUT has of what the lab needs
    measured  the trials; None if there is an `error`
    holds     the DUT held what the files say; `absent`: what it lacked; `unclear`: why that is not known
    tests     what became of tests: of the machines, or of this work
    error     why nothing was measured
    dead      the machines do not answer
    """

    lab: str
    who: str
    machines: str
    run: Run
    exercise: str = ""
    present: Present | None = None
    measured: Measured | None = None
    holds: bool = False
    absent: str | None = None
    unclear: str | None = None
    tests: list[CheckMark] = []
    error: str | None = None
    dead: bool = False


class Grader:
    """The machines of one worker, with a session that is opened when the first task comes.

    planned  labs with traffic that is loaded already: building a lab's frame tables takes some seconds
    """

    def __init__(self, project: Project, emit: EventSink, planned: Iterable[RunContext] = ()) -> None:
        self.project, self._emit, self._planned = project, emit, list(planned)
        self._stack = contextlib.ExitStack()
        self._open: tuple[Setup, Session] | None = None
        self._name = ""
        self._who: str | None = None
        #: What the DUT has of what the lab needs, once that was asked.
        self._found: Present | None = None
        self._own = OwnTests({}, project, "", Path())
        self._of_machines: list[CheckMark] | None = None

    def grade(self, setup: Setup, task: Task, answer: Callable[[Answer], None]) -> None:
        """Measure the task; `answer` gets each work's as soon as it is there.

        Raises CannotMeasure if this worker's machines cannot be used at all; what was not answered is open then.
        """
        session = self.session(setup)
        self._measure_cases(session, list(task.cases))
        present, tests = self._present(session), self._tests_of_machines(session)
        run = _without_exercises(session.run)
        answer(Answer(lab=setup.lab, who=task.who, machines=self._name, run=run, present=present, tests=tests))
        own = None
        if task.numbers:
            own = replace(session.context, lab=individual_lab(self.project, session.context.lab, task.numbers))
        spent = 0.0
        for given in task.works:
            began = time.monotonic()
            found = self._work(session, task, given, own, spent)
            if found.measured is not None and (found.measured.lost or found.measured.fine_without):
                spent += time.monotonic() - began  # else the host may be slow
            answer(found)

    def session(self, setup: Setup) -> Session:
        """The session for this setup; another one is ended first. Raises CannotMeasure, BadInput."""
        if self._open is not None and self._open[0] == setup:
            return self._open[1]
        context, before = setup.context(self.project), self._open[1] if self._open is not None else None
        context = next((planned for planned in self._planned if planned == context), context)
        if before is not None and not before.dead and same_machines(before.context, context):
            session = before.for_lab(context)
        else:
            self.close()
            session = self._stack.enter_context(open_session(context, self._emit))
        if (system := session.run.dut.system) != setup.system:
            raise CannotMeasure(
                f"this worker's DUT runs {system}, the grading is for {setup.system}",
                f"export FWLAB_DUT={setup.system}",
            )
        self._open, self._who = (setup, session), None
        self._found = self._of_machines = None
        self._own = OwnTests(setup.tests, self.project, setup.lab, session.ssh_config)
        self._name = f"{gethostname()}-{os.getpid()}-{time.time_ns() // 1_000_000}"
        return session

    def close(self) -> None:
        """Release the machines."""
        stack, self._stack, self._open = self._stack, contextlib.ExitStack(), None
        stack.close()

    def host(self, session: Session, role: str = "dut") -> Host:
        """The node, for Testinfra."""
        return testinfra.get_host(f"ssh://{role}", ssh_config=str(session.ssh_config), sudo=True)

    def _work(self, session: Session, task: Task, given: Given, own: RunContext | None, spent: float) -> Answer:
        exercise = session.context.lab.exercise(given.exercise)
        base = Answer(
            lab=session.context.lab.id, who=task.who, exercise=given.exercise, machines=self._name, run=session.run
        )
        try:
            if exercise is None:
                raise CannotMeasure(f"{given.exercise} is not measured on {session.run.dut.system}")
            if spent > STUDENT_S:
                measured = Measured(
                    id=given.exercise,
                    title=exercise.title,
                    ruleset=given.ruleset,
                    ruleset_hash="",
                    refused=f"exercises of {task.who} that could not be measured took more than "
                    f"{STUDENT_S / 60:g} minutes, and no student has more",
                )
                return self._answered(base, session, measured=measured)
            self._measure_cases(session, [case.id for case in base_cases(session.context.lab, [exercise])])
            if task.who != self._who:
                session.start_over()
                self._who = task.who
            spec = self._spec(session, given, own)
            measured = self._measure(session, spec, own, trusted=given.trusted)
            found = self._held(session, spec, own, measured) if why_not_loaded(measured) is None else {}
            if found.get("holds"):
                files = {file.name: file.text for file in given.files}
                submission = {"student": task.who, "exercise": given.exercise, "files": files}
                found["tests"] = self._own.of_submission(_without_exercises(session.run), submission, measured)
            return self._answered(base, session, measured=measured, **found)
        except CannotMeasure as error:
            return self._answered(base, session, error=error.message)
        except Exception as error:  # noqa: BLE001 - a bug must not fail a student or stop the grading
            traceback.print_exc()
            reason = f"internal error while grading: {type(error).__name__}: {error}"
            return self._answered(base, session, error=reason)

    def _tests_of_machines(self, session: Session) -> list[CheckMark]:
        """Run the tests of the machines, once; first measure the cases that tests ask for. Raises CannotMeasure."""
        if self._of_machines is None:
            self._measure_cases(session, self._own.cases(session.context.lab))
            self._of_machines = self._own.of_machines(_without_exercises(session.run))
        return self._of_machines

    def _answered(self, base: Answer, session: Session, **found: Any) -> Answer:
        return base.model_copy(update={"run": _without_exercises(session.run), "dead": session.dead, **found})

    def _present(self, session: Session) -> Present:
        if self._found is not None:
            return self._found
        needs, system = session.context.lab.needs, session.run.dut.system
        sysctls = dict.fromkeys([dut_system(system).forwarding, *needs.sysctls])
        self._found = present_on(self.host(session), needs.packages, needs.modules, sysctls)
        return self._found

    def _spec(self, session: Session, given: Given, own: RunContext | None) -> MeasurementSpec:
        context = own or session.context
        exercise = context.lab.exercise(given.exercise)
        assert exercise is not None  # noqa: S101 - the caller has looked
        spec = exercise_spec(context, exercise, given.ruleset, list(given.files))
        spec = replace(spec, remarks=list(given.remarks))
        if not given.any_fail:
            return spec

        def fails(so_far: Measured) -> bool:
            verdicts = judge_exercise(exercise, so_far, session.run, METRICS)
            return any(verdict.outcome is Outcome.FAIL for verdict in verdicts)

        return replace(spec, decided=fails)

    def _measure(
        self, session: Session, spec: MeasurementSpec, own: RunContext | None, *, trusted: bool = False
    ) -> Measured:
        session.measure_exercises([spec], own, trusted=trusted)
        return session.run.exercises.pop()

    def _measure_cases(self, session: Session, wanted: list[str]) -> None:
        missing = [name for name in wanted if session.run.case(name) is None]
        if missing:
            context = session.context
            session.measure_cases([case_spec(context, context.lab.cases[name], None) for name in missing])

    def _held(
        self, session: Session, spec: MeasurementSpec, own: RunContext | None, measured: Measured
    ) -> dict[str, Any]:
        """Whether the DUT holds what the files say. Where it does not, they are loaded again: it may be restored."""
        if measured.problems:
            return {}
        try:
            absent = absent_from(self.host(session), spec.on_dut)
            if absent is not None:
                again = self._measure(session, spec, own)
                reason = "; ".join(again.problems) or why_not_loaded(again)
                if reason:
                    return {"unclear": f"the ruleset was loaded once, but not a second time: {reason}"}
                absent = absent_from(self.host(session), spec.on_dut)
        except Inconclusive as error:
            return {"unclear": str(error)}
        return {"holds": absent is None, "absent": absent}


def _without_exercises(run: Run) -> Run:
    return run.model_copy(update={"exercises": []})


def why_not_loaded(measured: Measured) -> str | None:
    """Why the ruleset is not on the DUT: a tool refused it, or the DUT crashed; None if it is."""
    if measured.refused is not None:
        return f"not loaded: {measured.refused}"
    return measured.lost[-1] if measured.lost else None
