# SPDX-License-Identifier: GPL-2.0-or-later
"""Every question of the labs' workbooks and pages can be answered from the published run, as a report shows it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import exercise_id
from fwlab.measure.saved_runs import published_runs
from fwlab.model.results import Run
from fwlab.student import workbook
from fwlab.student.hints import EXPLAINED, explanation, hints_of
from fwlab.student.workbook import WITHIN, derived, needed_cases, predictions_of, workbook_of
from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT, lab_named

WITH_WORKBOOK = [name for name in LAB_IDS if (ROOT / "labs" / name / "answers.yml").exists()]


def published(name: str) -> tuple[object, list[Run]]:
    lab = lab_named(name)
    return lab, published_runs(PROJECT, lab)


def test_the_workbook_and_hints_of_the_template_load_in_a_copy(tmp_path: Path) -> None:
    shutil.copy(ROOT / "topology.yml", tmp_path)
    shutil.copytree(ROOT / "labs" / "_template", tmp_path / "labs" / "lab99-example")
    project = Project(tmp_path)
    lab = load_lab(project, "lab99-example")
    assert [asked.id for asked in workbook_of(project, lab)] == ["packet", "rule"]
    assert [asked.id for asked in predictions_of(project, lab)] == ["half"]
    assert explanation(lab, "half").startswith("Sixteen rules")
    assert list(hints_of(project, lab)) == [exercise.id for exercise in lab.exercises]


@pytest.mark.parametrize("name", WITH_WORKBOOK)
def test_every_question_can_be_answered_from_what_a_report_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report shows four digits. An answer that was computed from them must be right with room to spare."""
    lab, runs = published(name)
    exact = {asked.id: derived(lab, asked, runs) for asked in workbook_of(PROJECT, lab)}
    original = workbook._median
    monkeypatch.setattr(
        workbook, "_median", lambda *words: None if (value := original(*words)) is None else float(f"{value:.4g}")
    )
    for asked in workbook_of(PROJECT, lab):
        assert derived(lab, asked, runs) == pytest.approx(exact[asked.id], rel=WITHIN / 2), asked.id


@pytest.mark.parametrize("name", WITH_WORKBOOK)
def test_no_question_names_the_cases_that_it_is_derived_from(name: str) -> None:
    lab = lab_named(name)
    for asked in workbook_of(PROJECT, lab):
        listed = {word for words in re.findall(r"\(([^)]*)\)", asked.question) for word in words.split(", ")}
        assert not listed & {case.id for case in needed_cases(lab.whole, asked)}, asked.id


@pytest.mark.parametrize("name", WITH_WORKBOOK)
def test_no_answer_is_another_one_by_chance(name: str) -> None:
    """Zero would be guessed, and a cost that is right for two questions too."""
    lab, runs = published(name)
    values = [derived(lab, asked, runs) for asked in workbook_of(PROJECT, lab)]
    assert all(abs(value) > 1e-3 for value in values)
    assert len({f"{value:.3g}" for value in values}) == len(values)


@pytest.mark.parametrize("name", WITH_WORKBOOK)
def test_every_question_of_a_page_follows_from_the_published_run_and_is_explained(name: str) -> None:
    lab, runs = published(name)
    asked = predictions_of(PROJECT, lab)
    assert asked
    assert all(abs(derived(lab, one, runs)) < 1e7 for one in asked)
    assert all(len(explanation(lab, one.id)) > 50 for one in asked)
    sections = re.findall(r"^## (.+)$", (lab.folder / EXPLAINED).read_text(), re.MULTILINE)
    assert sections == [one.id for one in asked], "a section for each, and no other"


@pytest.mark.parametrize("name", WITH_WORKBOOK)
def test_a_page_asks_each_question_once(name: str) -> None:
    lab = lab_named(name)
    page = (lab.folder / "README.md").read_text()
    listed = re.findall(r"^- `([a-z0-9-]+)`: .*\?", page.replace("\n  ", " "), re.MULTILINE)
    assert listed == [one.id for one in predictions_of(PROJECT, lab)]


@pytest.mark.parametrize("name", WITH_WORKBOOK)
def test_a_question_is_no_exercise(name: str) -> None:
    lab = lab_named(name)
    known = [one.id for one in (*predictions_of(PROJECT, lab), *workbook_of(PROJECT, lab))]
    assert not [one for one in known if lab.whole.exercise(exercise_id(lab, one))]


@pytest.mark.parametrize("name", WITH_WORKBOOK)
def test_an_explanation_can_be_read_in_a_terminal(name: str) -> None:
    """Without tables, blocks and targets of links."""
    lab = lab_named(name)
    for one in predictions_of(PROJECT, lab):
        assert not re.search(r"<|^\||```|\]\(", explanation(lab, one.id), re.MULTILINE), one.id
