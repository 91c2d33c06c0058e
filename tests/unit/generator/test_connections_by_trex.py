# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections opened by TRex have fewer packets than wrk's, so ranges measured with wrk do not apply to them."""

from __future__ import annotations

import pytest

from fwlab.checkout.project import Project
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import judge_cases
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome, Verdict
from tests import ROOT

LAB = "lab02-conntrack"


def saved(kind: str) -> Run:
    return load_run(next((ROOT / "results" / LAB).glob(f"*-{kind}.json")), LAB)


def of_connections(run: Run) -> list[Verdict]:
    return [v for v in judge_cases(load_lab(Project(ROOT), LAB), run, METRICS) if v.metric == "connections"]


def test_ranges_measured_with_wrk_do_not_judge_trex() -> None:
    verdicts = of_connections(saved("trex"))
    assert len(verdicts) == 3, "two absolute, one ratio"
    assert {verdict.outcome for verdict in verdicts} == {Outcome.INCONCLUSIVE}
    assert all("TRex opened these connections" in verdict.text for verdict in verdicts)


def test_connections_of_wrk_are_judged() -> None:
    assert {verdict.outcome for verdict in of_connections(saved("full"))} == {Outcome.PASS}


def test_the_dut_forwards_as_many_packets_for_both() -> None:
    """As the guide says: the connections differ in their packets, not in the DUT's work per packet."""
    packets = []
    for kind in ("trex", "full"):
        run = saved(kind)
        case = run.case("web-routing")
        each = case.tcp[0].packets / case.tcp[0].completed
        packets.append(figure(case, METRICS["connections"], run.testbed).median * each)
    assert packets[0] == pytest.approx(packets[1], rel=0.01)
