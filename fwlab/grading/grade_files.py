# SPDX-License-Identifier: GPL-2.0-or-later
"""The files for a grade book: JUnit, and Gradescope's results.json of each student."""

import json
from typing import Any
from xml.etree import ElementTree

from fwlab.grading.course import Course
from fwlab.grading.grades import Grade
from fwlab.grading.record import CheckMark, Grading, WorkMark
from fwlab.metrics.registry import METRICS
from fwlab.model.printable import printable_lines
from fwlab.model.verdict import Outcome

#: Units that say nothing behind a number.
_PLAIN = ("ratio", "count")


def junit(grading: Grading) -> str:
    """A test for each check of each exercise. What could not be measured is skipped, with its reason."""
    suite = ElementTree.Element("testsuite", name=grading.lab)
    counts = dict.fromkeys(("tests", "failures", "skipped"), 0)
    for work in grading.works:
        for name, check in _tests(grading, work):
            case = ElementTree.SubElement(suite, "testcase", classname=f"{work.student}.{work.exercise}", name=name)
            counts["tests"] += 1
            if check is None or check.outcome is Outcome.INCONCLUSIVE:
                counts["skipped"] += 1
                reason = check.text if check else work.missing or "not graded yet"
                ElementTree.SubElement(case, "skipped", message=_line(reason))
            elif check.outcome is Outcome.FAIL:
                counts["failures"] += 1
                ElementTree.SubElement(
                    case, "failure", message=_line(check.text)
                ).text = f"measured {measured(check) or 'nothing'}, expected {expected(check)}"
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _tests(grading: Grading, work: WorkMark) -> list[tuple[str, CheckMark | None]]:
    if work.checks:
        return [(check.check, check) for check in work.checks]
    return [(name, None) for name in grading.exercises[work.exercise].checks]


def _line(text: str) -> str:
    """Text that XML can hold."""
    return printable_lines(text).encode("utf-8", "backslashreplace").decode()


def results_json(grading: Grading, course: Course, grade: Grade) -> str:
    """Gradescope's results of one submission: a test per exercise. What is open has no score."""
    weights = sum(item.weight for item in grade.exercises) or 1.0
    tests = []
    for order, item in enumerate(grade.exercises, 1):
        most = course.points * item.weight / weights
        status = {None: {}, 1.0: {"status": "passed"}}.get(item.share, {"status": "failed"})
        test: dict[str, Any] = {
            "name": grading.exercises[item.work.exercise].title,
            "number": str(order),
            "max_score": round(most, 4),
            "output": "\n".join(explained(item.work)),
            **status,
        }
        if item.share is not None:
            test["score"] = round(most * item.share, 4)
        tests.append(test)
    said = [f"{grading.lab}: {grading.title}"]
    if grade.deducted:
        said.append(f"Deducted for {grade.days_late} days after the deadline: {grade.deducted:.0%}")
    if grade.open:
        said.append(f"Not decided yet: {', '.join(grade.open)}. The score is preliminary.")
    found: dict[str, Any] = {"output": "\n".join(said), "visibility": "visible", "tests": tests}
    if grade.points is not None:
        found["score"] = round(grade.points, 4)
    return json.dumps(found, indent=1) + "\n"


def explained(work: WorkMark) -> list[str]:
    """A work in words, a line for each check."""
    if not work.checks:
        return [work.missing or "not graded yet"]
    return [*(f"{check.check}: {check.outcome}: {check.text}" for check in work.checks), *work.remarks]


def measured(check: CheckMark) -> str:
    """What was measured; empty for a ruleset that gave no figure."""
    return "" if check.value is None else _figure(check.value, check)


def expected(check: CheckMark) -> str:
    """The limits in words."""
    if check.low is not None and check.high is not None:
        if check.low == check.high:
            return _figure(check.low, check)
        return f"{_digits(check.low)} to {_figure(check.high, check)}"
    if check.low is not None:
        return f"at least {_figure(check.low, check)}"
    return f"at most {_figure(check.high, check)}" if check.high is not None else "anything"


def _figure(value: float, check: CheckMark) -> str:
    """With its unit, or with the case that it is a multiple of."""
    if check.relative_to:
        return f"{_digits(value)} of {check.relative_to}"
    unit = METRICS[check.metric].unit if check.metric in METRICS else ""
    return _digits(value) if unit in ("", *_PLAIN) else f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 100 else f"{value:,.0f}"
