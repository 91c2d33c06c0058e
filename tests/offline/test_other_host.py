# SPDX-License-Identifier: GPL-2.0-or-later
"""Marks do not depend on the machine: what the pages say of two hosts of different CPUs was measured there."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.judge.statistics import figure
from fwlab.measure.saved_runs import load_run
from fwlab.model.metric import Metric
from fwlab.model.results import Run

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "lab03-ipset"


@pytest.fixture(scope="module")
def runs() -> tuple[Run, Run]:
    names = "2026-11-20-full", "2026-11-21-other-host"
    return tuple(load_run(RESULTS / f"{name}.json", "lab03-ipset") for name in names)


def differences(runs: tuple[Run, Run], metric: Metric) -> list[float]:
    """Of each case's two medians, as a share of the first."""
    found = []
    for case in runs[0].cases:
        if metric in (case.metric, *case.also):
            one, two = (figure(run.case(case.id), metric, run.testbed).median for run in runs)
            found.append(abs(two / one - 1))
    return found


def test_the_hosts_differ_and_the_guest_does_not(runs: tuple[Run, Run]) -> None:
    one, two = runs
    assert "Intel" in one.host.cpu
    assert "AMD" in two.host.cpu
    assert (one.dut.kernel, one.testbed) == (two.dut.kernel, two.testbed)


def test_the_figures_are_the_same_as_the_pages_say(runs: tuple[Run, Run]) -> None:
    method = " ".join((ROOT / "guides" / "method.md").read_text().split())
    readme = " ".join((ROOT / "README.md").read_text().split())
    rates, loads = (differences(runs, metric) for metric in (Metric.CAPACITY, Metric.LOAD_TIME))
    assert f"by 0.04 % at most in all {len(rates)} capacities" in method
    assert f"by 0.6 % at most in the {len(loads)} load times" in method
    assert f"All {len(rates)} capacities of lab03 agree within 0.05 %" in readme
    assert round(max(rates) * 100, 2) <= 0.04
    assert max(loads) <= 0.006
