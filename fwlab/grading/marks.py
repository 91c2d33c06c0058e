# SPDX-License-Identifier: GPL-2.0-or-later
"""The marks as CSV, and the files of a grading."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fwlab.grading.graded import Work
from fwlab.host.atomic_write import write_atomically
from fwlab.model.errors import FwlabError
from fwlab.model.printable import printable, printable_lines
from fwlab.model.verdict import Outcome, Verdict, overall

COLUMNS = ("who", "exercise", "verdict", "passed", "checks", "reason", "mark")
NOT_YET = "not graded yet"
#: Length limit of a reason, which may quote a student's file.
LONGEST_REASON = 300


def table(
    works: Iterable[Work],
    found: Callable[[Work], list[Verdict] | str | None],
    remarks: Callable[[Work], Sequence[str]],
) -> str:
    """One row per work, graded or not. The columns are COLUMNS; `reason` says what failed first, `mark` whether the
    exercise is part of the mark (core) or not (further).

    found    gives a work's verdicts, the reason why there are none, or None if it has not been graded yet
    remarks  gives what else to say of its files, behind the reason
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for work in works:
        verdict, passed, reason = _mark(found(work))
        reason, checks = harmless(" ".join([reason, *remarks(work)])), len(work.exercise.checks)
        writer.writerow([work.who, work.exercise.id, verdict, passed, checks, reason, counted(work.exercise.further)])
    return out.getvalue()


def counted(further: bool) -> str:
    """The last column: whether an exercise is part of the mark."""
    return "further" if further else "core"


def _mark(found: list[Verdict] | str | None) -> tuple[str, int, str]:
    if found is None:
        return NOT_YET, 0, ""
    if isinstance(found, str):
        return Outcome.INCONCLUSIVE.value, 0, found
    verdict = overall([v.outcome for v in found])
    # The reason must explain the verdict: if a check failed, an inconclusive check does not.
    reason = next((v.text for v in found if v.outcome is verdict and verdict is not Outcome.PASS), "")
    return verdict.value, sum(v.outcome is Outcome.PASS for v in found), reason


def harmless(text: str) -> str:
    """The text as one line that no spreadsheet takes for a formula; it may quote a student's file."""
    line = printable(" ".join(text.split()), LONGEST_REASON)
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line


class Records:
    """Writes the files of a grading.

    A full disk loses the files, not the marks on the screen; the first failure is reported, once.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self.trouble: str | None = None

    def write(self, path: Path, text: str) -> None:
        """Write a file of marks."""
        self.attempt(write_atomically, path, text)

    def attempt(self, write: Callable[..., Any], *arguments: Any) -> None:
        """Call `write`. The first error is kept in `trouble` and reported."""
        try:
            write(*arguments)
        except Exception as error:  # noqa: BLE001 - a defect in a report costs no marks either
            if self.trouble is None:
                expected = isinstance(error, FwlabError)
                self.trouble = printable_lines(error if expected else f"{type(error).__name__}: {error}")
                self.tell(f"cannot save the marks: {self.trouble}")
