# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a lab, and further exercises: what lab.yml may say, what is listed, run and marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fwlab.measure.plan import cases_of_part, chosen_exercises
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Measured
from fwlab.model.systems import on_system, with_systems
from fwlab.report.report_rows import exercise_rows
from tests import ROOT
from tests.checkout import lab_named
from tests.fakes import two_systems
from tests.fakes.factories import a_lab, a_run, small_checkout
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading
from tests.fakes.hand_ins import RULES
from tests.fakes.student_checkout import Door, door
from tools.figures import figures, figures_of

LISTS = {"id": "lists", "title": "What does a list cost?", "minutes": 5, "cases": ["raw-drop", "rules", "load-each"]}
SETS = {"id": "sets", "title": "What does a set cost?", "minutes": 5, "cases": ["set-1", "set"]}


def declared(*parts: dict[str, Any]) -> Lab:
    return Lab.model_validate({**a_lab().model_dump(by_alias=True, mode="json", exclude_defaults=True), "parts": parts})


def in_parts() -> Lab:
    return declared(LISTS, {**SETS, "exercises": ["ex1-block"]})


def test_a_part_names_cases_by_their_sweeps() -> None:
    lab = in_parts()
    assert lab.cases_named(cases_of_part(lab, "sets")) == ["set-1", "set-1000"]
    assert cases_of_part(lab, None) == []


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([LISTS, {**SETS, "exercises": []}], "exercise ex1-block belongs to 0 parts, not to one"),
        (
            [{**LISTS, "exercises": ["ex1-block"]}, {**SETS, "exercises": ["ex1-block"]}],
            "exercise ex1-block belongs to 2 parts, not to one",
        ),
        ([LISTS, {**SETS, "exercises": ["ex1-block"], "cases": ["set-1"]}], "case set-1000 belongs to no part"),
        ([LISTS, {**SETS, "cases": ["set", "no-such"]}], "part sets: unknown case no-such"),
        ([LISTS, {**SETS, "exercises": ["ex9-none"]}], "part sets: unknown exercise ex9-none"),
        ([LISTS, {**SETS, "id": "lists"}], "parts: an id is used twice"),
        (
            [LISTS, {**SETS, "exercises": ["ex1-block"], "minutes": 6}],
            "the parts take 11 minutes, the lab says 10",
        ),
    ],
)
def test_parts_that_do_not_make_up_the_lab(parts: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        declared(*parts)


def test_an_unknown_part() -> None:
    with pytest.raises(BadInput, match="lab99-made-up has no part none; it has: lists, sets"):
        cases_of_part(in_parts(), "none")
    with pytest.raises(BadInput, match="lab99-made-up has no part none; it is not cut into parts"):
        cases_of_part(a_lab(), "none")


def test_one_system_measures_its_share_of_a_part() -> None:
    parts = [
        {"id": "all", "title": "All", "minutes": 10, "exercises": ["ex1-block", "ex2-pf"]}
        | {"cases": ["raw-drop", "set-1", "rules", "set", "load-each", "pf-off", "pf"]},
    ]
    whole = with_systems(Lab.model_validate(two_systems.raw(parts=parts)), two_systems.SYSTEMS.__getitem__)
    (part,) = on_system(whole, "freebsd").parts
    assert (part.cases, part.exercises) == (["pf-off", "pf"], ["ex2-pf"])


def test_a_further_exercise_is_checked_by_name_and_the_report_says_further() -> None:
    core = a_lab()
    lab = core.model_copy(update={"exercises": [core.exercises[0].model_copy(update={"further": True})]})
    assert [e.id for e in chosen_exercises(lab, "ex1-block")] == ["ex1-block"]
    run = a_run([], [Measured(id="ex1-block", title="Block one host", ruleset="x", ruleset_hash="0" * 64)])
    titles = [[row.title for row in exercise_rows(one, run, {})] for one in (lab, core)]
    assert titles == [["Block one host (further)"], ["Block one host"]]


PARTS = """parts:
  - { id: cost, title: The cost, minutes: 20, cases: [raw-drop, rules], exercises: [ex1-block] }
  - { id: again, title: The same, minutes: 10, cases: [rules] }
"""


@pytest.fixture
def fwlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    """`fwlab` in a checkout with a lab in two parts, whose exercise is a further one."""
    small_checkout(tmp_path, LAB)
    path = tmp_path / "labs" / LAB / "lab.yml"
    path.write_text(PARTS + path.read_text().replace("title: Block one host\n", "title: Block\n    further: true\n"))
    monkeypatch.chdir(tmp_path)
    return door(monkeypatch, capsys)


def test_the_list_has_a_heading_for_each_part_and_marks_further_exercises(fwlab: Door) -> None:
    _, text, _ = fwlab("list", LAB)
    assert [line.split()[:2] for line in text.splitlines()][1:] == [
        ["part", "cost"],
        *(["raw-drop", "Raw"], ["rules-16", "Rules"], ["rules-64", "Rules"]),
        ["exercises:"],
        ["ex1-block", "Block"],
        ["part", "again"],
        *(["rules-16", "Rules"], ["rules-64", "Rules"]),
    ]
    assert "Block (further)\n" in text
    document = json.loads(fwlab("list", LAB, "--json")[1])
    assert document["parts"][1]["cases"] == ["rules-16", "rules-64"]
    assert [exercise["further"] for exercise in document["exercises"]] == [True]


def test_run_measures_the_cases_of_a_part(fwlab: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def stop(_context: object, names: list[str], *_: object, **__: object) -> None:
        asked.append(names)
        raise BadInput("stopped here", "nothing")

    monkeypatch.setattr("fwlab.cli.main.case_specs", stop)
    assert fwlab("run", LAB, "--part", "cost")[0] == 2
    assert asked == [["raw-drop", "rules"]]


@pytest.fixture
def grading(tmp_path: Path) -> FakeGrading:
    """A class and a lab with one exercise of the core and one further exercise."""
    found = FakeGrading(tmp_path)
    path = found.top / "labs" / LAB / "lab.yml"
    head, exercises = path.read_text().split("exercises:\n")
    first, rest = exercises.split("expectations:\n")
    second = first.replace(EXERCISE, "ex2-more").replace("    traffic:", "    further: true\n    traffic:")
    path.write_text(f"{head}exercises:\n{first}{second}expectations:\n{rest}")
    found.hand_in_all(ann="fine", bob="fine")
    more = found.folder / "ann" / "ex2-more"
    more.mkdir()
    (more / "rules.iptables").write_text(f"# on the DUT: leaks\n{RULES}")
    return found


def test_a_class_is_graded_without_further_exercises_unless_they_are_asked_for(grading: FakeGrading) -> None:
    core = [("ann", EXERCISE, "core", "pass"), ("bob", EXERCISE, "core", "pass")]
    for words, code, marks in (
        ([], 0, core),
        (["--further"], 1, [core[0], ("ann", "ex2-more", "further", "fail"), core[1]]),
    ):
        assert grading.run(*words).returncode == code
        found = [(row["who"], row["exercise"], row["mark"], row["verdict"]) for row in grading.marks()]
        assert found == marks


LABS = [lab_named(path.parent.name) for path in sorted((ROOT / "labs").glob("lab*/lab.yml"))]


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.id)
def test_the_guide_says_what_is_further_and_asks_the_question_of_each_part(lab: Lab) -> None:
    headings = [line for line in (lab.folder / "README.md").read_text().splitlines() if line.startswith("#")]
    for exercise in lab.exercises:
        (found,) = [line for line in headings if line.startswith(f"### {exercise.id}:")]
        assert found.endswith(" (further)") == exercise.further, found
    for part in lab.parts:
        assert any(line.endswith(f": {part.title}") for line in headings), part.title


def test_a_page_shows_the_figures_of_some_cases() -> None:
    page = str(ROOT / "labs" / "lab01-forwarding" / "README.md")
    cost, all_of_it = (
        [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("| ")]
        for shown in (figures_of(page, "forward"), figures(page))
    )
    assert "Forwarding, nothing loaded" in cost
    assert "Forwarding without GRO" not in cost
    assert set(cost) < set(all_of_it)
