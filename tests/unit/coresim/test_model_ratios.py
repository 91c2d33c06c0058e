# SPDX-License-Identifier: GPL-2.0-or-later
"""Published figures beside those by instructions and by modelled cycles."""

import shutil
from pathlib import Path

import pytest
from fwlab_coresim.figures import CoreFigures

from fwlab.checkout.project import Project, find_project
from tests.checkout import lab_named
from tools import core_ratios
from tools.core_pages import parts
from tools.core_ratios import ModelledRow, modelled_cases, modelled_rows

LAB = "lab04-nftables"


def figures(case: str, instructions: float, cycles: float) -> CoreFigures:
    return CoreFigures(case, instructions, cycles, 0.25, 0.125, 0.0625, 0, 0, 0, None, 0, 0)


#: A list whose cost is 100 + 4 n instructions and 100 + n cycles, and a set that costs 300 and 130.
CASES = {
    **{f"ports-iptables-{n}": figures(f"ports-iptables-{n}", 100 + 4 * n, 100 + n) for n in (0, 75, 150)},
    **{f"ports-nft-set-{n}": figures(f"ports-nft-set-{n}", 300, 130) for n in (0, 75, 150)},
    "address-iptables-1000": figures("address-iptables-1000", 1000, 300),
    "address-nft-1000": figures("address-nft-1000", 4000, 360),
}


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModelledRow]:
    monkeypatch.setattr(core_ratios, "modelled_cases", lambda *_: {"xeon": CASES, "other": {}})
    found = modelled_rows(find_project(), lab_named(LAB))
    return {one.row.cases: one for one in found}


def test_a_crossover_lies_where_the_costs_are_equal(rows: dict[str, ModelledRow]) -> None:
    ports = rows["`ports-iptables`, `ports-nft-set`"]
    assert ports.row.published == 120
    assert ports.instructions.ours == pytest.approx(50)
    assert ports.cycles["xeon"] is not None
    assert ports.cycles["xeon"].ours == pytest.approx(30)
    assert ports.cycles["xeon"].error == pytest.approx(30 / 120 - 1)
    assert ports.cycles["other"] is None, "not modelled on this core"


def test_a_ratio_of_capacities_is_that_of_costs_the_other_way_round(rows: dict[str, ModelledRow]) -> None:
    rules = rows["`address-nft-1000` / `address-iptables-1000`"]
    assert rules.instructions.ours == 0.25
    assert rules.cycles["xeon"] is not None
    assert rules.cycles["xeon"].ours == pytest.approx(300 / 360)
    assert rules.cycles["xeon"].error == 0, "the document printed a limit, which it keeps"


def test_what_was_not_modelled_has_no_row(rows: dict[str, ModelledRow]) -> None:
    named = {name for cases in rows for name in cases.split("`")[1::2]}
    assert {name for name in named if not any(case.startswith(name) for case in CASES)} == set()


def test_the_newest_run_of_a_case_counts(tmp_path: Path) -> None:
    """Of lab03, raw-drop was modelled on xeon in several runs."""
    project = find_project()
    kept = project.root / "results" / "lab03-ipset"
    folder = tmp_path / "results" / "lab03-ipset"
    folder.mkdir(parents=True)
    first, last = "2026-11-24-model-xeon-1.json.gz", "2026-11-24-model-xeon-2.json.gz"
    shutil.copy(kept / first, folder)
    alone = modelled_cases(Project(tmp_path), "lab03-ipset")["xeon"]["raw-drop"]
    shutil.copy(kept / last, folder)
    assert modelled_cases(Project(tmp_path), "lab03-ipset")["xeon"]["raw-drop"].cycles != alone.cycles


def test_a_bar_is_all_cycles() -> None:
    assert parts(figures("one", 400, 160)) == (90, 40, 20, 10)
