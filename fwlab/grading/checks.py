# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests that `pytest --testinfra` runs; the plugin (cli/pytest_plugin.py) gives them their parameters."""

from typing import Protocol

from fwlab.grading.graded import Work
from fwlab.grading.grading_session import GradingSession, why_not_loaded
from fwlab.grading.inconclusive import Inconclusive
from fwlab.grading.kernel_state import absent_from
from fwlab.grading.outcomes import fail, require, require_case, require_failure
from fwlab.judge.verdicts import blamed


class CheckAt(Protocol):
    """A check by its index in the exercise."""

    index: int


def test_dut_forwards(grading: GradingSession, lab: str) -> None:
    """The DUT must be a router; otherwise no other result means anything."""
    assert grading.present(lab).sysctls.get(grading.forwarding(lab)) == "1"


def test_package(grading: GradingSession, lab: str, package: str) -> None:
    """A package that the lab needs is installed on the DUT."""
    assert package in grading.present(lab).packages, f"the DUT lacks the package {package}"


def test_module(grading: GradingSession, lab: str, module: str) -> None:
    """The module must be available. It is not loaded: the start state has none."""
    assert module in grading.present(lab).modules, f"the DUT's kernel lacks the module {module}"


def test_sysctl(grading: GradingSession, lab: str, sysctl: tuple[str, int | str]) -> None:
    """A setting that the lab needs has the declared value on the DUT."""
    name, value = sysctl
    assert grading.present(lab).sysctls.get(name) == str(value)


def test_case(grading: GradingSession, lab: str, case: str) -> None:
    """Every expectation on the case, absolute and as a ratio within this session."""
    require_case(*grading.case_verdicts(lab, case))


def test_loaded(grading: GradingSession, lab: str, work: Work) -> None:
    """The kernel holds what the files say, as listed by the tools themselves."""
    measured = grading.measured(lab, work)
    if (blame := blamed(measured)) is not None:
        fail(blame)
    if measured.problems:
        raise Inconclusive("; ".join(measured.problems))
    reason = why_not_loaded(measured)
    if reason is not None:
        fail(reason)
    if grading.kept(lab, work):
        return  # an earlier grading asked the DUT
    absent = absent_from(grading.host(lab), grading.loaded(lab, work).files)
    if absent is not None:
        # The DUT may have been restored since then, without the ruleset. Load it again and look again.
        absent = absent_from(grading.host(lab), grading.loaded(lab, work, anew=True).files)
    if absent is not None:
        fail(absent)
    grading.holds(lab, work)


def test_check(grading: GradingSession, lab: str, work: Work, check: CheckAt) -> None:
    """One check of an exercise on one ruleset."""
    require(grading.verdicts(lab, work)[check.index])


def test_grader_refuses(grading: GradingSession, lab: str, work: Work) -> None:
    """A start, a mistake or a wrong variant must fail; if it passed, the exercise would check too little."""
    verdicts, refused = grading.verdicts(lab, work), grading.measured(lab, work).refused
    if work.made is not None and work.made.file is not None and refused is not None:
        fail(f"{work.name} was not loaded, so it shows nothing: {refused}")
    require_failure(work.name, verdicts, refused, work.fails, work.may)
