# SPDX-License-Identifier: GPL-2.0-or-later
"""A student's progress in a lab, labs/LAB/work/progress.yml, and which command comes next.

The file is handed in with the rest of work/. The machines have no part in it, so it survives `vagrant halt` and
`vagrant destroy`.
"""

import fcntl
import os
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, model_validator

from fwlab.checkout.atomic_write import write_atomically, write_errors_as
from fwlab.checkout.project import validated
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.judge.statistics import figure
from fwlab.measure.work_folder import is_start
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import Strict
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.topology import Topology
from fwlab.model.verdict import Outcome
from fwlab.report.model import ReportModel

FILE = "progress.yml"
#: Tries that the file keeps of an exercise: the first one, and the latest.
MAX_TRIES = 200
#: Exercises and questions of a lab, and checks of an exercise. No lab has a tenth of it.
MAX_NAMES = 500
#: Characters of an explanation. Two sentences have some 300.
MAX_WHY = 2000


class Try(Strict):
    """One check of a ruleset.

    at       when, in UTC
    ruleset  the hash of its files; "" where they were not measured
    start    the files were those of the start, unchanged
    outcome  the verdict; inconclusive says nothing about the ruleset
    failed   the checks that it did not pass
    measured  the figure that the prediction is about, in the metric's unit; None if there is none
    """

    at: str
    ruleset: str = ""
    start: bool = False
    outcome: Outcome
    failed: list[str] = Field(default_factory=list, max_length=MAX_NAMES)
    measured: float | None = None


class ExerciseProgress(Strict):
    """What a student has done about one exercise.

    predicted  the prediction as it was when the first figure was measured
    hints      how many hints were shown
    solution   the reference was shown
    why        why the ruleset passes, in the student's words
    """

    predicted: float | None = None
    hints: int = Field(default=0, ge=0)
    solution: bool = False
    why: Annotated[str, Field(max_length=MAX_WHY)] = ""
    tries: list[Try] = Field(default_factory=list, max_length=MAX_TRIES)

    @property
    def passed(self) -> bool:
        """Whether any try passed."""
        return any(one.outcome is Outcome.PASS for one in self.tries)

    @property
    def last(self) -> Try | None:
        """The latest try."""
        return self.tries[-1] if self.tries else None

    @property
    def first_measured(self) -> Try | None:
        """The first try with a figure: what the prediction is compared with."""
        return next((one for one in self.tries if one.measured is not None), None)

    @property
    def solutions_tried(self) -> int:
        """How many different rulesets of the student's own were judged. The start is not one of them."""
        judged = (one for one in self.tries if one.outcome is not Outcome.INCONCLUSIVE and not one.start)
        return len({one.ruleset for one in judged})


class Answer(Strict):
    """An answer to a question of the lab's workbook.

    value  the latest number
    right  whether it agreed with the student's own run
    tries  how often a number was given
    why    the explanation, in the student's words
    """

    value: float
    right: bool
    tries: int = Field(default=1, ge=1)
    why: Annotated[str, Field(max_length=MAX_WHY)] = ""


class Prediction(Strict):
    """A prediction of a question that the lab's page asks.

    value     what the student expected
    measured  what the student's own run gave when it was first compared; None before that
    late      it was made when the run was there already
    """

    value: float
    measured: float | None = None
    late: bool = False


class Progress(Strict):
    """One lab's progress. `current`: the exercise that `fwlab goto` chose."""

    format: Literal["fwlab-progress/1"] = "fwlab-progress/1"
    lab: str
    current: str | None = None
    exercises: dict[str, ExerciseProgress] = Field(default_factory=dict)
    predictions: dict[str, Prediction] = Field(default_factory=dict)
    answers: dict[str, Answer] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _not_too_many(cls, data: Any) -> Any:
        """Checked before anything else: in YAML, a megabyte may expand to millions of tries."""
        for name in ("exercises", "predictions", "answers"):
            found = data.get(name) if isinstance(data, dict) else None
            if isinstance(found, dict) and len(found) > MAX_NAMES:
                raise ValueError(f"{name}: more than {MAX_NAMES}")
        return data

    def of(self, exercise: str) -> ExerciseProgress:
        """The exercise's progress."""
        return self.exercises.get(exercise, ExerciseProgress())

    def with_exercise(self, exercise: str, **changes: object) -> "Progress":
        """This progress with changes to one exercise."""
        changed = self.of(exercise).model_copy(update=changes)
        return self.model_copy(update={"exercises": {**self.exercises, exercise: changed}})

    def with_tries(self, tries: dict[str, Try], predictions: dict[str, float]) -> "Progress":
        """This progress with one more try of each of these exercises."""
        found = self
        for exercise, one in tries.items():
            before = found.of(exercise)
            predicted = before.predicted if before.first_measured else predictions.get(exercise)
            kept = [*before.tries, one]
            if len(kept) > MAX_TRIES:
                # The first with a figure stays, because the prediction is compared with it.
                first = before.first_measured or kept[0]
                latest = kept[-MAX_TRIES:]
                kept = latest if first in latest else [first, *latest[1:]]
            found = found.with_exercise(exercise, predicted=predicted, tries=kept)
        return found

    def with_prediction(self, question: str, prediction: Prediction) -> "Progress":
        """This progress with this prediction in place of an earlier one."""
        return self.model_copy(update={"predictions": {**self.predictions, question: prediction}})

    def with_answer(self, question: str, answer: Answer) -> "Progress":
        """This progress with this answer in place of an earlier one."""
        return self.model_copy(update={"answers": {**self.answers, question: answer}})


def read_progress(lab: Lab) -> Progress:
    """The student's progress in the lab; empty if there is none yet. Raises BadInput for a damaged file."""
    return progress_in(lab.folder / "work", lab.id)


def progress_in(folder: Path, lab_id: str) -> Progress:
    """The progress in a work/ folder, which may be one that was handed in. Raises BadInput."""
    path = folder / FILE
    if not path.exists():
        return Progress(lab=lab_id)
    work = f"labs/{lab_id}/work"
    hint = f"mv {work}/{FILE} {work}/{FILE}.damaged, then the same command; rulesets and predictions stay"
    found = validated(read_yaml_file(path, f"work/{FILE}", hint), f"work/{FILE}", Progress, hint=hint)
    if found.lab != lab_id:
        raise BadInput(f"work/{FILE}: the progress in {found.lab}, not in {lab_id}", hint)
    return found


def update(lab: Lab, change: Callable[[Progress], Progress]) -> Progress:
    """Change the progress on disk, after any other command that is doing so. Raises BadInput."""
    folder = lab.folder / "work"
    with write_errors_as(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        changed = change(read_progress(lab))
        data = changed.model_dump(mode="json", exclude_defaults=True) | {"format": changed.format}
        write_atomically(folder / FILE, yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120))
    finally:
        os.close(handle)
    return changed


def reason_in(why: str) -> str:
    """The reason on one line. Raises BadInput for none, and for a long one."""
    if not 0 < len(why.strip()) <= MAX_WHY:
        raise BadInput(f"a reason has 1 to {MAX_WHY} characters (got {len(why.strip())})", 'write --why "..."')
    return " ".join(why.split())


def explain(lab: Lab, exercise: str, why: str) -> None:
    """Keep why a student's ruleset passes. Raises BadInput for one that has not passed yet."""
    reason = reason_in(why)
    if not read_progress(lab).of(exercise).passed:
        raise BadInput(f"{exercise}: a reason comes after a check that passes", f"fwlab check {lab.id} {exercise}")
    update(lab, lambda progress: progress.with_exercise(exercise, why=reason))


@dataclass(frozen=True)
class NextStep:
    """The command to type now, and what it is for. Without a command there is nothing left to do."""

    why: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.why}: {self.command}" if self.command else self.why


def in_order(lab: Lab) -> list[Exercise]:
    """The exercises as a student takes them: the core, then what goes further."""
    return sorted(lab.whole.exercises, key=lambda exercise: exercise.further)


def next_step(
    lab: Lab,
    progress: Progress,
    predictions: Mapping[str, float],
    questions: Sequence[str],
    hinted: Container[str],
    asked: Sequence[str] = (),
) -> NextStep:
    """What comes next.

    questions  the ids of the lab's workbook
    hinted     exercises for which there are hints
    asked      what the lab's page asks; once an exercise was tried, it is left alone
    """
    order = in_order(lab)
    begun = progress.current is not None or any(done.tries for done in progress.exercises.values())
    if not begun and (left := [question for question in asked if question not in progress.predictions]):
        return NextStep("a question of the page; predict, before you measure", f"fwlab predict {lab.id} {left[0]}")
    names = [exercise.id for exercise in order]
    if progress.current in names:  # goto: begin there, and come back to what was left out
        at = names.index(progress.current)
        order = order[at:] + order[:at]
    for exercise in order:
        done = progress.of(exercise.id)
        if not done.passed:
            return _of_exercise(lab, exercise, done, exercise.id in predictions, exercise.id in hinted)
    for question in questions:
        answer = progress.answers.get(question)
        if answer is None or not answer.right:
            return NextStep("a question of the workbook is open", f"fwlab answer {lab.id} {question}")
        if not answer.why:
            return NextStep("an answer lacks its reason", f'fwlab answer {lab.id} {question} --why "..."')
    for exercise in order:
        if not progress.of(exercise.id).why:
            return NextStep("an exercise lacks its reason", f'fwlab answer {lab.id} {exercise.id} --why "..."')
    return NextStep(f"all done: hand in what is in labs/{lab.id}/work/")


def _of_exercise(lab: Lab, one: Exercise, done: ExerciseProgress, predicted: bool, hinted: bool) -> NextStep:
    exercise = one.id
    if not predicted and done.first_measured is None:
        return NextStep("predict, before you measure", f"fwlab predict {lab.id} {exercise}")
    if not (lab.folder / "work" / exercise).is_dir():
        return NextStep("copy the start into work/", f"fwlab start {lab.id} {exercise}")
    if done.last is None and one.predict.start:
        return NextStep("check the start, which your prediction is about", f"fwlab check {lab.id} {exercise}")
    if done.last is None:
        return NextStep(f"edit labs/{lab.id}/work/{exercise}/, then check it", f"fwlab check {lab.id} {exercise}")
    if done.last.outcome is Outcome.INCONCLUSIVE:
        return NextStep("the measurement could not decide; check again", f"fwlab check {lab.id} {exercise}")
    stuck = f" (or: fwlab hint {lab.id} {exercise})" if hinted else ""
    return NextStep(f"change labs/{lab.id}/work/{exercise}/ and check again{stuck}", f"fwlab check {lab.id} {exercise}")


def tries_in(model: ReportModel, topology: Topology) -> dict[str, Try]:
    """By exercise, what a check found out."""
    found = {}
    at = datetime.now(UTC).isoformat(timespec="seconds")
    for row in model.exercises:
        exercise = model.lab.exercise(row.id)
        if exercise is None or row.outcome is None:
            continue
        asked, start, value = exercise.predict, is_start(model.lab, exercise, topology), None
        if not row.problems and row.outcome is not Outcome.INCONCLUSIVE and (start or not asked.start):
            value = figure(row.measured, METRICS[asked.metric], model.run.testbed, asked.traffic_class)
        found[row.id] = Try(
            at=at,
            ruleset=row.measured.ruleset_hash,
            start=start,
            outcome=row.outcome,
            failed=[verdict.check for verdict in row.verdicts if verdict.outcome is not Outcome.PASS],
            measured=value.median if value else None,
        )
    return found
