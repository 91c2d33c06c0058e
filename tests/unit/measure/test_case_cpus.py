# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases that need more CPUs than the DUT has are left out with the reason, or refused if they were asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.measure.plan import case_spec
from fwlab.measure.session import Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.errors import CannotMeasure
from tests.fakes.factories import a_lab, a_run


def a_session(cpus: int, told: list[object]) -> Session:
    run = a_run([])
    run.dut = run.dut.model_copy(update={"cpus": cpus})
    return Session(SimpleNamespace(machines_lab=a_lab()), None, None, run, Path(), told.append)


FOUR = MeasurementSpec("four", "Four", "x", [], ["capacity"], traffic="flood", cpus=4)
ONE = MeasurementSpec("one", "One", "x", [], ["capacity"], traffic="flood")


def test_a_case_that_needs_more_cpus_is_left_out_with_the_reason() -> None:
    told: list[object] = []
    assert a_session(1, told).measurable([FOUR, ONE]) == [ONE]
    [event] = told
    assert (event.item, event.why) == ("four", "it needs a DUT with 4 CPUs, this one has 1")
    told.clear()
    assert a_session(4, told).measurable([FOUR, ONE]) == [FOUR, ONE]
    assert told == []


def test_such_a_case_is_refused_if_it_was_asked_for() -> None:
    with pytest.raises(CannotMeasure, match="four: it needs a DUT with 4 CPUs, this one has 2") as refused:
        a_session(2, []).require([], [ONE, FOUR])
    assert "export FWLAB_DUT_CPUS=4" in refused.value.hint
    a_session(4, []).require([], [ONE, FOUR])


def test_a_case_says_how_many_cpus_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.measure.plan.lab_ruleset", lambda *_: [])
    lab = a_lab()
    case = lab.cases["rules-16"].model_copy(update={"cpus": 4})
    assert case_spec(SimpleNamespace(lab=lab, topology=None), case, None).cpus == 4
