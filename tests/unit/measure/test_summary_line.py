# SPDX-License-Identifier: GPL-2.0-or-later
"""The line of progress shows a figure in the unit of the tables."""

import pytest

from fwlab.measure.session import summary
from fwlab.model.results import Measured
from fwlab.model.trial import Delivery, States
from tests.fakes import factories

LAB = factories.a_lab()
EMPTY = States(played=1, held=0, most=1, buckets=1, object_bytes=1, slab_bytes=1, bucket_bytes=1)


def line(**fields: object) -> str:
    measured = Measured(id="x", title="x", ruleset="x", ruleset_hash="", **fields)
    return summary(measured, factories.a_run([]))


def delivery() -> Delivery:
    return Delivery(intended_load=1, sent=4, offered={"others": 4}, arrived={"others": 3})


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"trials": factories.trials(326_000, 326_000, 326_000)}, "326 kpps, spread 0.00%"),
        ({"metric": "load_time", "loads": [0.4, 0.4]}, "0.1 s, spread 0.00%"),
        ({"metric": "connections", "also": ["load_time"], "loads": [0.4]}, "0.1 s"),
        ({"metric": "states", "states": EMPTY}, "0 tracked connections"),
        ({"metric": "survival", "deliveries": [delivery()]}, "measured"),
        ({"metric": "survival"}, "loaded"),
        ({"refused": "no such chain\nline 2"}, "refused: no such chain"),
        ({"problems": ["idle\nmore"]}, "idle"),
    ],
)
def test_a_measurement_in_a_few_words(fields: dict, shown: str) -> None:
    assert line(**fields) == shown
