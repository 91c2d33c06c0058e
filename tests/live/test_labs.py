# SPDX-License-Identifier: GPL-2.0-or-later
"""Every measured lab on the real machines: quick cases hold, a reference passes and a mistake fails.

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
from .self_grading import one_exercise, own_verdicts

pytestmark = pytest.mark.live

#: A lab whose DUT has more NICs needs machines of its own (test_lab11.py).
LABS = [name for name in lab_ids(PROJECT) if is_measured(PROJECT, name) and not load_lab(PROJECT, name).needs.nics]
SYSTEM = "linux"  # of the machines that serve all labs


def measured_lab(name: str) -> Lab:
    """What these machines measure of the lab."""
    return on_system(load_lab(PROJECT, name), SYSTEM)


@pytest.mark.parametrize("name", LABS)
def test_a_lab_grades_itself(lab: Checkout, name: str) -> None:
    measured = measured_lab(name)
    selection, wanted = one_exercise(measured)
    file = f"marks-{SYSTEM}.csv" if several(measured) else "marks.csv"
    assert own_verdicts(lab, name, selection, "--machines", LAB, file=file) == wanted
