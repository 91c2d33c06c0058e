# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of a grading come to: pass, fail or inconclusive, and why. A pure function of marks and verdicts."""

import math
from collections.abc import Sequence
from typing import Final

from fwlab.grading.engine import Engine
from fwlab.grading.grader import why_not_loaded
from fwlab.grading.record import CheckMark, WorkMark
from fwlab.grading.works import Work
from fwlab.judge.verdicts import blamed
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import CannotMeasure
from fwlab.model.variants import REFUSED
from fwlab.model.verdict import Outcome, Verdict, overall

#: An outcome and its reason, which may quote a student's file.
Result = tuple[Outcome, str]
PASSED: Final[Result] = (Outcome.PASS, "")


def verdict_result(verdict: Verdict | CheckMark) -> Result:
    """A verdict, with the lab's own texts."""
    if verdict.outcome is Outcome.PASS:
        return PASSED
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return Outcome.INCONCLUSIVE, f"{verdict.check}: {verdict.text}"
    if verdict.metric not in METRICS:  # a test of the instructor's or the lab's own
        return Outcome.FAIL, f"{verdict.check}: {verdict.text}"
    value = "not measured" if verdict.value is None else f"{verdict.value:g}"
    base = f" of {verdict.relative_to}" if verdict.relative_to else f" {METRICS[verdict.metric].unit}"
    low = -math.inf if verdict.low is None else verdict.low
    high = math.inf if verdict.high is None else verdict.high
    measured = f"{verdict.check}: {value}{base}, expected {low:g} to {high:g}"
    return Outcome.FAIL, f"{verdict.text}\n{measured}\nwhy: {verdict.why}"


def loading_result(mark: WorkMark) -> Result:
    """Whether the kernel held what the files say, as listed by the tools themselves."""
    if mark.measured is None:
        return Outcome.INCONCLUSIVE, str(mark.missing)
    if (blame := blamed(mark.measured)) is not None:
        return Outcome.FAIL, blame
    if mark.measured.problems:
        return Outcome.INCONCLUSIVE, "; ".join(mark.measured.problems)
    reason = why_not_loaded(mark.measured) or mark.absent
    if reason is not None:
        return Outcome.FAIL, reason
    return PASSED if mark.holds else (Outcome.INCONCLUSIVE, str(mark.unclear))


def check_result(mark: WorkMark, index: int) -> Result:
    """One check of an exercise."""
    return verdict_result(mark.checks[index]) if mark.checks else (Outcome.INCONCLUSIVE, str(mark.missing))


def refusal_result(work: Work, mark: WorkMark) -> Result:
    """Whether a ruleset of the lab that must not pass fails as it must."""
    if mark.measured is None:
        return Outcome.INCONCLUSIVE, str(mark.missing)
    refused = mark.measured.refused
    if work.made is not None and work.made.file is not None and refused is not None:
        return Outcome.FAIL, f"{work.name} was not loaded, so it shows nothing: {refused}"
    return failure_result(work.name, mark.checks, refused, work.fails, work.may)


def work_result(work: Work, mark: WorkMark) -> Result:
    """All tests of a work: the first that does not pass, a failed check before anything else."""
    if work.expected is Outcome.FAIL:
        return refusal_result(work, mark)
    results = [verdict_result(check) for check in mark.checks if check.outcome is Outcome.FAIL]
    results += [loading_result(mark), *(check_result(mark, index) for index in range(len(work.exercise.checks)))]
    return next((result for result in results if result != PASSED), PASSED)


def case_result(engine: Engine, lab: str, case: str) -> Result:
    """Whether a case meets every expectation, absolute and as a ratio within this session."""
    try:
        measured, verdicts = engine.case(lab, case)
    except CannotMeasure as error:
        return Outcome.INCONCLUSIVE, str(error)
    if measured.problems:
        return Outcome.INCONCLUSIVE, "; ".join(measured.problems)
    if measured.refused is not None:
        return Outcome.FAIL, f"not loaded: {measured.refused}"
    return next((result for result in map(verdict_result, verdicts) if result != PASSED), PASSED)


def failure_result(
    name: str,
    verdicts: Sequence[Verdict | CheckMark],
    refused: str | None,
    wanted: frozenset[str] | None,
    may: frozenset[str] = frozenset(),
) -> Result:
    """Whether a ruleset that must not pass fails: by the checks `wanted`, or by any if that is None.

    may      further checks that it fails or passes by chance
    refused  why the ruleset was not loaded; None if it was
    """
    failed = frozenset(v.check for v in verdicts if v.outcome is Outcome.FAIL)
    by = failed if refused is None else frozenset({REFUSED})
    unclear = [f"{v.check}: {v.text}" for v in verdicts if v.outcome is Outcome.INCONCLUSIVE]
    if wanted is None:
        if overall([v.outcome for v in verdicts]) is Outcome.PASS:
            return Outcome.FAIL, f"{name} passes every check"
        return PASSED if by else (Outcome.INCONCLUSIVE, "; ".join(unclear))
    if by - wanted - may or (wanted - by and not unclear):
        texts = [f"{v.check}: {v.text}" for v in verdicts if v.outcome is Outcome.FAIL]
        said = f"{name} fails by {_listed(by)}, and should fail by {_listed(wanted)}"
        return Outcome.FAIL, "\n".join([said, *dict.fromkeys(texts)])
    return (Outcome.INCONCLUSIVE, "; ".join(unclear)) if unclear else PASSED


def _listed(checks: frozenset[str]) -> str:
    return ", ".join(sorted(checks)) or "no check"
