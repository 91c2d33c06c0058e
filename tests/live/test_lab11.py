# SPDX-License-Identifier: GPL-2.0-or-later
"""lab11 on its own machines, whose DUT has several NICs on each link: quick cases hold, exercises grade themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fwlab.measure.labs import load_lab

from .conftest import PROJECT, Checkout, document, new_checkout
from .self_grading import own_verdicts

pytestmark = pytest.mark.live

LAB = "lab11-sriov"
DECLARED = load_lab(PROJECT, LAB)
#: The exercise that is measured soonest. It is on the other NIC.
SHORT = "ex2-earliest"


class OwnCheckout(Checkout):
    """A checkout with the machines of lab11."""

    name = LAB


@pytest.fixture(scope="module")
def machines() -> Iterator[Checkout]:
    with new_checkout(OwnCheckout) as checkout:
        checkout.vagrant("up", LAB)
        yield checkout


@pytest.mark.thorough
def test_quick_cases_are_measured_over_both_nics(machines: Checkout) -> None:
    done = machines.fwlab("run", LAB, "--quick", "--json")
    by_case = {case["id"]: case["median"] for case in document(done)["cases"]}
    assert "vmxnet3" in document(done)["dut"]["nics"]
    # The usual boxes have no driver for e1000e, and the run says so.
    assert set(by_case) == {case.id for case in DECLARED.cases.values() if case.quick and case.nic != "e1000e"}
    assert "forward-e1000e" in done.stderr
    assert 1.1 < by_case["forward-vmxnet3"] / by_case["forward"] < 1.25
    assert 1.05 < by_case["raw-drop-vmxnet3"] / by_case["raw-drop"] < 1.2


def test_a_reference_passes(machines: Checkout) -> None:
    assert own_verdicts(machines, {LAB: f"reference/{SHORT}"}) == {LAB: {("reference", SHORT): "pass"}}


@pytest.mark.thorough
def test_its_exercises_grade_themselves(machines: Checkout) -> None:
    wanted = {"start": "fail", "reference": "pass", "mistake": "fail"}
    expected = {(who, exercise.id): wanted[who] for who in wanted for exercise in DECLARED.exercises}
    assert own_verdicts(machines, {LAB: "ex"}) == {LAB: expected}
