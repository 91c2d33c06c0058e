# SPDX-License-Identifier: GPL-2.0-or-later
"""A verdict as the outcome of a test: passed, failed, or inconclusive, which is neither."""

from __future__ import annotations

from typing import NoReturn

import pytest

from fwlab.grading.inconclusive import Inconclusive
from fwlab.model.results import Measured
from fwlab.model.variants import REFUSED
from fwlab.model.verdict import Outcome, Verdict, overall


def failed(reason: str) -> NoReturn:
    """The test's failure in the lab's own words; where in our code it was found out helps nobody."""
    pytest.fail(reason, pytrace=False)


def hold(verdict: Verdict) -> None:
    """A check's verdict, in the words that the lab has for it."""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        raise Inconclusive(f"{verdict.check}: {verdict.text}")
    if verdict.outcome is Outcome.FAIL:
        value = "not measured" if verdict.value is None else f"{verdict.value:g}"
        base = f" of {verdict.relative_to}" if verdict.relative_to else f" {verdict.metric.unit}"
        measured = f"{verdict.check}: {value}{base}, wanted {verdict.low:g} to {verdict.high:g}"
        failed(f"{verdict.text}\n{measured}\nwhy: {verdict.why}")


def hold_case(measured: Measured, verdicts: list[Verdict]) -> None:
    """A case of the lab: every expectation on it."""
    if measured.problems:
        raise Inconclusive("; ".join(measured.problems))
    if measured.refused is not None:
        failed(f"not loaded: {measured.refused}")
    for verdict in verdicts:
        hold(verdict)


def hold_failure(name: str, verdicts: list[Verdict], refused: str | None, wanted: frozenset[str] | None) -> None:
    """A ruleset that must not pass: by any check where `wanted` is None, else by exactly these.

    `refused` is why it was not loaded, None where it was.
    """
    by = _failing(verdicts, refused)
    unclear = [f"{v.check}: {v.text}" for v in verdicts if v.outcome is Outcome.INCONCLUSIVE]
    if wanted is None:
        if overall([v.outcome for v in verdicts]) is Outcome.PASS:
            failed(f"{name} passes every check")
        if not by:
            raise Inconclusive("; ".join(unclear))
        return
    if by - wanted or (by != wanted and not unclear):
        texts = [f"{v.check}: {v.text}" for v in verdicts if v.outcome is Outcome.FAIL]
        said = f"{name} fails by {_listed(by)}, and should by {_listed(wanted)}"
        failed("\n".join([said, *dict.fromkeys(texts)]))
    if unclear:
        raise Inconclusive("; ".join(unclear))


def _failing(verdicts: list[Verdict], refused: str | None) -> frozenset[str]:
    if refused is not None:
        return frozenset({REFUSED})
    return frozenset(v.check for v in verdicts if v.outcome is Outcome.FAIL)


def _listed(checks: frozenset[str]) -> str:
    return ", ".join(sorted(checks)) or "no check"
