# SPDX-License-Identifier: GPL-2.0-or-later
"""lab11 on its own machines, whose DUT has several NICs on each link: quick cases hold, an exercise grades itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from fwlab.measure.labs import load_lab

from .conftest import PROJECT, ROOT, Checkout, document
from .self_grading import one_exercise, own_verdicts

pytestmark = pytest.mark.live

LAB = "lab11-sriov"
DECLARED = load_lab(PROJECT, LAB)


class OwnCheckout(Checkout):
    """A checkout with the machines of lab11."""

    name = LAB


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    if not (ROOT / ".fwlab" / "images.json").exists():
        pytest.fail("boxes are not built: run `make boxes`")
    checkout = OwnCheckout(tmp_path_factory.mktemp("lab11") / "checkout")
    checkout.fill()
    shutil.copytree(ROOT / "labs", checkout.top / "labs")
    try:
        checkout.vagrant("up", LAB)
        yield checkout
    finally:
        checkout.call("vagrant", "destroy", "-f", LAB)
        assert checkout.left_behind() == []


def test_quick_cases_are_measured_over_both_nics(machines: Checkout) -> None:
    done = machines.fwlab("run", LAB, "--quick", "--json")
    by_case = {case["id"]: case["median"] for case in document(done)["cases"]}
    assert "vmxnet3" in document(done)["dut"]["nics"]
    # The usual boxes have no driver for e1000e, and the run says so.
    assert set(by_case) == {case.id for case in DECLARED.cases.values() if case.quick and case.nic != "e1000e"}
    assert "forward-e1000e" in done.stderr
    assert 1.1 < by_case["forward-vmxnet3"] / by_case["forward"] < 1.25
    assert 1.05 < by_case["raw-drop-vmxnet3"] / by_case["raw-drop"] < 1.2


def test_an_exercise_grades_itself(machines: Checkout) -> None:
    selection, wanted = one_exercise(DECLARED)
    cases = [f"not {case.id}" for case in DECLARED.cases.values() if case.quick]  # measured above
    assert own_verdicts(machines, LAB, " and ".join([selection, *cases])) == wanted
