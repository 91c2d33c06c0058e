# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn verdicts into outcomes of tests: pass, fail, or inconclusive."""

import math
from collections.abc import Callable, Sequence
from typing import NoReturn

import pytest

from fwlab.grading.engine import Engine
from fwlab.grading.grader import Inconclusive, why_not_loaded
from fwlab.grading.record import CheckMark, WorkMark
from fwlab.grading.works import Work
from fwlab.judge.verdicts import blamed
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import CannotMeasure
from fwlab.model.printable import printable_lines
from fwlab.model.results import Measured
from fwlab.model.variants import REFUSED
from fwlab.model.verdict import Outcome, Verdict, overall


def fail(reason: str) -> NoReturn:
    """Fail the test with this reason alone, which may quote a student's file; a traceback would not help."""
    pytest.fail(printable_lines(reason), pytrace=False)


def require(verdict: Verdict | CheckMark) -> None:
    """Fail unless the verdict is a pass, with the lab's own texts. Raises Inconclusive if it is neither."""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        raise Inconclusive(f"{verdict.check}: {verdict.text}")
    if verdict.outcome is Outcome.FAIL:
        value = "not measured" if verdict.value is None else f"{verdict.value:g}"
        base = f" of {verdict.relative_to}" if verdict.relative_to else f" {METRICS[verdict.metric].unit}"
        low, high = (
            (-math.inf if verdict.low is None else verdict.low),
            (math.inf if verdict.high is None else verdict.high),
        )
        measured = f"{verdict.check}: {value}{base}, expected {low:g} to {high:g}"
        fail(f"{verdict.text}\n{measured}\nwhy: {verdict.why}")


def require_loaded(mark: WorkMark) -> None:
    """Fail unless the kernel held what the files say, as listed by the tools themselves. Raises Inconclusive."""
    if mark.measured is None:
        raise Inconclusive(mark.missing)
    if (blame := blamed(mark.measured)) is not None:
        fail(blame)
    if mark.measured.problems:
        raise Inconclusive("; ".join(mark.measured.problems))
    reason = why_not_loaded(mark.measured) or mark.absent
    if reason is not None:
        fail(reason)
    if not mark.holds:
        raise Inconclusive(mark.unclear)


def require_check(mark: WorkMark, index: int) -> None:
    """Fail unless this check passes. Raises Inconclusive."""
    if not mark.checks:
        raise Inconclusive(mark.missing)
    require(mark.checks[index])


def require_refusal(work: Work, mark: WorkMark) -> None:
    """Fail unless a ruleset of the lab that must not pass fails as it must. Raises Inconclusive."""
    if mark.measured is None:
        raise Inconclusive(mark.missing)
    refused = mark.measured.refused
    if work.made is not None and work.made.file is not None and refused is not None:
        fail(f"{work.name} was not loaded, so it shows nothing: {refused}")
    require_failure(work.name, mark.checks, refused, work.fails, work.may)


def work_outcome(work: Work, mark: WorkMark) -> tuple[Outcome, str]:
    """What the tests of a work come to, and why."""

    def every() -> None:
        if work.expected is Outcome.FAIL:
            return require_refusal(work, mark)
        for index, check in enumerate(mark.checks):
            if check.outcome is Outcome.FAIL:
                require(mark.checks[index])
        require_loaded(mark)
        for index in range(len(work.exercise.checks)):
            require_check(mark, index)
        return None

    return _outcome(every)


def case_outcome(engine: Engine, lab: str, case: str) -> tuple[Outcome, str]:
    """What the test of a case comes to, and why."""
    return _outcome(lambda: require_case(*engine.case(lab, case)))


def _outcome(require_it: Callable[[], None]) -> tuple[Outcome, str]:
    try:
        require_it()
    except (Inconclusive, CannotMeasure) as error:
        return Outcome.INCONCLUSIVE, str(error)
    except pytest.fail.Exception as error:
        return Outcome.FAIL, str(error)
    return Outcome.PASS, ""


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
    verdicts: Sequence[Verdict | CheckMark],
    refused: str | None,
    wanted: frozenset[str] | None,
    may: frozenset[str] = frozenset(),
) -> None:
    """Fail unless a ruleset that must not pass fails: by the checks `wanted`, or by any if that is None.

    may      further checks that it fails or passes by chance
    refused  why the ruleset was not loaded; None if it was
    Raises Inconclusive if that is not known.
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


def _failing(verdicts: Sequence[Verdict | CheckMark], refused: str | None) -> frozenset[str]:
    if refused is not None:
        return frozenset({REFUSED})
    return frozenset(v.check for v in verdicts if v.outcome is Outcome.FAIL)


def _listed(checks: frozenset[str]) -> str:
    return ", ".join(sorted(checks)) or "no check"
