# SPDX-License-Identifier: GPL-2.0-or-later
"""The record of a grading: what was handed in, measured and decided. Marks, grades, pages and tests follow from it.

record.jsonl grows by a line for each thing that becomes known, and nothing in it changes: a grading goes on where the
record ends, and two records are joined by reading both.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from fwlab.checkout.atomic_write import write_atomically, write_errors_as
from fwlab.checkout.project import Project
from fwlab.grading.class_folder import NAME
from fwlab.grading.similarity import Pair
from fwlab.judge.verdicts import blamed
from fwlab.model.check import Check
from fwlab.model.declared import Frozen, Value, first_fault
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Exercise, Lab
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict, overall

FORMAT: Final = "fwlab-grading/2"
FILE: Final = "record.jsonl"
#: A class of 300 with six exercises each has some 100 MB.
LARGEST_FILE = 1 << 30


class CheckMark(Frozen):
    """The verdict of one check. A bound that is not given is open."""

    check: str
    metric: str
    outcome: Outcome
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    relative_to: str | None = None
    why: str = ""

    @classmethod
    def of(cls, verdict: Verdict) -> CheckMark:
        """The same without infinite bounds, which JSON does not have."""
        low, high = (_finite(bound) for bound in (verdict.low, verdict.high))
        known = verdict.model_dump(include={"check", "metric", "outcome", "text", "value", "relative_to", "why"})
        return cls(low=low, high=high, **known)


class WorkMark(Frozen):
    """One exercise of one student, or one of the lab's own rulesets, whose part is then the student.

    content    a hash of what was handed in
    checks     a verdict per check; none if there is no mark yet
    missing    why there is no mark although it was tried
    holds      the DUT was asked whether it holds what the files say, and it did
    absent     what it lacked of them; `unclear`: why that is not known
    remarks    what else to say of the files
    untouched  the files say what the exercise's start says, or nothing
    measured   the trials, and the machines on which they were made; None if nothing was measured
    """

    entry: Literal["work"] = "work"
    student: str
    exercise: str
    content: str
    checks: list[CheckMark] = []
    missing: str | None = None
    holds: bool = False
    absent: str | None = None
    unclear: str | None = None
    remarks: list[str] = []
    untouched: bool = False
    measured: Measured | None = None
    machines: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Student and exercise."""
        return self.student, self.exercise

    @property
    def decided(self) -> bool:
        """Whether it passed or failed for good: nothing about it has to be asked again."""
        against = self.measured is not None and against_the_ruleset(self.measured)
        return self.outcome in (Outcome.PASS, Outcome.FAIL) and (self.holds or self.absent is not None or against)

    @property
    def refused(self) -> str | None:
        """Why no check has a figure, if all of them say the same: nothing was handed in, or it could not be loaded."""
        texts = {check.text for check in self.checks}
        return texts.pop() if len(texts) == 1 and all(check.value is None for check in self.checks) else None

    @property
    def outcome(self) -> Outcome | None:
        """The verdict; None if it was not graded yet."""
        if self.checks:
            return overall([check.outcome for check in self.checks])
        return None if self.missing is None else Outcome.INCONCLUSIVE

    @property
    def reason(self) -> str:
        """What failed first, or why nothing can be said; then the remarks, which a pass may have, too."""
        failed = [check.text for check in self.checks if check.outcome is self.outcome is not Outcome.PASS]
        return " ".join([self.missing or "".join(failed[:1]), *self.remarks]).strip()


class Predicted(Frozen):
    """A student's prediction, and the figure that the student's own progress compares it with, if there is one."""

    value: float
    measured: float | None = None


class Said(Frozen):
    """What a student has written besides rulesets. It is read by people, and no mark follows from it.

    predictions  by exercise, and by question of the page; none that was made after the measurement
    reasons      by exercise, and by question of the workbook
    unread       why the file could not be read; empty if it was, or there is none
    """

    predictions: dict[str, Predicted] = {}
    reasons: dict[str, str] = {}
    unread: str = ""


class StudentRecord(Frozen):
    """One student, or one part of the lab.

    individual  the numbers drawn for them
    said        predictions and reasons
    files       what was handed in, by exercise: size and SHA-256 of each file, or why nothing could be read
    """

    entry: Literal["student"] = "student"
    id: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]  # it names a folder
    name: str = ""
    source: str = ""
    handed_in: datetime | None = None
    individual: dict[str, Value] = {}
    said: Said = Said()
    files: dict[str, Any] = {}


class Machines(Frozen):
    """Machines on which something was measured: their run, with the cases that exercises are compared with."""

    entry: Literal["machines"] = "machines"
    name: str
    run: Run


class Similar(Frozen):
    """The similar submissions of the class."""

    entry: Literal["similar"] = "similar"
    pairs: list[Pair]


class Conditions(Frozen):
    """What figures depend on, apart from the lab: two gradings that differ in it cannot be joined.

    seed  of traffic that is drawn
    """

    system: str
    kernel: str
    image: dict[str, Any]
    testbed: str
    clock: str
    ns_per_instruction: int | None
    portable: bool
    seed: int = 1

    @classmethod
    def of(cls, run: Run) -> Conditions:
        """Those of a run. Portable: the figures hold on any host."""
        testbed, dut = run.testbed, run.dut
        return cls(
            system=dut.system,
            kernel=dut.kernel,
            image=dut.image,
            testbed=testbed.name,
            clock=testbed.clock,
            ns_per_instruction=testbed.ns_per_instruction,
            portable=testbed.ranges == "portable",
            seed=run.seed,
        )

    def difference(self, other: Conditions) -> str | None:
        """The first field that differs, in words."""
        for name, mine in self:
            if name != "image" and mine != getattr(other, name):
                return f"{name}: {mine} and {getattr(other, name)}"
        return None if self.image == other.image else "image: the DUT's packages differ"


class ExerciseRecord(Frozen):
    """An exercise as it was judged: its checks with their limits."""

    title: str
    checks: dict[str, dict[str, Any]]
    further: bool = False

    @classmethod
    def of(cls, exercise: Exercise) -> ExerciseRecord:
        """The exercise of today's lab.yml."""
        checks = {check.id: _limits(check) for check in exercise.checks}
        return cls(title=exercise.title, checks=checks, further=exercise.further)


class Begun(Frozen):
    """What is graded, and by what.

    files         SHA-256 of each file of the lab that a measurement or a verdict depends on
    start_passes  by exercise, the checks that its start passes; none where it was never measured
    """

    entry: Literal["grading"] = "grading"
    format: Literal["fwlab-grading/2"] = FORMAT
    lab: str
    title: str
    fwlab: str
    seed: int
    files: dict[str, str]
    exercises: dict[str, ExerciseRecord]
    start_passes: dict[str, list[str]] = {}

    def difference(self, other: Begun) -> str | None:
        """Why two gradings have nothing to do with each other; None if one may go on where the other stopped."""
        if self.lab != other.lab:
            return f"{self.lab} and {other.lab}"
        if self.fwlab != other.fwlab:
            return f"made by versions {self.fwlab} and {other.fwlab}"
        if changed := changed_files(self.files, other.files):
            return f"{changed[0]} is not the same"
        return None if self.exercises == other.exercises else "the checks are not the same"


Entry = StudentRecord | Machines | WorkMark | Similar
_ENTRY: TypeAdapter[Begun | Entry] = TypeAdapter(Annotated[Begun | Entry, Field(discriminator="entry")])


class Grading(Frozen):
    """A grading as pages and grades need it, finished or not."""

    lab: str
    title: str
    commit: str = ""
    exercises: dict[str, ExerciseRecord]
    start_passes: dict[str, list[str]] = {}
    conditions: Conditions | None = None
    students: list[StudentRecord] = []
    works: list[WorkMark] = []
    similar: list[Pair] = []

    def of_student(self, student: str) -> list[WorkMark]:
        """The student's exercises, in the order of the lab."""
        return [work for work in self.works if work.student == student]


class Record:
    """A record, in memory and in its file; None: in memory only."""

    def __init__(self, begun: Begun, path: Path | None = None) -> None:
        self.begun, self.path = begun, path
        self.students: dict[str, StudentRecord] = {}
        self.machines: dict[str, Machines] = {}
        self.works: dict[tuple[str, str], WorkMark] = {}
        self.similar: list[Pair] = []
        #: Bytes of the file that are whole lines, and lines that could not be written yet.
        self._whole, self._unwritten = 0, b""

    def begin(self) -> None:
        """Begin the file; one that was there is replaced. Raises CannotMeasure."""
        if self.path is not None:
            line = _line(self.begun)
            write_atomically(self.path, line, error=CannotMeasure)
            self._whole = len(line)

    def lines(self) -> bytes:
        """The whole record as a file."""
        known = (self.students, self.machines, self.works)
        entries = [self.begun, *(entry for part in known for entry in part.values()), Similar(pairs=self.similar)]
        return b"".join(map(_line, entries))

    def add(self, *entries: Entry) -> None:
        """Add entries, a later one of the same thing in place of an earlier one.

        Raises CannotMeasure if they cannot be written. They are known all the same, and written with the next ones,
        over a line that was cut off.
        """
        for entry in entries:
            self._take(entry)
        if self.path is None or not entries:
            return
        self._unwritten += b"".join(map(_line, entries))
        with write_errors_as(self.path, CannotMeasure), self.path.open("r+b") as file:
            file.truncate(self._whole)
            file.seek(self._whole)
            file.write(self._unwritten)
        self._whole, self._unwritten = self._whole + len(self._unwritten), b""

    def follow(self) -> None:
        """Take what another process has added to the file since it was read. Raises BadInput naming the file."""
        if self.path is None:
            return
        with self.path.open("rb") as file:
            file.seek(self._whole)
            *lines, _cut_off = file.read().split(b"\n")
        for line in lines:
            entry = _read(str(self.path), line)
            if not isinstance(entry, Begun):
                self._take(entry)
        self._whole += sum(len(line) + 1 for line in lines)

    def _take(self, entry: Entry) -> None:
        match entry:
            case StudentRecord():
                self.students[entry.id] = entry
            case Machines():
                self.machines[entry.name] = entry
            case WorkMark():
                self.works[entry.key] = entry
            case Similar():
                self.similar = list(entry.pairs)

    def run_of(self, work: WorkMark) -> Run | None:
        """The run of the machines on which a work was measured; of any, if nothing was measured."""
        found = self.machines.get(work.machines) or next(iter(self.machines.values()), None)
        return None if found is None else found.run

    def run(self) -> Run | None:
        """All that was measured as one run; None if no machine was up."""
        every = [machines.run for machines in self.machines.values()]
        if not every:
            return None
        cases = {case.id: case for run in reversed(every) for case in run.cases}
        order = dict.fromkeys([*(case.id for case in every[0].cases), *cases])
        measured = [work.measured for work in self._ordered() if work.measured is not None]
        return every[0].model_copy(update={"cases": [cases[name] for name in order], "exercises": measured})

    def grading(self) -> Grading:
        """What pages and grades are made from."""
        begun, run = self.begun, self.run()
        return Grading(
            lab=begun.lab,
            title=begun.title,
            commit=run.commit if run else "",
            exercises=begun.exercises,
            start_passes=begun.start_passes,
            conditions=Conditions.of(run) if run else None,
            students=list(self.students.values()),
            works=list(self._ordered()),
            similar=self.similar,
        )

    def _ordered(self) -> Iterator[WorkMark]:
        """Every work, also those that are not graded yet: student by student, in the order of the exercises."""
        place = {exercise: at for at, exercise in enumerate(self.begun.exercises)}
        for student in self.students.values():
            for exercise in sorted(student.files, key=lambda name: place.get(name, len(place))):
                content = content_of(student.files[exercise])
                empty = WorkMark(student=student.id, exercise=exercise, content=content)
                known = self.works.get(empty.key)
                yield known if known is not None and known.content == content else empty


def _line(entry: Begun | Entry) -> bytes:
    return entry.model_dump_json().encode("utf-8", "backslashreplace") + b"\n"


def read_record(folder: Path) -> Record:
    """The record of a grading's folder. A line that was cut off is left out. Raises BadInput naming file and line."""
    path, hint = folder / FILE, "name the folder that `fwlab grade` wrote"
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
            raise BadInput(f"{path}: not a record of a grading", hint)
        *lines, _cut_off = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint) from error
    entries = [_read(f"{path}:{number}", line) for number, line in enumerate(lines, 1)]
    if not entries or not isinstance(entries[0], Begun):
        raise BadInput(f"{path}:1: not the beginning of a grading", hint)
    record = Record(entries[0], path)
    for number, entry in enumerate(entries[1:], 2):
        if isinstance(entry, Begun):
            raise BadInput(f"{path}:{number}: another grading starts here", "use `fwlab grades merge` to join two")
        record._take(entry)
    record._whole = sum(len(line) + 1 for line in lines)
    return record


def _read(where: str, line: bytes) -> Begun | Entry:
    try:
        return _ENTRY.validate_json(line)
    except ValidationError as error:
        message = f"{where}: not a record of a grading: {first_fault(error)}"
        raise BadInput(message, "restore the file, or grade again") from error


def lab_files(project: Project, lab: Lab) -> dict[str, str]:
    """SHA-256 of the files that decide what is measured and how it is judged, by path in the checkout."""
    paths = [lab.folder / "lab.yml", lab.folder / "ranges.yml", project.root / "topology.yml"]
    code = [path for folder in (*lab.code_folders, lab.folder / "tests") for path in folder.glob("*.py")]
    there = sorted(path for path in (*paths, *code) if path.is_file())
    return {str(path.relative_to(project.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in there}


def changed_files(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """The lab's files that are not what they were, or that are new or gone."""
    return sorted(path for path in {*now, *before} if now.get(path) != before.get(path))


def against_the_ruleset(measured: Measured) -> bool:
    """Whether it cannot be on the DUT: a tool refused it, it crashed the DUT, or it kept itself from being measured."""
    return measured.refused is not None or bool(measured.lost) or blamed(measured) is not None


def content_of(files: object) -> str:
    """A hash of what was handed in for one exercise, as the record has it."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def marks_of(verdicts: Iterable[Verdict]) -> list[CheckMark]:
    """Verdicts as a record has them."""
    return [CheckMark.of(verdict) for verdict in verdicts]


def _limits(check: Any) -> dict[str, Any]:
    known = {
        "metric": check.metric,
        "class": check.traffic_class,
        "between": [_finite(bound) for bound in check.between],
        "ratio_to": check.ratio_to,
        "kernel": check.kernel,
    }
    own = type(check).model_fields.keys() - Check.model_fields.keys()  # of the check's kind
    known |= check.model_dump(mode="json", include=own)
    return {name: value for name, value in known.items() if value is not None}


def _finite(bound: float) -> float | None:
    return bound if abs(bound) != float("inf") else None


def merged(folders: Sequence[Path]) -> Record:
    """One record of all parts. Raises BadInput naming two parts that do not belong together, or disagree."""
    parts = [(folder, read_record(folder)) for folder in folders]
    first_folder, first = parts[0]
    for folder, part in parts[1:]:
        why = first.begun.difference(part.begun) or _other_conditions(first, part)
        if why is not None:
            raise BadInput(f"{first_folder} and {folder} cannot be joined: {why}", "grade one of them again")
    joined = Record(first.begun)
    works: dict[tuple[str, str], tuple[Path, WorkMark]] = {}
    for folder, part in parts:
        for student in part.students.values():
            known = joined.students.get(student.id)
            files = {**(known.files if known else {}), **student.files}
            said = known.said if known and student.said == Said() else student.said
            joined.add(student.model_copy(update={"files": files, "said": said}))
        joined.add(*part.machines.values())
        for work in part.grading().works:
            works[work.key] = _better(works.get(work.key), (folder, work))
    joined.add(*(work for _, work in works.values() if work.outcome is not None))
    pairs = dict.fromkeys(pair for _, part in parts for pair in part.similar)
    joined.add(Similar(pairs=list(pairs)))
    return joined


def _other_conditions(one: Record, other: Record) -> str | None:
    """Why figures of two records cannot be joined; None if they may be."""
    runs = one.run(), other.run()
    if runs[0] is None or runs[1] is None:
        return "one of them never measured anything"
    mine, its = Conditions.of(runs[0]), Conditions.of(runs[1])
    # Two halves of a lab for several systems each decide the exercises of their own.
    return None if mine.system != its.system else mine.difference(its)


def _better(kept: tuple[Path, WorkMark] | None, new: tuple[Path, WorkMark]) -> tuple[Path, WorkMark]:
    """The one that decides. Raises BadInput if both do, and differently."""
    if kept is None:
        return new
    (here, mine), (there, other) = kept, new
    decided = [mark.outcome in (Outcome.PASS, Outcome.FAIL) for mark in (mine, other)]
    if all(decided) and (mine.content, mine.outcome) != (other.content, other.outcome):
        what = "other files" if mine.content != other.content else f"{mine.outcome} and {other.outcome}"
        who = f"{mine.student}/{mine.exercise}"
        raise BadInput(f"{here} and {there} have different results for {who}: {what}", "remove one of them")
    if decided[1] and not decided[0]:
        return new
    return new if mine.outcome is None else kept
