# SPDX-License-Identifier: GPL-2.0-or-later
"""From counts to figures."""

import pytest

from fwlab.judge.statistics import Figure, binomial_interval, figure, nanoseconds_per_packet
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import Delivery, Trial
from fwlab.report.formatting import scatter
from tests.fakes.factories import a_lab, attempt, measured, real, testbed

LAB = a_lab()
HALF = Trial(duration_s=1.0, busy_s=0.5, processed=40_000)
NOTHING_BUSY = Trial(duration_s=0.25, busy_s=0, processed=0)
FAST, SLOW = testbed(ns_per_instruction=1), testbed(ns_per_instruction=4)
#: Of a class that was not offered.
STRAY = Delivery(intended_load=10, sent=10, offered={"others": 10}, arrived={"others": 10, "attacker": 3})


@pytest.mark.parametrize(
    ("metric", "found", "on", "traffic_class", "values"),
    [
        ("capacity", measured(LAB, "raw-drop", trials=[HALF]), real(), "", [80_000]),
        ("capacity", measured(LAB, "raw-drop", trials=[HALF]), FAST, "", [80_000]),
        ("capacity", measured(LAB, "raw-drop", trials=[HALF]), SLOW, "", [320_000]),
        ("capacity", measured(LAB, "raw-drop", trials=[NOTHING_BUSY]), SLOW, "", []),
        ("load_time", measured(LAB, "rules-16", loads=[4.0, 8.0]), real(), "", [4.0, 8.0]),
        ("load_time", measured(LAB, "rules-16", loads=[4.0, 8.0]), SLOW, "", [1.0, 2.0]),
        ("delivered", attempt(250_000, arrived=9), SLOW, "attacker", [0.01]),
        ("delivered", attempt(250_000, arrived=9), SLOW, "others", [1.0]),
        ("delivered", attempt(250_000, deliveries=[STRAY]), SLOW, "attacker", []),
        ("entries", measured(LAB, "raw-drop"), SLOW, "", []),
        ("entries", measured(LAB, "raw-drop", entries=0), SLOW, "", [0.0]),
    ],
)
def test_values_of_a_metric(
    metric: str, found: Measured, on: TestbedFacts, traffic_class: str, values: list[float]
) -> None:
    """Virtual values are scaled to one instruction per nanosecond. What was not counted is not zero."""
    assert METRICS[metric].values(found, on, traffic_class) == values
    assert (figure(found, METRICS[metric], on, traffic_class) is None) == (not values)


def test_median_and_spread() -> None:
    found = Figure([100.0, 104.0, 98.0])
    assert (found.median, found.low, found.high) == (100.0, 98.0, 104.0)
    assert found.spread == pytest.approx(0.06)
    assert Figure([0.0, 0.0]).spread == 0.0
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
