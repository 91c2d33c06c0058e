# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab for two systems: each case and exercise belongs to one of them, and lab.yml cannot say otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fwlab.model.declared import series_of
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system, several, with_systems
from fwlab.rulesets.files import systems_in
from tests.fakes.factories import TEXTS, a_lab, check
from tests.fakes.two_systems import FREEBSD, LAB, LINUX, SYSTEMS, raw, settled


def test_files_tell_the_system_and_a_ruleset_without_files_says_it() -> None:
    found = {case.id: case.system for case in LAB.single_cases}
    assert found == {"raw-drop": "linux", "set-1": "linux", "pf-off": "freebsd"}
    assert [exercise.system for exercise in LAB.exercises] == ["linux", "freebsd"]


def test_each_system_has_its_cases_exercises_and_baseline() -> None:
    assert set(LINUX.cases) | set(FREEBSD.cases) == set(LAB.cases)
    assert set(FREEBSD.cases) == {"pf-off", "pf-16", "pf-1024"}
    assert (LINUX.baseline, FREEBSD.baseline) == ("raw-drop", "pf-off")
    assert [e.id for e in FREEBSD.exercises] == ["ex2-pf"]
    assert [e.id for e in FREEBSD.declared_expectations] == ["freebsd"]
    assert (LINUX.needs.packages, FREEBSD.needs.packages) == (["nftables"], [])
    assert LINUX.crossovers == FREEBSD.crossovers == []
    assert FREEBSD.whole is LAB


def test_a_lab_for_one_system_stays_as_it_is() -> None:
    lab = a_lab()
    assert with_systems(lab, {}.__getitem__) is lab
    assert on_system(lab, "linux") is on_system(lab, "freebsd") is lab
    assert not several(lab)


UNTOLD = "has no file that tells the system; write `system: freebsd` or `system: linux`"
MIXED = [{"id": "mixed", "cases": ["pf"], "ratio_to": "raw-drop", **TEXTS}]


@pytest.mark.parametrize(
    ("systems", "changes", "says"),
    [
        ({"raw-drop": set()}, {}, f"case raw-drop: rulesets/raw-drop {UNTOLD}"),
        ({"set": {"linux", "freebsd"}}, {}, "case set-1: rulesets/set has files for freebsd and linux; keep one"),
        ({"nothing": {"linux"}}, {}, "case pf-off: system is freebsd, but rulesets/nothing has files for linux"),
        ({"rules": {"plan9"}}, {}, "sweep rules: rulesets/rules needs plan9, which needs.systems does not name"),
        ({"ex2-pf/start": set()}, {}, f"exercise ex2-pf: rulesets/ex2-pf/start {UNTOLD}"),
        ({}, {"baseline": "raw-drop"}, "baseline: name one case for each of needs.systems: freebsd, linux"),
        (
            {},
            {"baseline": {"linux": "pf-off", "freebsd": "raw-drop"}},
            "baseline: pf-off is measured on freebsd, not on linux",
        ),
        ({}, {"expectations": MIXED}, "expectation mixed: its cases are measured on freebsd and linux, never side by"),
    ],
)
def test_what_cannot_be_told_is_named(systems: dict, changes: dict, says: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(says)}"):
        settled(systems, **changes)


def test_a_ratio_to_a_case_of_another_system_is_refused() -> None:
    data = raw()
    data["exercises"][1]["checks"] = [check(ratio_to="raw-drop")]
    with pytest.raises(ValueError, match="exercise ex2-pf, check capacity: raw-drop is measured on linux, not on"):
        with_systems(Lab.model_validate(data), SYSTEMS.__getitem__)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"baseline": {"linux": "raw-drop"}}, "baseline: name one case, or one for each of needs.systems"),
        ({"baseline": {"linux": "raw-drop", "freebsd": "pf-on"}}, "baseline: unknown case pf-on"),
        ({"needs": {}, "baseline": "raw-drop"}, "pf-off: system freebsd is not one of needs.systems: linux"),
        ({"needs": {}}, "baseline: name one case, or one for each of needs.systems: linux"),
    ],
)
def test_the_lab_file_is_checked_by_itself(changes: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Lab.model_validate(raw(**changes))


def test_a_folder_tells_the_systems_of_its_files(tmp_path: Path) -> None:
    assert systems_in(tmp_path / "none") == set()
    (tmp_path / "README.md").write_text("a note")
    assert systems_in(tmp_path) == set()
    (tmp_path / "pf.conf.j2").write_text("pass")
    assert systems_in(tmp_path) == {"freebsd"}
    (tmp_path / "rules.nft").write_text("")
    assert systems_in(tmp_path) == {"freebsd", "linux"}


@pytest.mark.parametrize(
    ("release", "series"),
    [
        ("6.1.0-56-cloud-amd64", "6.1"),
        ("6.10.3", "6.10"),
        ("FreeBSD 15.1-RELEASE-p1", "FreeBSD 15.1"),
        ("FreeBSD 16.0-CURRENT", "FreeBSD 16.0"),
        ("unknown", None),
    ],
)
def test_series_of_a_kernel(release: str, series: str | None) -> None:
    assert series_of(release) == series
