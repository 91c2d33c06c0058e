# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn verdicts into outcomes of tests: pass, fail, or inconclusive."""

from typing import NoReturn

import pytest

from fwlab.grading.inconclusive import Inconclusive
from fwlab.metrics.registry import METRICS
from fwlab.model.printable import printable_lines
from fwlab.model.results import Measured
from fwlab.model.variants import REFUSED
from fwlab.model.verdict import Outcome, Verdict, overall


def fail(reason: str) -> NoReturn:
    """Fail the test with this reason alone, which may quote a student's file; a traceback would not help."""
    pytest.fail(printable_lines(reason), pytrace=False)


def require(verdict: Verdict) -> None:
    """Fail unless the verdict is a pass, with the lab's own texts. Raises Inconclusive if it is neither."""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        raise Inconclusive(f"{verdict.check}: {verdict.text}")
    if verdict.outcome is Outcome.FAIL:
        value = "not measured" if verdict.value is None else f"{verdict.value:g}"
        base = f" of {verdict.relative_to}" if verdict.relative_to else f" {METRICS[verdict.metric].unit}"
        measured = f"{verdict.check}: {value}{base}, expected {verdict.low:g} to {verdict.high:g}"
        fail(f"{verdict.text}\n{measured}\nwhy: {verdict.why}")


def require_case(measured: Measured, verdicts: list[Verdict]) -> None:
    """Fail unless the case meets every expectation. Raises Inconclusive if it is in doubt."""
    if measured.problems:
        raise Inconclusive("; ".join(measured.problems))
    if measured.refused is not None:
        fail(f"not loaded: {measured.refused}")
    for verdict in verdicts:
        require(verdict)


def require_failure(
    name: str,
    verdicts: list[Verdict],
    refused: str | None,
    wanted: frozenset[str] | None,
    may: frozenset[str] = frozenset(),
) -> None:
    """Fail unless a ruleset that must not pass fails: by the checks `wanted`, or by any if that is None.

    may      further checks that it fails or passes by chance
    refused  why the ruleset was not loaded; None if it was
    Raises Inconclusive if that cannot be told.
    """
    by = _failing(verdicts, refused)
    unclear = [f"{v.check}: {v.text}" for v in verdicts if v.outcome is Outcome.INCONCLUSIVE]
    if wanted is None:
        if overall([v.outcome for v in verdicts]) is Outcome.PASS:
            fail(f"{name} passes every check")
        if not by:
            raise Inconclusive("; ".join(unclear))
        return
    if by - wanted - may or (wanted - by and not unclear):
        texts = [f"{v.check}: {v.text}" for v in verdicts if v.outcome is Outcome.FAIL]
        said = f"{name} fails by {_listed(by)}, and should fail by {_listed(wanted)}"
        fail("\n".join([said, *dict.fromkeys(texts)]))
    if unclear:
        raise Inconclusive("; ".join(unclear))


def _failing(verdicts: list[Verdict], refused: str | None) -> frozenset[str]:
    if refused is not None:
        return frozenset({REFUSED})
    return frozenset(v.check for v in verdicts if v.outcome is Outcome.FAIL)


def _listed(checks: frozenset[str]) -> str:
    return ", ".join(sorted(checks)) or "no check"
