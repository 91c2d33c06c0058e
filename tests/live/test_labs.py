# SPDX-License-Identifier: GPL-2.0-or-later
"""Every measured lab on the real machines: a reference passes, quick cases hold and a mistake fails.

One set of machines serves all labs. To limit the time, only one exercise of a lab is graded. `make labs` grades all of
them, their starts and all variants.
"""

from __future__ import annotations

import pytest

from fwlab.host.project import is_measured, lab_ids
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system, several

from .conftest import LAB, PROJECT, Checkout
from .self_grading import Verdicts, own_verdicts

pytestmark = pytest.mark.live

#: A lab whose DUT has more NICs needs machines of its own (test_lab11.py).
LABS = [name for name in lab_ids(PROJECT) if is_measured(PROJECT, name) and not load_lab(PROJECT, name).needs.nics]
SYSTEM = "linux"  # of the machines that serve all labs


def measured_lab(name: str) -> Lab:
    """What these machines measure of the lab."""
    return on_system(load_lab(PROJECT, name), SYSTEM)


def verdicts(checkout: Checkout, name: str, selection: str) -> Verdicts:
    measured = measured_lab(name)
    file = f"marks-{SYSTEM}.csv" if several(measured) else "marks.csv"
    return own_verdicts(checkout, name, selection, "--machines", LAB, file=file)


@pytest.mark.parametrize("name", LABS)
def test_a_reference_passes(lab: Checkout, name: str) -> None:
    exercise = measured_lab(name).exercises[0].id
    assert verdicts(lab, name, f"reference/{exercise}") == {("reference", exercise): "pass"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LABS)
def test_quick_cases_hold_and_a_mistake_fails(lab: Checkout, name: str) -> None:
    chosen, *left_out = (exercise.id for exercise in measured_lab(name).exercises)
    others = [*left_out, f"start/{chosen}", f"reference/{chosen}", "right-", "wrong-"]
    selection = " and ".join(f"not {word}" for word in others)
    assert verdicts(lab, name, selection) == {("mistake", chosen): "fail"}
