# SPDX-License-Identifier: GPL-2.0-or-later
"""Drawn traffic: a seed chooses one of a declared family, and the same seed always the same one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from fwlab.generator.traffic_store import TrafficStore
from fwlab.host.project import find_project, load_topology
from fwlab.measure.labs import load_lab
from fwlab.model.declared_traffic import Traffic
from fwlab.model.drawn import Drawn, seed_or_new
from fwlab.model.errors import BadInput

PROJECT = find_project(Path(__file__))
LAB = load_lab(PROJECT, "lab12-resolver")
TOPOLOGY = load_topology(PROJECT)
DRAWN = [name for name, traffic in LAB.traffic.items() if traffic.drawn]


def frames(name: str, seed: int) -> list[bytes]:
    return [bytes(frame) for frame in TrafficStore(PROJECT, TOPOLOGY, LAB, seed).table(name).frames]


def test_the_same_seed_gives_the_same_frames_and_another_seed_others() -> None:
    first, again, other = frames(DRAWN[0], 7), frames(DRAWN[0], 7), frames(DRAWN[0], 8)
    assert first == again
    assert first != other


def test_a_value_never_changes_for_a_seed() -> None:
    """Marks of a class must not change with a new version of Python."""
    assert [Drawn(**{"from": 2, "to": 5}).value(seed, "mix names") for seed in range(8)] == EXPECTED


EXPECTED = [3, 3, 2, 5, 4, 3, 5, 3]


@pytest.mark.parametrize("name", DRAWN)
def test_declared_bounds_hold_over_many_seeds_and_are_reached(name: str) -> None:
    for key, family in LAB.traffic[name].drawn.items():
        found = {LAB.traffic[name].arguments(seed, name)[key] for seed in range(3000)}
        if family.one_of is not None:
            assert found == set(family.one_of)
        else:
            assert family.low <= min(found)
            assert max(found) <= family.high
            if family.high - family.low < 100:
                assert (min(found), max(found)) == (family.low, family.high)
            assert len(found) > 1


def test_each_tunable_is_drawn_by_itself() -> None:
    family = {"from": 1, "to": 100}
    traffic = Traffic(profile="x.py", drawn={"one": family, "two": family})
    assert any(len(set(traffic.arguments(seed, "mix").values())) == 2 for seed in range(3))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"from": 5, "to": 2}, "from 5 to 2: nothing can be drawn"),
        ({"from": 2, "to": 2}, "from 2 to 2: nothing can be drawn"),
        ({"from": 2}, "give either from and to, or one_of"),
        ({}, "give either from and to, or one_of"),
        ({"from": 1, "to": 2, "one_of": [1, 2]}, "give either from and to, or one_of"),
        ({"from": 0.5, "to": 2}, "from and to are whole numbers"),
        ({"one_of": ["a"]}, "at least 2 items"),
        ({"form": 1, "to": 2}, "form"),
    ],
)
def test_a_family_that_draws_nothing_is_refused(given: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Drawn(**given)


def test_a_tunable_is_given_or_drawn() -> None:
    with pytest.raises(ValidationError, match="names is both a tunable and drawn"):
        Traffic(profile="x.py", tunables={"names": 1}, drawn={"names": {"from": 1, "to": 2}})
    with pytest.raises(ValidationError, match="tunables belong to a profile"):
        Traffic(connections={}, drawn={"names": {"from": 1, "to": 2}})


def test_a_tunable_that_is_overridden_is_not_drawn() -> None:
    traffic = Traffic(profile="x.py", drawn={"names": {"from": 1, "to": 5}})
    assert {traffic.tuned(names=9).arguments(seed, "mix")["names"] for seed in range(9)} == {9}


def test_an_unknown_tunable_names_the_profile_and_the_tunable() -> None:
    lab = LAB.model_copy()
    lab.__dict__["traffic"] = {"mix": Traffic(profile="resolver.py", drawn={"nmaes": {"from": 1, "to": 2}})}
    with pytest.raises(BadInput, match=r"lab12-resolver/resolver.py: unknown tunable 'nmaes'; there are: .*names"):
        TrafficStore(PROJECT, TOPOLOGY, lab).streams("mix")


def test_a_given_seed_is_taken_and_new_ones_differ() -> None:
    assert seed_or_new(0) == 0
    assert len({seed_or_new(None) for _ in range(20)}) > 10


def test_a_seed_below_zero_is_refused() -> None:
    with pytest.raises(BadInput, match="a seed of -1 is below 0"):
        seed_or_new(-1)
