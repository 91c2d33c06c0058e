# SPDX-License-Identifier: GPL-2.0-or-later
"""Every measured lab on the real machines: a reference passes, quick cases hold and a mistake fails.

One set of machines serves all labs, which one grading goes through. To limit the time, only one exercise of a lab is
graded. `make labs` grades all of them, their starts and all variants.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fwlab.host.project import is_measured, lab_ids
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system

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
    """Chooses the reference of the lab's first exercise."""
    return f"reference/{measured_lab(name).exercises[0].id}"


def mistake(name: str) -> str:
    """Chooses the quick cases, and the mistake of the lab's first exercise."""
    chosen, *left_out = (exercise.id for exercise in measured_lab(name).exercises)
    others = [*left_out, f"start/{chosen}", f"reference/{chosen}", "right-", "wrong-"]
    return " and ".join(f"not {word}" for word in others)


def verdicts(checkout: Checkout, chosen: Callable[[str], str]) -> dict[str, Verdicts]:
    return own_verdicts(checkout, {name: chosen(name) for name in LABS}, "--machines", LAB)


@pytest.fixture(scope="module")
def references(lab: Checkout) -> dict[str, Verdicts]:
    return verdicts(lab, reference)


@pytest.mark.parametrize("name", LABS)
def test_a_reference_passes(references: dict[str, Verdicts], name: str) -> None:
    assert references[name] == {("reference", measured_lab(name).exercises[0].id): "pass"}


@pytest.fixture(scope="module")
def mistakes(lab: Checkout) -> dict[str, Verdicts]:
    return verdicts(lab, mistake)


@pytest.mark.thorough
@pytest.mark.parametrize("name", LABS)
def test_quick_cases_hold_and_a_mistake_fails(mistakes: dict[str, Verdicts], name: str) -> None:
    assert mistakes[name] == {("mistake", measured_lab(name).exercises[0].id): "fail"}
