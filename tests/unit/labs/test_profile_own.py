# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab profile` takes a student's own ruleset, too, and `fwlab solution` shows what the authors measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.cli import perf_profile
from fwlab.model.errors import EXIT_USAGE
from fwlab.student.hints import published_figure
from tests import ROOT
from tests.checkout import lab_named
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, LAB, Door, Measuring


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    checkouts.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    session = Measuring()
    monkeypatch.setattr(perf_profile, "open_session", session.open)
    return checkouts.door(monkeypatch, capsys)


@pytest.mark.parametrize("name", [EX1, "ex1"])
def test_a_ruleset_of_ones_own_is_profiled(door: Door, tmp_path: Path, name: str) -> None:
    _, said, _ = door("profile", LAB, name, "--testbed", "virtual")
    assert said.startswith(f"{EX1}: ")
    assert "4000 instructions per packet" in said
    run = tmp_path / "reports" / LAB / "profile" / "run.json"
    assert f'"ruleset": "labs/{LAB}/work/{EX1}"' in run.read_text()


@pytest.mark.parametrize(
    ("name", "says"), [("no-such", "no case or exercise no-such"), ("rules", f"next: fwlab profile {LAB} rules-16")]
)
def test_an_unknown_name_is_named(door: Door, name: str, says: str) -> None:
    code, _, complaint = door("profile", LAB, name, "--testbed", "virtual")
    assert code == EXIT_USAGE
    assert says in complaint


def test_the_authors_figure_of_a_reference(tmp_path: Path) -> None:
    lab = lab_named("lab03-ipset")
    exercise = lab.exercise("ex3-ipset")
    said = published_figure(Project(ROOT), lab, exercise)
    assert "kpps (results/lab03-ipset/" in said
    assert published_figure(Project(tmp_path), lab, exercise) is None, "a copy without results"
