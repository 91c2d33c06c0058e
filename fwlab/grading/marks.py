# SPDX-License-Identifier: GPL-2.0-or-later
"""The marks as CSV."""

import csv
import io

from fwlab.grading.record import Grading
from fwlab.model.printable import printable
from fwlab.model.verdict import Outcome

COLUMNS = ("who", "exercise", "verdict", "passed", "checks", "reason", "mark")
NOT_YET = "not graded yet"
#: Length limit of a reason, which may quote a student's file.
LONGEST_REASON = 300


def marks_csv(grading: Grading) -> str:
    """One row per work, graded or not. The columns are COLUMNS; `reason` says what failed first, `mark` whether the
    exercise is part of the mark (core) or not (further).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for work in grading.works:
        exercise = grading.exercises.get(work.exercise)
        passed = sum(check.outcome is Outcome.PASS for check in work.checks)
        checks = len(work.checks) or (len(exercise.checks) if exercise is not None else 0)
        mark = counted(exercise is not None and exercise.further)
        row = [work.student, work.exercise, work.outcome or NOT_YET, passed, checks, harmless(work.reason), mark]
        writer.writerow(row)
    return out.getvalue()


def counted(further: bool) -> str:
    """The last column: whether an exercise is part of the mark."""
    return "further" if further else "core"


def harmless(text: str) -> str:
    """The text as one line that no spreadsheet takes for a formula; it may quote a student's file."""
    line = printable(" ".join(text.split()), LONGEST_REASON)
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line
