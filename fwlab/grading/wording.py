# SPDX-License-Identifier: GPL-2.0-or-later
"""How marks are put into words and into the cells of a table. What they quote is a stranger's."""

import csv
import io
from collections.abc import Iterable, Sequence

from fwlab.grading.record import CheckMark, WorkMark
from fwlab.metrics.registry import METRICS
from fwlab.model.printable import printable
from fwlab.model.verdict import Outcome

NOT_YET = "not graded yet"
#: Length limit of a reason, which may quote a student's file.
MAX_REASON = 300
#: With these a spreadsheet's formula begins; some take the wide forms, too (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def harmless(text: str) -> str:
    """The text as one line that no spreadsheet takes for a formula; it may quote a student's file."""
    line = printable(" ".join(text.split()), MAX_REASON)
    return f"'{line}" if line[:1] in _FORMULA else line


def explained(work: WorkMark) -> list[str]:
    """A work in words, a line for each check; one line if nothing was loaded."""
    if not work.checks:
        return [work.missing or NOT_YET]
    if work.outcome is Outcome.FAIL and work.refused is not None:
        return [work.refused, *work.remarks]
    return [*(f"{check.check}: {check.outcome}: {check.text}" for check in work.checks), *work.remarks]


def measured(check: CheckMark) -> str:
    """What was measured; empty for a ruleset that gave no figure."""
    return "" if check.value is None else _figure(check.value, check)


def expected(check: CheckMark) -> str:
    """The limits in words."""
    if check.low is not None and check.high is not None:
        if check.low == check.high:
            return _figure(check.low, check)
        return f"{digits(check.low)} to {_figure(check.high, check)}"
    if check.low is not None:
        return f"at least {_figure(check.low, check)}"
    return f"at most {_figure(check.high, check)}" if check.high is not None else "anything"


def _figure(value: float, check: CheckMark) -> str:
    """With its unit, or with the case that it is a multiple of."""
    if check.relative_to:
        return f"{digits(value)} of {check.relative_to}"
    unit = METRICS[check.metric].unit if check.metric in METRICS else ""
    return digits(value) if unit in ("", "ratio", "count") else f"{digits(value)} {unit}"


def digits(value: float) -> str:
    """Four digits, or whole numbers with commas."""
    return f"{value:.4g}" if abs(value) < 100 else f"{value:,.0f}"
