# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a student has done anything: an unchanged start, or nothing at all, passes some checks and earns none."""

from collections.abc import Iterable

from fwlab.grading.submissions import HandedIn
from fwlab.measure.context import RunContext
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.lab import Exercise
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
        own = _said(data.decode(errors="replace") for _, data in handed_in.again())
    except CannotMeasure:  # the copy is gone, and with it the grading
        return False
    return own in ([], _said(start))


def _said(texts: Iterable[str]) -> list[list[str]]:
    lines = ([" ".join(line.partition("#")[0].split()) for line in text.splitlines()] for text in texts)
    return sorted(said for file in lines if (said := [line for line in file if line]))
