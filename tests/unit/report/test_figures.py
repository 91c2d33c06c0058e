# SPDX-License-Identifier: GPL-2.0-or-later
"""From counts to figures."""

from __future__ import annotations

import pytest

from fwlab.judge.statistics import Figure, binomial_interval, figure, nanoseconds_per_packet
from fwlab.metrics.registry import METRICS
from fwlab.model.results import TestbedFacts
from fwlab.model.trial import Delivery, Trial
from fwlab.report.formatting import scatter
from tests.fakes.factories import a_lab, attempt, measured, real, testbed

LAB = a_lab()


@pytest.mark.parametrize(
    ("facts", "pps"),
    [(real(), 80_000), (testbed(ns_per_instruction=1), 80_000), (testbed(ns_per_instruction=4), 320_000)],
)
def test_capacity_is_packets_per_busy_second_of_the_reference_cpu(facts: TestbedFacts, pps: float) -> None:
    case = measured(LAB, "raw-drop", trials=[Trial(duration_s=1.0, busy_s=0.5, processed=40_000)])
    assert METRICS["capacity"].values(case, facts) == [pps]


def test_virtual_load_time_is_scaled_the_other_way() -> None:
    case = measured(LAB, "rules-16", loads=[4.0, 8.0])
    assert METRICS["load_time"].values(case, testbed(ns_per_instruction=4)) == [1.0, 2.0]
    assert METRICS["load_time"].values(case, real()) == [4.0, 8.0]


def test_a_trial_without_busy_time_has_no_capacity() -> None:
    case = measured(LAB, "raw-drop", trials=[Trial(duration_s=0.25, busy_s=0, processed=0)])
    assert METRICS["capacity"].values(case, testbed()) == []
    assert figure(case, METRICS["capacity"], testbed()) is None


def test_delivered_is_the_share_of_one_class() -> None:
    found = attempt(250_000, arrived=9)
    assert METRICS["delivered"].values(found, testbed(), "attacker") == [0.01]
    assert METRICS["delivered"].values(found, testbed(), "others") == [1.0]


def test_a_class_that_was_not_offered_has_no_share() -> None:
    arrived = {"others": 10, "attacker": 3}
    delivery = Delivery(intended_load=10, sent=10, offered={"others": 10}, arrived=arrived)
    found = attempt(250_000, deliveries=[delivery])
    assert figure(found, METRICS["delivered"], testbed(), "attacker") is None


def test_uncounted_entries_are_not_zero() -> None:
    assert METRICS["entries"].values(measured(LAB, "raw-drop"), testbed()) == []
    assert METRICS["entries"].values(measured(LAB, "raw-drop", entries=0), testbed()) == [0.0]


def test_median_and_spread() -> None:
    found = Figure([100.0, 104.0, 98.0])
    assert (found.median, found.low, found.high) == (100.0, 98.0, 104.0)
    assert found.spread == pytest.approx(0.06)


def test_no_values_have_no_figure() -> None:
    assert Figure([0.0, 0.0]).spread == 0.0


def test_a_packet_at_a_million_per_second_costs_a_microsecond() -> None:
    assert nanoseconds_per_packet(1e6) == 1000


@pytest.mark.parametrize(
    ("counted", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (34, 1181, 0.0207, 0.0400)],
)
def test_a_share_of_few_packets_has_a_wide_interval(counted: int, of: int, low: float, high: float) -> None:
    """Wilson's interval; the first three are in every table of it."""
    assert binomial_interval(counted, of) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (Figure([0.0290, 0.0288, 0.0286], (102, 3543)), "1.4 % (2.38 to 3.48 %)"),
        (Figure([0.5, 0.5], (500_000, 1_000_000)), "0 %"),
        (Figure([0.06], (1440, 24_256)), "(5.65 to 6.24 %)"),
        (Figure([1.0, 1.0], (900, 900)), "0 %"),
        (Figure([1.0], None), ""),
    ],
    ids=["few packets", "many packets", "one trial", "all of them", "no share"],
)
def test_a_share_is_shown_with_its_spread_and_its_interval(figure: Figure, shown: str) -> None:
    spread = figure.spread if figure.several else None
    assert scatter(figure, spread, METRICS["survival"]) == shown
