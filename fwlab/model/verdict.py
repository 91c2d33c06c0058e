# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts: passed, failed, or inconclusive if the measurement cannot decide."""

from enum import StrEnum

from fwlab.model.declared import Frozen
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNMEASURED


class Outcome(StrEnum):
    """How a comparison ends."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


#: In place of a metric: a verdict is that of a test, and has no figure.
TEST = "test"


class Verdict(Frozen):
    """One expectation or check, compared with one measurement, and the reason for the outcome."""

    subject: str
    check: str
    metric: str
    outcome: Outcome
    value: float | None
    low: float
    high: float
    relative_to: str | None = None
    text: str
    why: str = ""
    source: list[str] = []


def overall(outcomes: list[Outcome]) -> Outcome:
    """The worst outcome: a failure outweighs an inconclusive measurement."""
    if Outcome.FAIL in outcomes:
        return Outcome.FAIL
    if Outcome.INCONCLUSIVE in outcomes:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS


def exit_code(outcomes: list[Outcome]) -> int:
    """The program's exit code for these outcomes."""
    return {
        Outcome.PASS: EXIT_PASS,
        Outcome.FAIL: EXIT_FAIL,
        Outcome.INCONCLUSIVE: EXIT_UNMEASURED,
    }[overall(outcomes)]
