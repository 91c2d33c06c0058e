# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival at a load and capacity in a flood must be those of one behaviour."""

from __future__ import annotations

import pytest

from fwlab.judge.conduct import changes, changes_of_limits
from fwlab.model.check import Check
from fwlab.model.results import Measured
from fwlab.model.trial import Delivery, PacedPlay, PacedTrial
from tests.fakes.factories import attempt

MIX = {"clients": 300, "popular": 100, "abuse": 600}
WORDS = {"why": "Because.", "pass": "Yes.", "fail": "No.", "source": ["S4"]}
CHECKS = [
    Check.model_validate({**WORDS, **rule})
    for rule in (
        {"metric": "survival", "class": "clients", "at_least": 0.95},
        {"metric": "survival", "class": "popular", "at_least": 0.95},
        {"metric": "survival", "class": "abuse", "at_most": 0.08},
        {"metric": "capacity", "at_least": 1000},
    )
]


def paced(clients: float = 1.0, popular: float = 1.0, abuse: float = 0.0) -> PacedPlay:
    left = {"clients": round(300 * clients), "popular": round(100 * popular), "abuse": round(600 * abuse)}
    trial = PacedTrial(duration_s=1, offered=MIX, forwarded=left)
    fields = {"load": 1000, "tick_s": 0.001, "offered": 1000, "received": 1000, "returned": {}}
    return PacedPlay(**fields, forwarded=left, trials=[trial])


def flood(clients: float = 1.0, popular: float = 1.0, abuse: float = 0.0) -> Delivery:
    """The DUT takes a tenth of the packets."""
    offered = {name: 1000 * count for name, count in MIX.items()}
    shares = {"clients": clients, "popular": popular, "abuse": abuse}
    arrived = {name: round(offered[name] * share / 10) for name, share in shares.items()}
    return Delivery(intended_load=None, sent=1_000_000, offered=offered, arrived=arrived, taken=100_000)


@pytest.mark.parametrize(
    ("play", "during", "classes"),
    [
        (paced(abuse=0.05), flood(abuse=0.01), set()),
        (paced(popular=0.97, abuse=0.05), flood(popular=0.7, abuse=0.01), set()),
        (paced(abuse=0.05), flood(clients=0.4, popular=0.4, abuse=0.4), {"", "abuse"}),
        (paced(), flood(clients=0.1, popular=0.1), {""}),
        (paced(abuse=0.05), flood(abuse=1), {"abuse"}),
    ],
    ids=["limits", "a limit that is nearer", "a gate for all", "dropped above a rate", "no limit above a rate"],
)
def test_a_limit_may_drop_more_of_what_it_limits_and_nothing_else(
    play: PacedPlay, during: Delivery, classes: set[str]
) -> None:
    assert set(changes_of_limits(CHECKS, attempt(1000, flood=during, paced=[play]))) == classes


def test_what_comes_in_bunches_may_scatter_more_around_a_limit() -> None:
    """Three standard deviations are 208 of 4800 packets of abuse, and 600 of the 40 000 that must survive."""
    for during, classes in ((flood(abuse=5200 / 60_000), {"abuse"}), (flood(clients=0.875, popular=0.875), {""})):
        assert set(changes_of_limits(CHECKS, attempt(1000, flood=during, paced=[paced()]))) == classes
        bunched = during.model_copy(update={"dispersion": dict.fromkeys(MIX, 4.0)})
        assert changes_of_limits(CHECKS, attempt(1000, flood=bunched, paced=[paced()])) == {}


def test_without_a_flood_nothing_is_compared() -> None:
    assert changes_of_limits(CHECKS, attempt(paced=[paced()])) == {}


def at_all_loads(play: PacedPlay) -> Measured:
    light = Delivery(intended_load=1, sent=1000, offered=MIX, arrived={"clients": 300, "popular": 100, "abuse": 0})
    return attempt(1000, 1000, 1000, deliveries=[light, light, light], flood=flood(), paced=[play])


@pytest.mark.parametrize(
    ("play", "classes"),
    [
        (paced(), set()),
        (paced(clients=0.5, popular=0.5), set()),
        (paced(popular=0.0), {"popular"}),
        (paced(clients=0.95, popular=0.5), {"popular"}),
        (paced(abuse=0.1), {"abuse"}),
    ],
    ids=["all pass", "a full ring", "one is dropped", "one fares better", "the attack is let through"],
)
def test_above_the_capacity_all_that_pass_at_a_light_load_fare_alike(play: PacedPlay, classes: set[str]) -> None:
    assert set(changes(at_all_loads(play))) == classes


@pytest.mark.parametrize(("dispersion", "classes"), [({}, {"popular"}), ({"popular": 4.0}, set())])
def test_classes_that_come_in_bunches_scatter_more_at_the_load_of_the_exercise(
    dispersion: dict[str, float], classes: set[str]
) -> None:
    found = at_all_loads(paced(popular=0.55))
    found = found.model_copy(update={"flood": flood().model_copy(update={"dispersion": dispersion})})
    assert set(changes(found)) == classes
