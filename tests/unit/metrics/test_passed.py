# SPDX-License-Identifier: GPL-2.0-or-later
"""The share of a fixed number of packets that passes, whatever their class."""

from __future__ import annotations

from fwlab.metrics.delivery import BEFORE_FLOOD
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.trial import Delivery
from tests.fakes.factories import a_lab, a_run, measured

PASSED = METRICS["passed"]


def a_play(arrived: dict[str, int], sent: int = 960) -> Delivery:
    return Delivery(intended_load=2000, sent=sent, offered={"flows": sent}, arrived=arrived)


def shares(*plays: Delivery) -> list[float]:
    found = measured(a_lab(), "raw-drop", metric="passed").model_copy(update={"deliveries": list(plays)})
    return PASSED.values(found, a_run([]).testbed)


def test_what_passes_is_counted_over_all_classes() -> None:
    assert shares(a_play({"flows": 480, "other": 96})) == [0.6]


def test_only_the_first_play_has_a_fixed_number_of_packets() -> None:
    assert shares(a_play({"flows": 96}), a_play({"flows": 4000}, sent=8191)) == [0.1]


def test_it_needs_no_flood() -> None:
    assert PASSED.steps(MeasurementSpec("x", "X", "x", [], ["passed"], traffic="flood"), "packets", "host") == [
        BEFORE_FLOOD
    ]
