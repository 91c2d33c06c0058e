# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival as a table and a drawing, and which cases are measured for it."""

import io

import pytest
from pydantic import ValidationError
from rich.console import Console

from fwlab.measure.plan import base_cases, chosen_cases
from fwlab.metrics.registry import METRICS
from fwlab.model.check import Check
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.model.trial import Delivery
from fwlab.report.model import build_model
from fwlab.report.plot import plots
from fwlab.report.renderers.html import page
from fwlab.report.renderers.markdown import figures_table
from fwlab.report.renderers.terminal import show
from tests.fakes.factories import TEXTS, a_lab, a_run, measured


def sweep(name: str, title: str, values: list[float]) -> dict:
    return {
        "id": name,
        "title": title,
        "ruleset": "rules",
        "parameter": "attack",
        "values": values,
        "varies": "traffic",
        "traffic": "flood",
        "metric": "survival",
        "victim_class": "attacker",
    }


@pytest.fixture
def lab() -> Lab:
    raw = a_lab().model_dump(by_alias=True, mode="json", exclude_defaults=True)
    raw["sweeps"] += [sweep("late", "Late", [0, 0.5, 2]), sweep("early", "Early", [0, 0.5, 2])]
    return Lab.model_validate(raw)


def survived(lab: Lab, case_id: str, arrived: int, **fields: object) -> Measured:
    """The DUT took the whole load, and `arrived` of 10 000 packets of the class arrived."""
    counts = {"offered": {"attacker": 10_000}, "arrived": {"attacker": arrived}}
    play = Delivery(intended_load=1, sent=20_000, taken=20_000, **counts)
    return measured(lab, case_id, 1000, survivals=[play], victim_class="attacker", **fields)


@pytest.fixture
def run(lab: Lab) -> Run:
    return a_run(
        [
            measured(lab, "raw-drop", 300_000, 300_000),
            survived(lab, "late-0", 9_997),
            survived(lab, "late-0-5", 9_990),
            survived(lab, "late-2", 120),
            survived(lab, "early-0", 10_000),
            survived(lab, "early-2", 4_560, problems=["the load was wrong"]),
        ]
    )


def test_a_row_for_each_sweep_and_a_column_for_each_load(lab: Lab, run: Run) -> None:
    (table,) = build_model(lab, run).survival
    assert table.values == ("0", "0.5", "2")
    assert table.rows == (("Late", ("100 %", "99.9 %", "1.20 %")), ("Early", ("100 %", "–", "45.6 % (in doubt)")))
    assert (table.victim_class, table.class_load) == ("attacker", 0.1)


def test_sweeps_over_other_loads_have_a_table_of_their_own(lab: Lab, run: Run) -> None:
    other = changed_sweep(lab, values=[0, 2])
    assert [table.values for table in build_model(other, run).survival] == [("0", "0.5", "2"), ("0", "2")]
    assert build_model(lab, a_run([measured(lab, "raw-drop", 300_000)])).survival == ()


def test_terminal_guide_and_page_show_it(lab: Lab, run: Run) -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    show(build_model(lab, run), console)
    for text in (console.export_text(), figures_table(build_model(lab, run)), page(build_model(lab, run))):
        assert "1.20 %" in text
        assert "45.6 % (in doubt)" in text
        assert "as a multiple of the capacity of" in text


def test_the_curve_starts_without_attack(lab: Lab, run: Run) -> None:
    (svg,) = plots(build_model(lab, run), METRICS["survival"])
    assert "attack, times the capacity of raw-drop" in svg
    assert "survival, %" in svg


def test_the_baseline_is_measured_first(lab: Lab) -> None:
    """Every load is a multiple of its capacity."""
    assert [case.id for case in chosen_cases(lab, ["late-2"])] == ["raw-drop", "late-2"]
    assert [case.id for case in chosen_cases(lab, ["late-2", "raw-drop"])] == ["raw-drop", "late-2"]
    assert [case.id for case in chosen_cases(lab, ["set-1"])] == ["set-1"]


def test_an_exercise_about_survival_needs_the_baseline(lab: Lab) -> None:
    exercise = lab.exercises[0]
    assert base_cases(lab, [exercise]) == []
    check = Check.model_validate({"metric": "survival", "class": "others", "between": [0.9, 1], **TEXTS})
    about_survival = exercise.model_copy(update={"checks": [check], "total_load": 2.1})
    assert [case.id for case in base_cases(lab, [about_survival])] == ["raw-drop"]


def changed_sweep(lab: Lab, **changed: object) -> Lab:
    """The lab with a change of its last sweep."""
    raw = lab.model_dump(by_alias=True, mode="json", exclude_defaults=True)
    raw["sweeps"][-1] |= changed
    return Lab.model_validate(raw)


OVER_LOAD = {"parameter": "load", "values": [0.5, 2], "varies": "load"}
BY_LENGTH = {"parameter": "rules", "values": [0, 1000], "attack_load": 0.5, "class_load": 1, "varies": "ruleset"}


@pytest.mark.parametrize(
    ("changed", "offered", "caption", "label"),
    [
        (OVER_LOAD, [0.5, 2.0], "by the load of all traffic, as a multiple of the capacity of raw-drop", ""),
        (BY_LENGTH, [1.5, 1.5], "under an attack of 0.5 times the capacity of raw-drop, by rules", "number of rules"),
    ],
    ids=["load of all traffic", "parameter of the ruleset"],
)
def test_a_sweep_may_vary_something_else_than_the_attack(
    lab: Lab, changed: dict[str, object], offered: list[float], caption: str, label: str
) -> None:
    found = changed_sweep(lab, **changed)
    cases = found.sweeps[-1].cases()
    assert [case.total_load for case in cases] == offered
    run = a_run(
        [measured(lab, "raw-drop", 300_000), survived(found, cases[0].id, 9_000), survived(found, cases[1].id, 900)]
    )
    (table,) = build_model(found, run).survival
    assert table.caption("raw-drop").endswith(caption)
    assert table.rows == (("Early", ("90.0 %", "9.00 %")),)
    assert label in plots(build_model(found, run), METRICS["survival"])[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (OVER_LOAD | {"values": [0, 2]}, "sweep early: "),
        (OVER_LOAD | {"attack_load": 0.5}, "sweep early: "),
        (OVER_LOAD | {"metric": "capacity", "victim_class": None}, "sweep early: "),
        (BY_LENGTH | {"victim_class": None}, "attack_load is for survival over a parameter of the ruleset"),
        (BY_LENGTH | {"varies": "traffic"}, "attack_load is for survival over a parameter of the ruleset"),
    ],
)
def test_a_load_of_a_sweep_that_has_none_is_refused(lab: Lab, changed: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        changed_sweep(lab, **changed)
