# SPDX-License-Identifier: GPL-2.0-or-later
"""Every measured lab on the real machines: quick cases hold, references pass, mistakes and starts fail.

One set of machines serves all labs. To limit the time, only one exercise of a lab is graded, and one wrong variant.
`make labs` grades all of them.
"""

from __future__ import annotations

import pytest

from fwlab.grading.variant_files import load_variants
from fwlab.host.project import is_measured, lab_ids
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system, several

from .conftest import LAB, PROJECT, Checkout
from .self_grading import own_verdicts

pytestmark = pytest.mark.live

#: A lab whose DUT has more NICs needs machines of its own (test_lab11.py).
LABS = [name for name in lab_ids(PROJECT) if is_measured(PROJECT, name) and not load_lab(PROJECT, name).needs.nics]
SYSTEM = "linux"  # of the machines that serve all labs


def measured_lab(name: str) -> Lab:
    """What these machines measure of the lab."""
    return on_system(load_lab(PROJECT, name), SYSTEM)


def wrong_variant(name: str) -> tuple[str, str] | None:
    """(who, exercise) of one variant that must fail; None if the lab has none."""
    lab = measured_lab(name)
    for exercise in lab.exercises:
        for variant in load_variants(PROJECT, lab, exercise).wrong:
            return "wrong-" + variant, exercise.id
    return None


@pytest.mark.parametrize("name", LABS)
def test_a_lab_grades_itself(lab: Checkout, name: str) -> None:
    measured = measured_lab(name)
    chosen, *left_out = (exercise.id for exercise in measured.exercises)
    sampled = wrong_variant(name)
    own = " and ".join(f"not {word}" for word in [*left_out, "right-", "wrong-"])
    other = f" or {'/'.join(sampled)}" if sampled else ""
    file = f"marks-{SYSTEM}.csv" if several(measured) else "marks.csv"
    words = ("--machines", LAB, "--part", "all")
    wanted = {("start", chosen): "fail", ("reference", chosen): "pass", ("mistake", chosen): "fail"}
    wanted |= {sampled: "fail"} if sampled else {}
    assert own_verdicts(lab, name, f"({own}){other}", *words, file=file) == wanted
