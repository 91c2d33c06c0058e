# SPDX-License-Identifier: GPL-2.0-or-later
"""Every measured lab on the real machines: a reference passes, one of what must not pass fails, quick cases hold and a
mistake fails.

One set of machines serves all labs, which one grading goes through. To limit the time, only one exercise of a lab is
graded. `make labs` grades all of them, their starts, all variants and all that must not pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from fwlab.checkout.project import is_measured, lab_ids
from fwlab.grading.grading_plan import plan_grading
from fwlab.grading.options import GradingOptions
from fwlab.grading.works import NON_SOLUTIONS, unreadable
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system
from fwlab.model.verdict import Outcome

from .conftest import LAB, PROJECT, Checkout
from .self_grading import Verdicts, own_verdicts

pytestmark = pytest.mark.live

#: A lab whose DUT has more NICs needs machines of its own (test_lab11.py).
LABS = [name for name in lab_ids(PROJECT) if is_measured(PROJECT, name) and not load_lab(PROJECT, name).needs.nics]
SYSTEM = "linux"  # of the machines that serve all labs


def measured_lab(name: str) -> Lab:
    """What these machines measure of the lab."""
    return on_system(load_lab(PROJECT, name), SYSTEM)


def reference(name: str) -> str:
    """Chooses the reference of the lab's first exercise, and what must not pass."""
    return f"reference/{measured_lab(name).exercises[0].id} or {must_not_pass(name)}"


@cache
def must_not_pass(name: str) -> str:
    """A ruleset that can be loaded and must fail: in each lab another kind for another exercise."""
    plan = plan_grading(PROJECT, GradingOptions(labs=[name], parts=[NON_SOLUTIONS], machines=LAB))
    works = [work for work in plan.works[name] if work.expected is Outcome.FAIL]
    first = 7 * LABS.index(name) % len(works)
    return next(work.name for work in works[first:] + works if unreadable(work, plan.contexts[name]) is None)


def mistake(name: str) -> str:
    """Chooses the quick cases, and the mistake of the lab's first exercise."""
    chosen, *left_out = (exercise.id for exercise in measured_lab(name).exercises)
    others = [*left_out, f"start/{chosen}", f"reference/{chosen}", "right-", "wrong-"]
    return " and ".join(f"not {word}" for word in others)


def verdicts(checkout: Checkout, chosen: Callable[[str], str], *words: str) -> dict[str, Verdicts]:
    return own_verdicts(checkout, {name: chosen(name) for name in LABS}, "--machines", LAB, *words)


@pytest.fixture(scope="module")
def references(lab: Checkout) -> dict[str, Verdicts]:
    return verdicts(lab, reference, "--part", "reference", "--part", NON_SOLUTIONS)


@pytest.mark.parametrize("name", LABS)
def test_a_reference_passes_and_no_solution_fails(references: dict[str, Verdicts], name: str) -> None:
    who, exercise = must_not_pass(name).split("/")
    assert references[name] == {
        ("reference", measured_lab(name).exercises[0].id): "pass",
        (who, exercise): "fail",
    }


@pytest.fixture(scope="module")
def mistakes(lab: Checkout) -> dict[str, Verdicts]:
    return verdicts(lab, mistake)


@pytest.mark.thorough
@pytest.mark.parametrize("name", LABS)
def test_quick_cases_hold_and_a_mistake_fails(mistakes: dict[str, Verdicts], name: str) -> None:
    assert mistakes[name] == {("mistake", measured_lab(name).exercises[0].id): "fail"}
