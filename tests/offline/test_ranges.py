# SPDX-License-Identifier: GPL-2.0-or-later
"""Ranges are written from a run: around its medians, in place, and nothing else of lab.yml changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fwlab.cli.ranges import _around, renewed
from fwlab.host.project import find_project, lab_ids
from fwlab.judge.statistics import Figure, figure
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from tests.offline.factories import a_lab, a_run, expectation, measured

ROOT = Path(__file__).resolve().parents[2]
LAB = a_lab(
    [
        expectation(
            virtual={"raw-drop": [0, 1], "set-1": [5, 6]},
            ratio_to="raw-drop",
            ratio={"raw-drop": [0, 1], "set-1": [0, 1]},
        )
    ]
)
TEXT = """# A comment.
expectations:
  - id: made-up
    virtual:
      raw-drop: [0, 1]
      set-1: [5, 6]
    ratio_to: raw-drop
    ratio:
      raw-drop: [0, 1]
      set-1: [0, 1]
    why: Not this one:
"""


def test_a_range_lies_around_the_median_and_a_ratio_twice_as_wide() -> None:
    run = a_run([measured(LAB, "raw-drop", 299_000, 300_000, 301_000), measured(LAB, "set-1", 270_000)])
    assert (
        renewed(TEXT, LAB, run)
        == """# A comment.
expectations:
  - id: made-up
    virtual:
      raw-drop: [295500, 304500]
      set-1: [265900, 274100]
    ratio_to: raw-drop
    ratio:
      raw-drop: [0.97, 1.03]
      set-1: [0.873, 0.927]
    why: Not this one:
"""
    )


def test_what_was_not_measured_stays_and_so_does_a_ratio_to_it() -> None:
    run = a_run([measured(LAB, "set-1", 270_000)])
    both = zip(TEXT.splitlines(), renewed(TEXT, LAB, run).splitlines(), strict=True)
    changed = [new for old, new in both if old != new]
    assert changed == ["      set-1: [265900, 274100]"]


def test_a_range_is_rounded_outwards() -> None:
    run = a_run([measured(LAB, "raw-drop", 123_457)])
    assert "raw-drop: [121600, 125400]" in renewed(TEXT, LAB, run)  # 121 605 to 125 309


def test_a_range_is_as_wide_as_its_trials_lie_apart() -> None:
    run = a_run([measured(LAB, "raw-drop", 296_000, 300_000, 305_000)])
    assert "raw-drop: [291000, 309000]" in renewed(TEXT, LAB, run)


def test_a_range_is_as_wide_as_loadings_are_known_to_lie_apart() -> None:
    """Its trials are of one loading, and may agree better than two loadings do."""
    expectation = LAB.expectations[0].model_copy(update={"apart": {"raw-drop": 0.025, "set-1": 0.04}})
    lab = LAB.model_copy(update={"expectations": [expectation]})
    text = renewed(TEXT, lab, a_run([measured(LAB, "raw-drop", 300_000), measured(LAB, "set-1", 300_000)]))
    assert re.findall(r"raw-drop: (\[.*\])", text) == ["[292500, 307500]", "[0.97, 1.03]"]
    assert re.findall(r"set-1: (\[.*\])", text) == ["[288000, 312000]", "[0.96, 1.04]"]


def test_so_is_one_of_shares() -> None:
    """Those reach 0.02 to each side by themselves, and never out of 0 to 1."""
    found = Figure([0.5])
    assert _around(METRICS["survival"], found, 0.0) == (0.48, 0.52)
    assert _around(METRICS["survival"], found, 0.03) == (0.47, 0.53)


def test_figures_in_doubt_make_no_range() -> None:
    run = a_run([measured(LAB, "raw-drop", 280_000, 300_000)])
    with pytest.raises(BadInput, match=r"raw-drop is in doubt: the trials are 6\.9% apart"):
        renewed(TEXT, LAB, run)


def test_a_range_that_shares_its_line_is_refused() -> None:
    shared = TEXT.replace("    virtual:\n      raw-drop: [0, 1]\n", "    virtual: { raw-drop: [0, 1] }\n")
    with pytest.raises(BadInput, match="4 ranges, 3 of them|4 ranges, 2 of them"):
        renewed(shared, LAB, a_run([measured(LAB, "raw-drop", 300_000)]))


MEASURED = [
    (lab, max((ROOT / "results" / lab).glob("*-full.json")))
    for lab in lab_ids(find_project(ROOT))
    if list((ROOT / "results" / lab).glob("*-full.json"))
]


@pytest.mark.parametrize(("lab_id", "kept"), MEASURED, ids=[lab for lab, _ in MEASURED])
def test_the_ranges_of_a_lab_can_be_written_from_its_own_results(lab_id: str, kept: Path) -> None:
    project = find_project(ROOT)
    lab, run = load_lab(project, lab_id), load_run(kept, lab_id)
    old = (lab.folder / "lab.yml").read_text()
    new = renewed(old, lab, run)
    pattern = re.compile(r": \[[^\]]*\]$", re.MULTILINE)
    assert pattern.sub("", new) == pattern.sub("", old)
    fresh = Lab.model_validate(yaml.safe_load(new))
    for wanted in fresh.expectations:
        for case, (low, high) in wanted.virtual.items():
            found = run.case(case) and figure(run.case(case), METRICS[wanted.metric], run.testbed)
            if found:
                assert low <= found.median <= high
                assert high <= low * 1.11 or high - low <= 0.0401
