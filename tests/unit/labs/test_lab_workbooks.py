# SPDX-License-Identifier: GPL-2.0-or-later
"""Every question of the labs' workbooks can be answered from the published run, as a report shows it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import published_runs
from fwlab.model.results import Run
from fwlab.student import workbook
from fwlab.student.hints import hints_of
from fwlab.student.workbook import WITHIN, derived, needed_cases, workbook_of
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
