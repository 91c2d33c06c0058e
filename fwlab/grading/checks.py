# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests that `pytest --testinfra` shows: each waits until the engine knows what it asserts.

The plugin (cli/pytest_plugin.py) gives them their parameters.
"""

from dataclasses import dataclass

import pytest

from fwlab.grading.engine import Engine, forwarding
from fwlab.grading.grader import Inconclusive
from fwlab.grading.outcomes import Result, case_result, check_result, loading_result, refusal_result
from fwlab.grading.works import Work
from fwlab.model.printable import printable_lines
from fwlab.model.verdict import Outcome


@dataclass(frozen=True)
class CheckAt:
    """A check by its index in the exercise; its name becomes part of the test's name."""

    index: int
    name: str


def require(result: Result) -> None:
    """End the test as the result says, by its reason alone: a traceback would not help. Raises Inconclusive."""
    outcome, reason = result
    if outcome is Outcome.INCONCLUSIVE:
        raise Inconclusive(reason)
    if outcome is Outcome.FAIL:
        pytest.fail(printable_lines(reason), pytrace=False)


def test_dut_forwards(engine: Engine, lab: str) -> None:
    """The DUT must be a router; otherwise no other result means anything."""
    assert engine.present(lab).sysctls.get(forwarding(engine.plan.contexts[lab])) == "1"


def test_package(engine: Engine, lab: str, package: str) -> None:
    """A package that the lab needs is installed on the DUT."""
    assert package in engine.present(lab).packages, f"the DUT lacks the package {package}"


def test_module(engine: Engine, lab: str, module: str) -> None:
    """The module must be available. It is not loaded: the start state has none."""
    assert module in engine.present(lab).modules, f"the DUT's kernel lacks the module {module}"


def test_sysctl(engine: Engine, lab: str, sysctl: tuple[str, int | str]) -> None:
    """A setting that the lab needs has the declared value on the DUT."""
    name, value = sysctl
    assert engine.present(lab).sysctls.get(name) == str(value)


def test_case(engine: Engine, lab: str, case: str) -> None:
    """Every expectation on the case, absolute and as a ratio within this session."""
    require(case_result(engine, lab, case))


def test_loaded(engine: Engine, lab: str, work: Work) -> None:
    """The kernel holds what the files say, as listed by the tools themselves."""
    require(loading_result(engine.mark(lab, work)))


def test_check(engine: Engine, lab: str, work: Work, check: CheckAt) -> None:
    """One check of an exercise on one ruleset."""
    require(check_result(engine.mark(lab, work), check.index))


def test_grader_refuses(engine: Engine, lab: str, work: Work) -> None:
    """A start, a mistake or a wrong variant must fail; if it passed, the exercise would check too little."""
    require(refusal_result(work, engine.mark(lab, work)))
