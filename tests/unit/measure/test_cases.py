# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cases are measured: those that were named, on a DUT with CPUs enough."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.measure.plan import case_spec, chosen_cases
from fwlab.measure.session import Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.errors import BadInput, CannotMeasure
from tests.checkout import lab_named
from tests.fakes.factories import a_lab, a_run


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raw-rule-10", "close to it: raw-rules-10, raw-rules-100"),
        ("xdb", "close to it: xdp"),
        ("qqqq", "it has 1"),
    ],
)
def test_of_many_cases_only_those_with_close_names_are_listed(name: str, says: str) -> None:
    with pytest.raises(BadInput, match=f"^lab05-drop-early has no case {name}; {says}") as refused:
        chosen_cases(lab_named("lab05-drop-early"), [name])
    assert len(refused.value.message) < 200


FOUR = MeasurementSpec("four", "Four", "x", [], ["capacity"], traffic="flood", cpus=4)
ONE = MeasurementSpec("one", "One", "x", [], ["capacity"], traffic="flood")
LACKS = "it needs a DUT with 4 CPUs, this one has {}"


@pytest.mark.parametrize("cpus", [1, 3, 4])
def test_a_case_that_needs_more_cpus_is_left_out_and_refused_if_it_was_asked_for(cpus: int) -> None:
    run, told = a_run([]), list[object]()
    run.dut = run.dut.model_copy(update={"cpus": cpus})
    session = Session(SimpleNamespace(machines_lab=a_lab()), None, None, run, Path(), told.append)
    if cpus == 4:
        assert session.measurable([FOUR, ONE]) == [FOUR, ONE]
        session.require([], [ONE, FOUR])
        assert told == []
        return
    assert session.measurable([FOUR, ONE]) == [ONE]
    assert [(event.item, event.why) for event in told] == [("four", LACKS.format(cpus))]
    with pytest.raises(CannotMeasure, match=f"four: {LACKS.format(cpus)}") as refused:
        session.require([], [ONE, FOUR])
    assert "export FWLAB_DUT_CPUS=4" in refused.value.hint


def test_a_case_says_how_many_cpus_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.measure.plan.lab_ruleset", lambda *_: [])
    lab = a_lab()
    case = lab.cases["rules-16"].model_copy(update={"cpus": 4})
    assert case_spec(SimpleNamespace(lab=lab, topology=None), case, None).cpus == 4
