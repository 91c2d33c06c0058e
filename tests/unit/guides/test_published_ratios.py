# SPDX-License-Identifier: GPL-2.0-or-later
"""Published ratios beside ours: rows come from lab.yml and published.yml, and a faulty row is named."""

import shutil
from functools import cache
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import read_document, write_document
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT, lab_named
from tools.published_ratios import FILE, Row, all_rows, rows_of

LAB = "lab03-ipset"
#: Baselines beside those that a lab names.
BASES = ("linux-forward", "freebsd-forward", "web-routing")


@pytest.fixture
def checkout(tmp_path: Path) -> Project:
    """A checkout with one lab and its results."""
    shutil.copy(ROOT / "topology.yml", tmp_path)
    shutil.copytree(ROOT / "labs" / LAB, tmp_path / "labs" / LAB, ignore=shutil.ignore_patterns("work"))
    shutil.copytree(ROOT / "results" / LAB, tmp_path / "results" / LAB)
    (tmp_path / "labs" / LAB / FILE).unlink()
    return Project(tmp_path)


def rows(project: Project, text: str = "") -> list[Row]:
    if text:
        (project.root / "labs" / LAB / FILE).write_text(text)
    return rows_of(project, load_lab(project, LAB))


@cache
def whole_lab(lab_id: str) -> Lab:
    return lab_named(lab_id).whole


def test_every_published_ratio_of_the_labs_has_a_row() -> None:
    found = {(row.lab, row.source, row.cases.split("`")[1]) for row in all_rows(PROJECT) if not row.unit}
    for lab_id in LAB_IDS:
        lab = whole_lab(lab_id)
        for case in lab.cases.values():
            for one in case.published:
                if one.ratio not in (None, 1.0) and case.id != lab.baseline:
                    assert (lab_id, one.source, case.id) in found


def test_a_ratio_of_published_yml_agrees_with_that_of_lab_yml() -> None:
    """One row does. A document may have printed two figures of the same cases: connections and their packets."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in all_rows(PROJECT):
        _, base = row.cases.split("`")[1::2]
        if not row.unit and base in (whole_lab(row.lab).baseline, *BASES):
            found.setdefault((row.lab, row.source, row.cases), []).append(row.published)
    for (lab_id, source, cases), ratios in found.items():
        case = cases.split("`")[1]
        for one in whole_lab(lab_id).cases[case].published:
            if one.source == source and one.ratio and case not in BASES:
                assert any(ratio == pytest.approx(one.ratio, rel=0.01) for ratio in ratios), (cases, ratios)


def test_a_reason_replaces_the_row_without_one(checkout: Project) -> None:
    found = rows(checkout, "- { source: S1, case: ipset-1, what: a set, why: Because. }\n")
    assert [(row.what, row.why) for row in found if row.cases.startswith("`ipset-1`")] == [("a set", "Because.")]
    assert len(found) == 4


def test_a_limit_that_holds_agrees(checkout: Project) -> None:
    text = "- { source: S9, case: ipset-1, ratio: RATIO, at_most: true }\n"
    assert rows(checkout, text.replace("RATIO", "0.95"))[0].cells()[2:] == ["agrees", "not printed"]
    assert rows(checkout, text.replace("RATIO", "0.5"))[0].cells() == ["at most 0.5", "0.896", "agrees", "+79 %"]


@pytest.mark.parametrize(
    ("ours", "published", "at_most", "same"),
    [
        (0.3, 0.9, False, True),
        (1.2, 0.9, False, False),
        (0.98, 1.0, False, True),
        (0.95, 1.0, False, False),
        (0.3, 1.0, True, True),
        (1.08, 1.0, True, False),
    ],
)
def test_the_order_agrees_if_the_same_case_is_ahead(ours: float, published: float, at_most: bool, same: bool) -> None:
    row = Row(LAB, "S9", "", published, ours, "", "", "", at_most=at_most)
    assert row.same_order is same


def test_what_is_not_measured_yet_says_so(checkout: Project) -> None:
    """A case that was added later, and a lab without results."""
    kept = checkout.root / "results" / LAB / "published.json.gz"
    write_document(kept, read_document(kept).decode().replace('"id": "ipset-1"', '"id": "ipset-renamed"'))
    assert [row.ours is None for row in rows(checkout)] == [False, True, False, False]
    shutil.rmtree(checkout.root / "results")
    assert [row.cells()[1:] for row in rows(checkout)] == [["not measured yet", "", ""]] * 4


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- { source: S1, case: no-such, ratio: 1 }", "lab03-ipset has no no-such, or no figure of S1 for it"),
        ("- { source: S1, case: ipset-1, to: no-such }", "lab03-ipset has no no-such, or no figure of S1 for it"),
        ("- { source: S2, case: ipset-1 }", "has no ratio of ipset-1 to raw-drop, or no figure of S2"),
        ("- { source: S1, crossover: no-such }", "has no crossover no-such"),
        ("- { source: S1, cases: ipset-1 }", "0.cases: Extra inputs are not permitted"),
        ("- { source: S1, case: ipset-1, ratio: .nan }", "0.ratio: Input should be a finite number"),
        ("source: S1", ": Input should be a valid list"),
        ("- [", "2: not YAML"),
    ],
)
def test_a_faulty_row_is_named(checkout: Project, text: str, complaint: str) -> None:
    with pytest.raises(BadInput) as error:
        rows(checkout, text + "\n")
    assert error.value.message.startswith(f"labs/{LAB}/{FILE}")
    assert complaint in error.value.message
    assert error.value.hint == f"fix labs/{LAB}/{FILE}"
