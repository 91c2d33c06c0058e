# SPDX-License-Identifier: GPL-2.0-or-later
"""grading.json: what a grading decided, and under which conditions. Pages, grades and later judgements come from it.

run.json beside it has the measurements, submissions.json the files that were handed in.
"""

from __future__ import annotations

import hashlib
import json
import stat
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from fwlab.grading.class_names import NAME
from fwlab.grading.similarity import Pair
from fwlab.grading.submissions import HandedIn, told
from fwlab.host.project import Project
from fwlab.model.declared import Frozen, Value
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict, overall

FORMAT: Final = "fwlab-grading/1"
FILE: Final = "grading.json"
LARGEST_FILE = 64 << 20


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
    """One exercise of one student.

    content  a hash of what was handed in
    checks   a verdict per check; none if there is no mark yet
    missing  why there is no mark although it was tried
    holds    the DUT was asked whether it holds what the files say, and it did
    remarks  what else to say of the files
    untouched  the files say what the exercise's start says, or nothing
    """

    student: str
    exercise: str
    content: str
    checks: list[CheckMark] = []
    missing: str | None = None
    holds: bool = False
    remarks: list[str] = []
    untouched: bool = False

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


class StudentRecord(Frozen):
    """One student. `individual`: the numbers drawn for them."""

    id: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]  # it names a folder
    name: str = ""
    source: str = ""
    handed_in: datetime | None = None
    individual: dict[str, Value] = {}


class Conditions(Frozen):
    """What figures depend on, beside the lab: two gradings that differ in it cannot be joined.

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


class Grading(Frozen):
    """A grading of a class, finished or not.

    files  SHA-256 of each file of the lab that a measurement or a verdict depends on
    start_passes  by exercise, the checks that its start passes; none where no measurement of it is published
    """

    format: Literal["fwlab-grading/1"] = FORMAT
    lab: str
    title: str
    commit: str
    fwlab: str
    files: dict[str, str]
    exercises: dict[str, ExerciseRecord]
    start_passes: dict[str, list[str]] = {}
    conditions: Conditions | None = None
    students: list[StudentRecord] = []
    works: list[WorkMark] = []
    similar: list[Pair] = []

    def of_student(self, student: str) -> list[WorkMark]:
        """The student's exercises, in the order of the lab."""
        return [work for work in self.works if work.student == student]


def read_grading(folder: Path) -> Grading:
    """The record of a grading's folder. Raises BadInput naming the file."""
    path, hint = folder / FILE, "name the folder that `pytest --testinfra --submissions` wrote"
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_FILE:
            raise BadInput(f"{path}: not a record of a grading", hint)
        return Grading.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part)[:40] for part in first["loc"])
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise BadInput(f"{path}: not a record of a grading: {what}", hint) from error


def lab_files(project: Project, lab: Lab) -> dict[str, str]:
    """SHA-256 of the files that decide what is measured and how it is judged, by path in the checkout."""
    paths = [lab.folder / "lab.yml", lab.folder / "ranges.yml", project.root / "topology.yml"]
    code = [path for folder in lab.code_folders for path in folder.glob("*.py")]
    there = sorted(path for path in (*paths, *code) if path.is_file())
    return {str(path.relative_to(project.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in there}


def measured_of(run: Run, student: str, exercise: str) -> Measured | None:
    """The measurement behind the verdicts: the first of this student's ruleset for this exercise."""
    own = (student, exercise)
    return next((m for m in run.exercises if m.id == exercise and tuple(m.ruleset.split("/")[-2:]) == own), None)


def content_of(handed_in: HandedIn) -> str:
    """A hash of what was handed in for one exercise; the reason stands for files that could not be read."""
    return content_of_told(told(handed_in))


def content_of_told(files: object) -> str:
    """The same from an entry of submissions.json."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def _limits(check: Any) -> dict[str, Any]:
    known = {
        "metric": check.metric,
        "class": check.traffic_class,
        "between": [_finite(bound) for bound in check.between],
        "ratio_to": check.ratio_to,
        "kernel": check.kernel,
    }
    return {name: value for name, value in known.items() if value is not None}


def _finite(bound: float) -> float | None:
    return bound if abs(bound) != float("inf") else None
