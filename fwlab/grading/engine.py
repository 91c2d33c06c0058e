# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine of a grading: plan, tasks, workers, and a record that grows by what they answer.

Whoever wants the mark of a work asks for it, and the engine goes on until the mark is there.
"""

import contextlib
import hashlib
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from distributed import Future

from fwlab import __version__
from fwlab.checkout.atomic_write import write_atomically
from fwlab.dut.registry import dut_system
from fwlab.grading.class_files import alike, marks_csv, write_class
from fwlab.grading.cluster import Cluster, Message, open_cluster
from fwlab.grading.grader import Answer, Present, Setup, Task
from fwlab.grading.grading_plan import GradingPlan
from fwlab.grading.own_tests import files_of_tests, read_tests
from fwlab.grading.record import (
    FILE,
    Begun,
    CheckMark,
    Conditions,
    Entry,
    ExerciseRecord,
    Machines,
    Record,
    Said,
    Similar,
    StudentRecord,
    WorkMark,
    content_of,
    lab_files,
    marks_of,
    read_record,
)
from fwlab.grading.submissions import Submissions, as_recorded
from fwlab.grading.works import Work, given, unreadable, untouched
from fwlab.judge.checks import judge_exercise, judge_refused
from fwlab.judge.verdicts import judge_cases
from fwlab.measure.context import RunContext
from fwlab.measure.labs import measured_elsewhere
from fwlab.measure.plan import chosen_cases
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput, CannotMeasure, FwlabError
from fwlab.model.events import EventSink
from fwlab.model.printable import printable_lines
from fwlab.model.results import Measured
from fwlab.model.systems import several
from fwlab.model.verdict import Outcome, Verdict
from fwlab.report.files import write_report
from fwlab.report.model import build_model

#: Maximum number of workers that may die during one work; then it is not tried again.
MAX_DEATHS = 3
#: A task that takes longer than this, and that for each of its works, hangs (s): another worker tries it.
HANG_S, HANG_EACH_S = 900.0, 900.0
#: How often the engine looks for workers that hang or are gone (s).
POLL_S = 0.5
#: Share of the time that writing the marks may take. For 300 students with six exercises, each time takes 0.13 s.
MARKS_SHARE = 0.01


@dataclass(frozen=True)
class _Queued:
    """A task before its files are read: a student, the exercises, and cases to measure."""

    who: str
    works: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


@dataclass
class _Running:
    """A task that a worker has."""

    lab: str
    task: _Queued
    began: float


@dataclass
class _Lab:
    """The grading of one lab.

    works      that are graded, by student and exercise
    tasks      that no worker has
    deaths     how many workers died during a work
    agreed     what all machines must have in common; None before the first answer
    confirmed  whether machines have been up, so that it is known what an earlier grading is worth
    present    what the DUT has; tests: what became of those of the machines, by id
    down       why nothing more can be measured
    marks_due  when the marks may be written again
    """

    setup: Setup
    record: Record
    works: dict[tuple[str, str], Work]
    tasks: deque[_Queued] = field(default_factory=deque)
    deaths: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    agreed: Conditions | None = None
    confirmed: bool = False
    present: Present | None = None
    tests: dict[str, CheckMark] = field(default_factory=dict)
    down: str | None = None
    marks_due: float = 0.0

    def open(self, who: str, exercise: str) -> bool:
        """Whether a work has no mark, and no reason for that."""
        mark = self.record.works.get((who, exercise))
        return mark is None or mark.outcome is None


class Engine:
    """Grades the works of a plan. A context manager: its end releases the machines and writes everything.

    notify   prints a line at once
    decided  hears each mark as it comes
    events   hears what a worker in this process does
    """

    def __init__(
        self,
        plan: GradingPlan,
        notify: Callable[[str], None],
        *,
        decided: Callable[[str, WorkMark], None] = lambda _lab, _mark: None,
        events: EventSink | None = None,
    ) -> None:
        self.plan, self.notify = plan, notify
        self.labs: dict[str, _Lab] = {}
        #: Why something could not be saved: the first reason.
        self.trouble: str | None = None
        self._decided, self._events = decided, events
        self._stack = contextlib.ExitStack()
        self._cluster: Cluster | None = None
        self._running: dict[Future, _Running] = {}
        self._saved = self._waiting = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, works: dict[str, list[Work]]) -> None:
        """Decide what needs no machine, and write the marks as far as they are known. Raises BadInput."""
        for note in self.plan.notes:
            self.notify(note)
        for lab, chosen in works.items():
            self._begin_lab(lab, chosen)

    def close(self) -> None:
        """Release the machines and write everything, even if one of them fails. Once."""
        saved, self._saved = self._saved, True
        with self._stack:
            for lab in () if saved else self.labs:
                self._attempt(self._save, lab)

    # -- what is known --

    def mark(self, lab: str, work: Work) -> WorkMark:
        """The mark of a work, or why there is none. The engine goes on until that is known."""
        state, key = self.labs[lab], (work.who, work.exercise.id)
        while state.open(*key) or (state.tasks and not state.confirmed):
            if not self._step(state, lab):
                break
        if state.open(*key):
            self._take(lab, [self._unmarked(lab, work, missing=state.down or "it was not graded")])
        return state.record.works[key]

    def present(self, lab: str) -> Present:
        """What the DUT has of what the lab needs. Raises CannotMeasure."""
        state = self.labs[lab]
        if state.present is None and not state.tasks and not self._has_task(lab):
            state.tasks.append(_Queued(""))
        while state.present is None:
            if not self._step(state, lab):
                raise CannotMeasure(state.down or "the DUT was not asked")
        return state.present

    def machine_test(self, lab: str, name: str) -> CheckMark | None:
        """What became of a test of the machines; None if it was skipped. Raises CannotMeasure."""
        self.present(lab)
        return self.labs[lab].tests.get(name)

    def case(self, lab: str, name: str) -> tuple[Measured, list[Verdict]]:
        """A quick case and its verdicts; all are measured first, because ratios need them. Raises CannotMeasure."""
        state, context = self.labs[lab], self.plan.contexts[lab]
        if (run := state.record.run()) is None or run.case(name) is None:
            state.tasks.appendleft(
                _Queued("", cases=tuple(case.id for case in chosen_cases(context.lab, [], quick=True)))
            )
        while (run := state.record.run()) is None or (measured := run.case(name)) is None:
            if not self._step(state, lab):
                raise CannotMeasure(state.down or f"case {name} was not measured")
        verdicts = judge_cases(context.lab, run, METRICS)
        return measured, [verdict for verdict in verdicts if verdict.subject == name]

    def left(self, lab: str) -> int:
        """How many works have no mark yet."""
        state = self.labs[lab]
        return sum(state.open(*key) for key in state.works)

    # -- going on --

    def _has_task(self, lab: str) -> bool:
        """Whether a worker has a task of this lab."""
        return any(one.lab == lab for one in self._running.values())

    def _step(self, state: _Lab, lab: str) -> bool:
        """Wait for the next thing to happen. False if nothing more can come for this lab."""
        if state.down is not None or not (state.tasks or self._has_task(lab)):
            return False
        try:
            cluster = self._opened()
            cluster.require_scheduler()
        except FwlabError as error:
            self._give_up(state, error.message, error.hint)
            return False
        if cluster.without_workers:
            self._give_up(state, "no worker is left", "look at what they said, then the same command with --resume")
            return False
        self._wait_for_workers(cluster)
        self._give_out(cluster)
        message = cluster.next(POLL_S)
        while message is not None:  # answers come before the end of their task
            self._hear(cluster, message)
            message = cluster.next(0)
        self._look_after(cluster)
        return True

    def _opened(self) -> Cluster:
        if self._cluster is None:
            options = self.plan.options
            self._cluster = self._stack.enter_context(
                open_cluster(
                    self.plan.project,
                    workers=options.workers,
                    scheduler=options.scheduler,
                    key=options.key,
                    emit=self._events,
                    dashboard=options.dashboard,
                    contexts=self.plan.contexts.values(),
                )
            )
            self._cluster.listen(partial(self._hear, self._cluster))
        return self._cluster

    def _wait_for_workers(self, cluster: Cluster) -> None:
        """Report once that there is no worker."""
        waiting = not cluster.workers
        if waiting and not self._waiting and self.plan.options.scheduler is not None:
            self.notify(f"waiting for a worker; next, on each host: fwlab worker {self.plan.options.scheduler}")
        self._waiting = waiting

    def _give_out(self, cluster: Cluster) -> None:
        """Give each worker a task, and no more: a student's files are read when it is their turn."""
        for lab, state in self.labs.items():
            while state.tasks and state.down is None and len(self._running) < max(1, len(cluster.workers)):
                task = state.tasks.popleft()
                open_ = [one for one in task.works if state.open(task.who, one)]
                if open_ or not task.works:
                    works = [state.works[task.who, name] for name in open_]
                    future = cluster.submit(state.setup, self._payload(lab, task, works))
                    if future is None:
                        state.tasks.appendleft(task)
                        return
                    self._running[future] = _Running(lab, task, time.monotonic())

    def _hear(self, cluster: Cluster, message: Message) -> None:
        if message.event:
            self.notify(f"{cluster.name(message.worker)}: {message.event}")
        if message.answer is not None:
            self._answered(cluster, message.worker, message.answer)
        if message.ended is not None and message.ended in self._running:
            running = self._running.pop(message.ended)
            state = self.labs[running.lab]
            result = cluster.result(message.ended)
            if result is None:
                self._died(cluster, running, message.ended)
            elif result[1]:
                self._unusable(cluster, state, running, *result)

    def _answered(self, cluster: Cluster, worker: str, answer: Answer) -> None:
        lab, state = answer.lab, self.labs[answer.lab]
        here = (one for one in self._running.values() if (one.lab, one.task.who) == (lab, answer.who))
        running = next(here, None)
        if running is None or not self._agrees(cluster, worker, lab, running, answer):
            return  # of a worker that was given up
        known = state.record.machines.get(answer.machines)
        entries: list[Entry] = []
        if known is None or len(known.run.cases) != len(answer.run.cases):
            entries.append(Machines(name=answer.machines, run=answer.run))
        if answer.dead and len(cluster.workers) > 1:
            self._unusable(cluster, state, running, worker, "its machines do not answer")
        elif answer.exercise and state.open(answer.who, answer.exercise):
            entries.append(self._judged(lab, answer))
        self._take(lab, entries)

    def _agrees(self, cluster: Cluster, worker: str, lab: str, running: _Running, answer: Answer) -> bool:
        """Whether these machines are like those of the others, and have what the lab needs."""
        state, context = self.labs[lab], self.plan.contexts[lab]
        now = Conditions.of(answer.run)
        why = state.agreed.difference(now) if state.agreed else None
        if not state.confirmed and state.agreed is not None:
            why = why or (None if now.portable else f"figures of the {now.testbed} testbed hold for their session only")
            if why is not None:
                self.notify(f"nothing is taken over from an earlier grading: {why}")
                self._start_again(lab)
                why = None
        if answer.present is not None:
            state.present = answer.present
            state.tests |= {test.check: test for test in answer.tests if not answer.exercise}
            why = why or answer.present.lacks(context.lab.needs, forwarding(context))
        state.confirmed, state.agreed = True, state.agreed or now
        if why is None:
            return True
        self._unusable(cluster, state, running, worker, why)
        return False

    def _unusable(
        self, cluster: Cluster, state: _Lab, running: _Running, worker: str, reason: str, hint: str = ""
    ) -> None:
        """A worker cannot be used: another one gets its task. Without another, the grading of this lab ends."""
        self._running = {future: one for future, one in self._running.items() if one is not running}
        if len(cluster.workers) > 1:
            self.notify(f"{cluster.name(worker)}: not used any more: {reason}")
            cluster.dismiss(worker)
            state.tasks.appendleft(running.task)
        else:
            self._give_up(state, reason, hint)

    def _give_up(self, state: _Lab, reason: str, hint: str) -> None:
        state.down = reason
        self.notify(
            f"{state.setup.lab}: nothing more can be measured: {reason}" + (f"\n  next: {hint}" if hint else "")
        )

    def _died(self, cluster: Cluster, running: _Running, future: Future) -> None:
        """A worker died with its task, or the scheduler did. The work is tried again, up to a limit for workers."""
        state, who = self.labs[running.lab], running.task.who
        at = next((name for name in running.task.works if state.open(who, name)), None)
        error = future.exception() if future.status == "error" else None
        if at is not None and error is not None:
            state.deaths[who, at] += 1 + int(getattr(error, "allowed_failures", 0))
            if state.deaths[who, at] >= MAX_DEATHS:
                reason = f"{state.deaths[who, at]} workers died while they measured it"
                self._take(running.lab, [self._unmarked(running.lab, state.works[who, at], missing=reason)])
        if error is not None:
            self.notify(f"a worker died while it graded {who}; {len(cluster.workers)} are left")
        state.tasks.appendleft(running.task)

    def _look_after(self, cluster: Cluster) -> None:
        """Do without workers that do not answer."""
        now = time.monotonic()
        for future, running in list(self._running.items()):
            if now - running.began > HANG_S + HANG_EACH_S * len(running.task.works):
                for worker in cluster.processing(future):
                    self.notify(f"{cluster.name(worker)}: no answer for {now - running.began:.0f} s: not used any more")
                    cluster.dismiss(worker)
                running.began = now

    # -- tasks and marks --

    def _begin_lab(self, lab: str, chosen: Sequence[Work]) -> None:
        """The record, with what is known without a machine, and a task for each student who has something to grade."""
        context, options = self.plan.contexts[lab], self.plan.options
        whole = context.lab.whole
        begun = Begun(
            lab=lab,
            title=whole.title,
            fwlab=__version__,
            seed=context.seed,
            files=lab_files(context.project, whole),
            exercises={exercise.id: ExerciseRecord.of(exercise) for exercise in whole.exercises},
            start_passes=whole.ranges.starts,
        )
        setup = Setup(
            lab=lab,
            system=context.topology.nodes["dut"].system,
            seed=context.seed,
            testbed=options.testbed,
            engine=context.engine,
            engine_why=context.engine_why,
            machines=options.machines or "",
            files=begun.files,
            tests=read_tests(files_of_tests(context.lab, options.tests)),
        )
        earlier, why = self._earlier(lab, begun)
        if why:
            self.notify(f"nothing is taken over from an earlier grading: {why}")
        record = earlier or Record(begun, self.plan.class_folder(lab) / FILE)
        works = {(work.who, work.exercise.id): work for work in chosen}
        state = self.labs[lab] = _Lab(setup, record, works)
        if earlier is None:
            self._attempt(record.begin)
        else:
            run = earlier.run()
            state.agreed = Conditions.of(run) if run else None
        self._fill(lab, kept=earlier is not None)

    def _earlier(self, lab: str, begun: Begun) -> tuple[Record | None, str]:
        """The record to go on with, or why there is none. Raises BadInput for a file that is no record."""
        folder = self.plan.class_folder(lab)
        if not self.plan.options.resume:
            return None, ""
        if not (folder / FILE).exists():
            return None, f"there is no {folder / FILE}"
        earlier = read_record(folder)
        individual = any(student.individual for student in earlier.students.values())
        if individual and self.plan.submissions is not None and not self.plan.submissions.individual:
            raise BadInput(
                "the earlier grading has individual tasks, which need the course's secret",
                "the same command with --course course.yml",
            )
        why = begun.difference(earlier.begun)
        if why is None and earlier.begun.seed != begun.seed:
            why = f"seed {earlier.begun.seed} drew its traffic, not {begun.seed}"
        return (None, why) if why else (earlier, "")

    def _start_again(self, lab: str) -> None:
        """Forget an earlier grading."""
        state = self.labs[lab]
        state.record, state.agreed = Record(state.record.begun, state.record.path), None
        self._attempt(state.record.begin)
        state.tasks.clear()
        self._fill(lab, kept=False, but={one.task.who for one in self._running.values()})

    def _fill(self, lab: str, *, kept: bool, but: Collection[str] = ()) -> None:
        """Put the students into the record, and what is to be measured into tasks; `but`: those a worker has."""
        state, submissions = self.labs[lab], self.plan.submissions
        students: dict[str, StudentRecord] = {}
        for work in state.works.values():
            known = students.get(work.who) or _student(work, submissions)
            files = {**known.files, work.exercise.id: _files(work, self.plan.contexts[lab])}
            students[work.who] = known.model_copy(update={"files": files})
        for who, student in students.items():
            before = state.record.students.get(who)
            files = {**(before.files if before else {}), **student.files}
            students[who] = student = student.model_copy(update={"files": files})
            same = before is not None and before.individual == student.individual
            for work in (one for one in state.works.values() if one.who == who):
                mark = state.record.works.get((who, work.exercise.id))
                content = content_of(files[work.exercise.id])
                if not (kept and same and mark is not None and mark.content == content and mark.decided):
                    state.record.works.pop((who, work.exercise.id), None)
        # Students first: a mark belongs to a student of the record.
        self._take(lab, [student for student in students.values() if student != state.record.students.get(student.id)])
        left = [work for key, work in state.works.items() if state.open(*key)]
        if kept:
            self.notify(f"{len(state.works) - len(left)} rulesets were graded before and are not measured again")
        marks = [(work, self._without_machine(lab, work)) for work in left]
        self._take(lab, [mark for _, mark in marks if mark is not None])
        for who in students:
            open_ = tuple(work.exercise.id for work, mark in marks if mark is None and work.who == who)
            if open_ and who not in but:
                state.tasks.append(_Queued(who, open_))

    def _without_machine(self, lab: str, work: Work) -> WorkMark | None:
        """The mark of a work that no machine has to see; None if one has."""
        context = self.plan.contexts[lab]
        if context.lab.exercise(work.exercise.id) is None:
            elsewhere = measured_elsewhere(context.lab, work.exercise.id, work.exercise.system)
            return self._unmarked(lab, work, missing=elsewhere.message)
        try:
            reason = unreadable(work, context)
        except CannotMeasure as error:
            return self._unmarked(lab, work, missing=error.message)
        if reason is None:
            return None
        exercise = work.exercise
        measured = Measured(
            id=exercise.id, title=exercise.title, ruleset=work.ruleset(context), ruleset_hash="", refused=reason
        )
        checks = marks_of(judge_refused(exercise, measured))
        return self._unmarked(lab, work, checks=checks, measured=measured)

    def _unmarked(self, lab: str, work: Work, **known: Any) -> WorkMark:
        files = self.labs[lab].record.students[work.who].files
        return WorkMark(
            student=work.who, exercise=work.exercise.id, content=content_of(files[work.exercise.id]), **known
        )

    def _payload(self, lab: str, task: _Queued, works: Sequence[Work]) -> Task:
        context, submissions = self.plan.contexts[lab], self.plan.submissions
        numbers = submissions.individual.get(task.who, {}) if submissions is not None else {}
        found = []
        for work in works:
            try:
                found.append(given(work, context))
            except FwlabError as error:  # the copy is gone
                self._take(lab, [self._unmarked(lab, work, missing=error.message)])
        return Task(task.who, tuple(found), numbers, task.cases)

    def _judged(self, lab: str, answer: Answer) -> WorkMark:
        work, measured = self.labs[lab].works[answer.who, answer.exercise], answer.measured
        verdicts = [] if measured is None else judge_exercise(work.exercise, measured, answer.run, METRICS)
        nothing = False
        if {verdict.outcome for verdict in verdicts} >= {Outcome.PASS, Outcome.FAIL} and work.handed_in is not None:
            nothing = untouched(work.own or self.plan.contexts[lab], work.exercise, work.handed_in)
        return self._unmarked(
            lab,
            work,
            checks=[*marks_of(verdicts), *answer.tests],
            missing=answer.error if measured is None else None,
            holds=answer.holds,
            absent=answer.absent,
            unclear=answer.unclear,
            remarks=[] if measured is None else measured.remarks,
            untouched=nothing,
            measured=measured,
            machines=answer.machines,
        )

    # -- files --

    def _take(self, lab: str, entries: Sequence[Entry]) -> None:
        """Add to the record, and write the marks."""
        if not entries:
            return
        self._attempt(self.labs[lab].record.add, *entries)
        self._write_marks(lab)
        for entry in entries:
            if isinstance(entry, WorkMark):
                self._decided(lab, entry)

    def _write_marks(self, lab: str) -> None:
        """Write the marks, but not so often that it takes more than MARKS_SHARE of the time: the record has all."""
        state, began = self.labs[lab], time.monotonic()
        if began < state.marks_due and not self._saved:
            return
        self._attempt(write_atomically, self.marks_file(lab), self.marks(lab))
        ended = time.monotonic()
        state.marks_due = ended + (ended - began) / MARKS_SHARE

    def marks(self, lab: str) -> str:
        """The marks as CSV, one row per work, graded or not."""
        return marks_csv(self.labs[lab].record.grading())

    def document(self, lab: str) -> dict[str, Any]:
        """The same with each check, for a program."""
        works = self.labs[lab].record.grading().works
        return {
            "lab": lab,
            "seed": self.plan.contexts[lab].seed,
            "written": str(self.marks_file(lab)),
            "left": self.left(lab),
            "works": [
                {
                    "student": work.student,
                    "exercise": work.exercise,
                    "outcome": work.outcome,
                    "reason": work.reason,
                    "checks": [check.model_dump(mode="json") for check in work.checks],
                }
                for work in works
            ],
        }

    def closing(self, lab: str) -> list[str]:
        """What to say behind the marks: where they are, and what comes next."""
        lines, seed = [f"written: {self.marks_file(lab)}"], self.plan.contexts[lab].seed
        if self.plan.submissions is not None:
            lines[0] += f" and {self.plan.class_folder(lab) / 'class.html'}"
        if self.left(lab):
            lines.append("next: the same command with --resume grades the rest")
        lines.append(f"seed {seed} drew the traffic; --traffic-seed {seed} gives the same marks")
        if lab in self.plan.elsewhere:
            lines.append(f"not graded here: {self.plan.elsewhere[lab]}")
        return lines

    def marks_file(self, lab: str) -> Path:
        """Where the marks are written."""
        context = self.plan.contexts[lab]
        name = f"marks-{context.topology.nodes['dut'].system}.csv" if several(context.lab) else "marks.csv"
        return self.plan.folder(lab) / name

    def _save(self, lab: str) -> None:
        """Write what follows from the record: for a class grades and pages, and the report."""
        state, context = self.labs[lab], self.plan.contexts[lab]
        run = state.record.run()
        self._write_marks(lab)
        if self.plan.submissions is not None:
            every = list(state.works.values())
            self._take(lab, [Similar(pairs=alike(context, every))])
            write_class(state.record.grading(), self.plan.course, self.plan.class_folder(lab))
        if run is not None:
            write_report(build_model(context.lab, run), self.plan.folder(lab))

    def _attempt(self, write: Callable[..., object], *arguments: Any) -> None:
        """Call `write`. The first error is kept in `trouble` and printed; marks still appear on the screen."""
        try:
            write(*arguments)
        except Exception as error:  # noqa: BLE001 - a defect in a report costs no marks either
            if self.trouble is None:
                expected = isinstance(error, FwlabError)
                self.trouble = printable_lines(error if expected else f"{type(error).__name__}: {error}")
                self.notify(f"cannot save the marks: {self.trouble}")


def forwarding(context: RunContext) -> str:
    """The sysctl that says whether the DUT forwards."""
    return dut_system(context.topology.nodes["dut"].system).forwarding


def _student(work: Work, submissions: Submissions | None) -> StudentRecord:
    """Who handed in; a part of the lab is recorded like a student."""
    if submissions is None or work.who not in submissions.students:
        return StudentRecord(id=work.who)
    student = submissions.students[work.who]
    return StudentRecord(
        id=student.id,
        name=student.name,
        source=student.source,
        handed_in=student.handed_in,
        individual=submissions.individual.get(student.id, {}),
        said=submissions.said.get(student.id, Said()),
    )


def _files(work: Work, context: RunContext) -> dict[str, Any]:
    """What was handed in, as a record has it."""
    if work.handed_in is not None:
        return as_recorded(work.handed_in)
    try:
        files = work.spec(context).files
    except BadInput as error:
        return {"refused": error.message}
    return {file.name: hashlib.sha256(file.text.encode()).hexdigest() for file in files}
