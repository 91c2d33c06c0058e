# SPDX-License-Identifier: GPL-2.0-or-later
"""What doing nothing passes: the start, unchanged or with a change that has no effect, passes some checks."""

import contextlib
from collections.abc import Iterable

from fwlab.checkout.project import Project
from fwlab.grading.submissions import HandedIn
from fwlab.judge.verdicts import judge_exercise
from fwlab.measure.context import RunContext
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Exercise, Lab
from fwlab.model.verdict import Outcome
from fwlab.rulesets.files import rendered

#: Bytes of comments and blanks by which an unchanged start may be longer. More is not looked at.
MOST_COMMENTS = 1 << 16


def untouched(context: RunContext, exercise: Exercise, handed_in: HandedIn) -> bool:
    """Whether the files say what the exercise's start says, or nothing. Comments, blanks and names do not count."""
    folder = context.lab.folder / "rulesets" / exercise.id / "start"
    try:
        start = [text for _, text in rendered(folder, exercise.parameters, context.topology)]
    except BadInput:
        return False
    if sum(file.size for file in handed_in.files) > sum(map(len, start)) + MOST_COMMENTS:
        return False
    try:
        own = said(data.decode(errors="replace") for _, data in handed_in.again())
    except CannotMeasure:  # the copy is gone, and with it the grading
        return False
    return own in ([], said(start))


def start_passes(project: Project, lab: Lab) -> dict[str, list[str]]:
    """By exercise, the checks that its start passes, by the newest published measurement of it.

    One of an older form of the exercise, in which nothing of today's checks fails, says nothing.
    """
    found: dict[str, list[str]] = {}
    for path in sorted((project.root / "results" / lab.id).glob("*.json"), reverse=True):
        left = {f"{exercise.id}/start": exercise for exercise in lab.exercises if exercise.id not in found}
        with contextlib.suppress(BadInput, OSError):  # another kind of document
            if not left or not any(f'"{name}"' in path.read_text() for name in left):
                continue
            run = load_run(path, lab.id)
            for measured in run.exercises:
                if (exercise := left.get(measured.ruleset)) is None:
                    continue
                verdicts = judge_exercise(exercise, measured, run, METRICS)
                if any(verdict.outcome is Outcome.FAIL for verdict in verdicts):
                    found[exercise.id] = [one.check for one in verdicts if one.outcome is Outcome.PASS]
    return found


def said(texts: Iterable[str]) -> list[list[str]]:
    """What the files say: the lines of each without comments and blanks, whatever the names of the files."""
    files = ([" ".join(line.partition("#")[0].split()) for line in text.splitlines()] for text in texts)
    return sorted(lines for file in files if (lines := [line for line in file if line]))
