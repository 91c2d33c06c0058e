# SPDX-License-Identifier: GPL-2.0-or-later
"""The marks as CSV, complete at every moment, and the files beside them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fwlab.grading.graded import Work
from fwlab.host.atomic_write import write_atomically
from fwlab.model.errors import FwlabError
from fwlab.model.printable import printable, printable_lines
from fwlab.model.verdict import Outcome, Verdict, overall

COLUMNS = ("who", "exercise", "verdict", "passed", "checks", "reason")
NOT_YET = "not graded yet"
#: A reason may quote a student's file, and a cell is read at a glance.
LONGEST_REASON = 300


def table(works: Iterable[Work], found: Callable[[Work], list[Verdict] | str | None]) -> str:
    """Who, exercise, verdict, checks passed, checks, what failed first: a row for every work, graded or not.

    `found`: the work's verdicts; or why there are none; or None where it has not been its turn.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for work in works:
        verdict, passed, reason = _mark(found(work))
        checks = len(work.exercise.checks)
        writer.writerow([work.who, work.exercise.id, verdict, passed, checks, harmless(reason)])
    return out.getvalue()


def _mark(found: list[Verdict] | str | None) -> tuple[str, int, str]:
    if found is None:
        return NOT_YET, 0, ""
    if isinstance(found, str):
        return Outcome.INCONCLUSIVE.value, 0, found
    verdict = overall([v.outcome for v in found])
    # The verdict's own reason: where a check failed, one that only could not be measured says nothing of it.
    reason = next((v.text for v in found if v.outcome is verdict and verdict is not Outcome.PASS), "")
    return verdict.value, sum(v.outcome is Outcome.PASS for v in found), reason


def harmless(text: str) -> str:
    """One line that no spreadsheet takes for a formula: it may quote a student's file."""
    line = printable(" ".join(text.split()), LONGEST_REASON)
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line


class Records:
    """Writes a grading's files. A disk that is full costs the files, not the marks on the screen: it is told once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.trouble: str | None = None

    def write(self, path: Path, text: str) -> None:
        self.attempt(write_atomically, path, text)

    def attempt(self, write: Callable[..., Any], *arguments: Any) -> None:
        try:
            write(*arguments)
        except Exception as error:  # noqa: BLE001 - a defect in a report costs no marks either
            if self.trouble is None:
                expected = isinstance(error, FwlabError)
                self.trouble = printable_lines(error if expected else f"{type(error).__name__}: {error}")
                self._tell(f"the marks cannot be kept: {self.trouble}")
