# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases that are added to a lab are measured alone, kept beside the newest whole run, and shown with its figures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import added_files, load_run, published_files, published_runs
from fwlab.model.errors import BadInput
from fwlab.model.results import Run
from tests import ROOT
from tools.publish import publish
from tools.ranges import write_ranges

LAB = "lab03-ipset"
WHOLE = ROOT / "results" / LAB / "2026-11-20-full.json"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout with the lab, and its oldest whole run alone."""
    shutil.copy(ROOT / "topology.yml", tmp_path)
    shutil.copytree(ROOT / "labs" / LAB, tmp_path / "labs" / LAB, ignore=shutil.ignore_patterns("README.md"))
    (tmp_path / "README.md").write_text("")
    (tmp_path / "results" / LAB).mkdir(parents=True)
    shutil.copy(WHOLE, tmp_path / "results" / LAB)
    return Project(tmp_path)


def later(*cases: str, **changed: object) -> Run:
    """A run of these cases, a day after the whole one."""
    run = load_run(WHOLE, LAB)
    kept = [case for case in run.cases if case.id in cases]
    return run.model_copy(update={"started": "2026-11-21T10:00:00+00:00", "cases": kept, **changed})


def test_a_run_of_some_cases_is_kept_beside_the_whole_one(project: Project) -> None:
    lab = load_lab(project, LAB)
    (path, *_) = publish(project, lab, later("raw-drop"))
    assert path.name == "2026-11-21-added.json"
    assert [one.name for one in published_files(project, lab)] == [WHOLE.name]
    assert added_files(published_files(project, lab)[0]) == [path]


def test_its_figures_replace_older_ones(project: Project) -> None:
    lab = load_lab(project, LAB)
    added = later("raw-drop")
    slow = added.cases[0].model_copy(update={"wall_s": 99.0})
    publish(project, lab, added.model_copy(update={"cases": [slow]}))
    (run,) = published_runs(project, lab)
    assert run.case("raw-drop").wall_s == 99
    known = {case.id for case in load_run(WHOLE, LAB).cases}
    assert [case.id for case in run.cases] == [case for case in lab.cases if case in known]


def test_a_second_added_run_of_a_day_replaces_no_other(project: Project) -> None:
    lab = load_lab(project, LAB)
    (first, *_) = publish(project, lab, later("raw-drop"))
    second = later("raw-drop", "ipset-1", started="2026-11-21T11:00:00+00:00")
    slow = [case.model_copy(update={"wall_s": 99.0}) for case in second.cases]
    (path, *_) = publish(project, lab, second.model_copy(update={"cases": slow}))
    (again, *_) = publish(project, lab, later("raw-drop"))
    assert (again, path.name) == (first, "2026-11-21-2-added.json")
    assert added_files(published_files(project, lab)[0]) == [first, path]
    assert published_runs(project, lab)[0].case("raw-drop").wall_s == 99


def test_ranges_name_the_run_of_each_case(project: Project) -> None:
    lab = load_lab(project, LAB)
    added = later("raw-drop")
    publish(project, lab, added)
    (path,) = write_ranges(project, lab, added)
    assert f"results/{LAB}/2026-11-21-added.json" in path.read_text()


def test_an_older_run_of_some_cases_is_not_shown(project: Project) -> None:
    lab = load_lab(project, LAB)
    early = later("raw-drop", started="2026-11-19T10:00:00+00:00")
    (path, *_) = publish(project, lab, early)
    assert path.name == "2026-11-19-added.json"
    assert added_files(published_files(project, lab)[0]) == []


def test_another_kernel_is_refused(project: Project) -> None:
    lab, added = load_lab(project, LAB), later("raw-drop")
    other = added.model_copy(update={"dut": added.dut.model_copy(update={"kernel": "7.0.0"})})
    publish(project, lab, other)
    with pytest.raises(BadInput, match=r"2026-11-21-added\.json: not from the testbed and kernel of 2026-11-20-full"):
        published_runs(project, lab)
