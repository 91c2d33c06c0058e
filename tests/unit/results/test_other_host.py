# SPDX-License-Identifier: GPL-2.0-or-later
"""Marks do not depend on the machine: two hosts with different CPUs measured the same figures."""

from __future__ import annotations

import pytest

from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Run
from tests import ROOT
from tools.repeatability import differences

RESULTS = ROOT / "results" / "lab03-ipset"


@pytest.fixture(scope="module")
def runs() -> tuple[Run, Run]:
    names = "2026-11-20-full", "2026-11-21-other-host"
    return tuple(load_run(RESULTS / f"{name}.json", "lab03-ipset") for name in names)


def test_the_hosts_differ_and_the_guest_does_not(runs: tuple[Run, Run]) -> None:
    one, two = runs
    assert "Intel" in one.host.cpu
    assert "AMD" in two.host.cpu
    assert (one.dut.kernel, one.testbed) == (two.dut.kernel, two.testbed)


@pytest.mark.parametrize(("metric", "figures", "largest"), [("capacity", 36, 0.0005), ("load_time", 46, 0.006)])
def test_the_figures_are_the_same(runs: tuple[Run, Run], metric: str, figures: int, largest: float) -> None:
    found = differences(*runs, METRICS[metric])
    assert len(found) == figures
    assert max(found.values()) <= largest
