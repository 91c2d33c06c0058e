# SPDX-License-Identifier: GPL-2.0-or-later
"""What helps a student: hints, explanations for those who have predicted, and the solution for those who have tried.

hints.yml has, for each exercise, hints from a nudge to a strong one. None is the answer. explained.md has a section for
each question that the lab's page asks before the measurement. The solution is the lab's reference, and why it passes.
"""

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel

from fwlab.checkout.project import Project, display_path, read_yaml
from fwlab.checkout.raw_results import raw_results
from fwlab.judge.statistics import figure
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import Identifier
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.topology import Topology
from fwlab.report.formatting import quantity
from fwlab.rulesets.files import rendered
from fwlab.student.progress import Progress, read_progress, update

FILE = "hints.yml"
Hint = Annotated[str, Field(min_length=1, max_length=1000)]


class Hints(RootModel[dict[Identifier, Annotated[list[Hint], Field(min_length=1, max_length=5)]]]):
    """By exercise, its hints in the order in which they are shown."""


def hints_of(project: Project, lab: Lab) -> dict[str, list[str]]:
    """By exercise, its hints; empty if the lab has none.

    Raises BadInput, naming the file, if it is faulty or names an exercise that the lab does not have.
    """
    path = lab.folder / FILE
    if not path.exists():
        return {}
    found = read_yaml(project, path, Hints).root
    for exercise in found:
        if lab.whole.exercise(exercise) is None:
            known = ", ".join(e.id for e in lab.whole.exercises)
            where = display_path(project, path)
            raise BadInput(f"{where}: {lab.id} has no exercise {exercise}; it has: {known}", f"fix {where}")
    return {exercise: [" ".join(hint.split()) for hint in hints] for exercise, hints in found.items()}


@dataclass(frozen=True)
class Shown:
    """Hints by number, of so many; `all_known`: each of them was shown before."""

    hints: dict[int, str]
    of: int
    all_known: bool


def next_hints(project: Project, lab: Lab, exercise: str, *, everything: bool = False) -> Shown:
    """Show one more hint, or everything, and count it; all again once there are no more. Raises BadInput for none."""
    hints = hints_of(project, lab).get(exercise, [])
    if not hints:
        raise BadInput(
            f"{lab.id} has no hints for {exercise}", f"fwlab check {lab.id} {exercise}, which says what to look at"
        )
    before = min(read_progress(lab).of(exercise).hints, len(hints))
    count = len(hints) if everything else min(before + 1, len(hints))
    update(lab, lambda progress: progress.with_exercise(exercise, hints=max(count, progress.of(exercise).hints)))
    again = not everything and before == len(hints)
    first = 0 if everything or again else count - 1
    return Shown({index + 1: hints[index] for index in range(first, count)}, len(hints), again)


EXPLAINED = "explained.md"
#: What a terminal has no use for: comments, which hold the functions of numbers; pictures; the targets of links.
_UNSEEN = re.compile(r"<!--.*?-->|!\[[^\]]*\]\([^)\s]+\)", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")


def explanation(lab: Lab, question: str) -> str:
    """The section of explained.md on this question, as Markdown for a terminal. Raises BadInput if there is none."""
    path = lab.folder / EXPLAINED
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.search(rf"^## {re.escape(question)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        where = f"labs/{lab.id}/{EXPLAINED}"
        raise BadInput(f"{where}: no section {question}", f"add it, or remove the question from labs/{lab.id}")
    return _LINK.sub(r"\1", _UNSEEN.sub("", found[1])).strip()


#: Lines of a file that are printed. A blacklist has hundreds of thousands.
MAX_LINES = 40


@dataclass(frozen=True)
class Solution:
    """The reference's files by name, and for each check its purpose and what is said to who passes it."""

    folder: Path
    files: dict[str, str]
    reasons: list[tuple[str, str, str]]


def solution(lab: Lab, exercise: Exercise, progress: Progress, topology: Topology, *, hinted: bool) -> Solution:
    """The solution. `hinted`: there are hints to ask for before.

    Raises BadInput for a student who has not tried often enough, or without a reference.
    """
    done = progress.of(exercise.id)
    tried, wanted = done.solutions_tried, lab.solution_after
    if not done.passed and not done.solution and tried < wanted:
        rulesets = "ruleset" if wanted == 1 else "different rulesets"
        message = (
            f"the solution of {exercise.id} is shown once the exercise is passed, or {wanted} {rulesets} of your own "
            f"have been checked (so far: {tried})"
        )
        verb = "hint" if hinted else "check"
        raise BadInput(message, f"fwlab {verb} {lab.id} {exercise.id}")
    folder = lab.folder / "rulesets" / exercise.id / "reference"
    if not folder.is_dir():
        raise BadInput(
            f"{lab.id} has no solution of {exercise.id} here: this copy of the labs comes without them",
            "ask whoever gave it to you",
        )
    files = dict(rendered(folder, exercise.parameters, topology))
    reasons = [(check.id, check.why.strip(), check.passed.strip()) for check in exercise.checks]
    return Solution(folder, files, reasons)


def published_figure(project: Project, lab: Lab, exercise: Exercise) -> str | None:
    """What the authors measured of the reference, and where it is kept; None if that is not here."""
    metric = METRICS[exercise.predict.metric]
    for path in reversed(raw_results(project, f"{lab.id}/*")):
        with contextlib.suppress(BadInput):  # another kind of document
            run = load_run(path, lab.id)
            of_reference = (m for m in run.exercises if m.ruleset == f"{exercise.id}/reference" and not m.problems)
            for measured in of_reference:
                if found := figure(measured, metric, run.testbed, exercise.predict.traffic_class):
                    return f"{quantity(found.median, metric)} ({display_path(project, path)})"
    return None


def shortened(text: str) -> str:
    """The beginning of a long file, and how much is left out."""
    lines = text.splitlines()
    if len(lines) <= MAX_LINES:
        return "\n".join(lines)
    left = len(lines) - MAX_LINES
    return "\n".join([*lines[:MAX_LINES], f"… and {left:,} more lines".replace(",", " ")])
