# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers that are drawn: a seed chooses them, the same seed always the same ones, and they go where lab.yml says."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from fwlab.generator.traffic_store import TrafficStore
from fwlab.model.declared_traffic import Connections, Traffic
from fwlab.model.drawn import Drawn, seed_or_new
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from tests.checkout import PROJECT, TOPOLOGY, lab_named

LAB = lab_named("lab12-resolver")


def frames(lab: Lab, name: str, seed: int, play: int = 0) -> list[bytes]:
    store = TrafficStore(PROJECT, TOPOLOGY, lab, seed, first=3000).of_play(name, play, 3000)
    return [bytes(frame) for frame in store.table(name).frames]


def declared(drawn: dict, **traffic: dict) -> Lab:
    """lab12 with other traffic and other numbers."""
    of_lab = {name: Traffic(profile="x.py", tunables=tunables) for name, tunables in traffic.items()}
    numbers = {name: Drawn(**one) for name, one in drawn.items()}
    lab = LAB.model_copy(update={"declared_traffic": of_lab, "drawn": numbers})
    vars(lab).pop("traffic", None)
    lab._check_drawn()
    return lab


def test_a_value_never_changes_for_a_seed() -> None:
    """Marks of a class must not change with a new version of Python."""
    drawn = Drawn(**FAMILY)
    assert [drawn.value(str(seed), "lab12-resolver", "names") for seed in range(8)] == [2, 3, 2, 2, 4, 3, 4, 4]


FAMILY = {"from": 2, "to": 5, "adds_to": ["traffic.mix.tunables.names"]}


def test_declared_bounds_hold_over_many_seeds_and_are_reached() -> None:
    for name, drawn in LAB.drawn.items():
        found = {drawn.value(str(seed), LAB.id, name) for seed in range(3000)}
        assert drawn.low <= min(found)
        assert max(found) <= drawn.high
        if drawn.high - drawn.low < 100:
            assert found == set(drawn.values)
        assert len(found) > 1


def test_a_number_is_added_wherever_it_is_declared_and_others_are_drawn_by_themselves() -> None:
    one = {"from": 1, "to": 100, "adds_to": ["traffic.*.tunables.one"]}
    lab = declared(
        {"one": one, "two": {**one, "adds_to": ["traffic.mix.tunables.two"]}},
        mix={"one": 1000, "two": 0},
        b={"one": 5},
        c={},
    )
    found = [[lab.tunables(name, seed) for name in ("mix", "b", "c")] for seed in range(3)]
    assert all(mix["one"] - 1000 == b["one"] - 5 and c == {} for mix, b, c in found)
    assert any(mix["one"] - 1000 != mix["two"] for mix, _, _ in found)


@pytest.mark.parametrize(
    ("drawn", "stands", "found"),
    [
        ({"one_of": ["udp", "syn"]}, "udp", {"udp", "syn"}),
        ({"from": 3, "to": 4}, "198.18.0.1", {"198.18.0.4", "198.18.0.5"}),
    ],
)
def test_a_value_replaces_what_stands_there_or_an_address_begins_later(
    drawn: dict, stands: str, found: set[str]
) -> None:
    lab = declared({"one": {**drawn, "adds_to": ["traffic.mix.tunables.one"]}}, mix={"one": stands})
    assert {lab.tunables("mix", seed)["one"] for seed in range(20)} == found


def test_only_what_is_of_a_play_is_drawn_for_each_play() -> None:
    one = {"from": 0, "to": 999, "adds_to": ["traffic.mix.tunables.one"]}
    two = {"from": 0, "to": 999, "of": "play", "adds_to": ["traffic.mix.tunables.two"]}
    lab = declared({"one": one, "two": two}, mix={"one": 0, "two": 0})
    plays = [lab.tunables("mix", 7, play) for play in (-10, 0, 0, 20)]
    assert len({play["one"] for play in plays}) == 1
    assert len({play["two"] for play in plays}) == 3


def test_bystanders_differ_by_seed_and_by_play_and_their_store_is_kept() -> None:
    lab = lab_named("lab11-sriov")
    assert frames(lab, "attack", 7) != frames(lab, "attack", 7, 20) == frames(lab, "attack", 7, 20)
    assert frames(lab, "attack", 7) != frames(lab, "attack", 8)
    store = TrafficStore(PROJECT, TOPOLOGY, lab, 7)
    assert store.of_play("attack", 20) is store.of_play("attack", 20) is not store
    assert store.of_play("large", 20) is store, "nothing of it is drawn"


def test_a_table_of_the_first_frames_has_the_same_ones() -> None:
    lab = lab_named("lab03-ipset")
    whole = list(TrafficStore(PROJECT, TOPOLOGY, lab, 7, play=20).table("attack").frames)
    first = TrafficStore(PROJECT, TOPOLOGY, lab, 7).of_play("attack", 20, 1000).table("attack")
    assert list(first.frames) == whole[:1000]
    assert len(whole) > 1000
    assert not first.exact


def test_clients_of_connections_move_with_what_is_drawn_for_a_profile() -> None:
    places = ["traffic.mix.tunables.spared", "traffic.web.connections.clients"]
    web = {"web": Traffic(connections=Connections(clients="198.18.32.0/24"))}
    mix = {"mix": Traffic(profile="x.py", tunables={"spared": "198.18.32.0"})}
    number = Drawn(**{"from": 0, "to": 5120, "step": 256, "adds_to": places})
    lab = LAB.model_copy(update={"declared_traffic": {**web, **mix}, "drawn": {"n": number}})
    vars(lab).pop("traffic", None)
    lab._check_drawn()
    found = {(str(lab.connections("web", seed).clients), lab.tunables("mix", seed)["spared"]) for seed in range(30)}
    assert len(found) > 5
    assert all(clients == f"{spared}/24" for clients, spared in found)
    assert lab.connections("mix", 1) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"from": 5, "to": 2}, "from 5 to 2 there is nothing to draw"),
        ({"from": 2, "to": 2}, "from 2 to 2 there is nothing to draw"),
        ({"from": 2}, "give either from and to, or one_of"),
        ({}, "give either from and to, or one_of"),
        ({"from": 1, "to": 2, "one_of": [1, 2]}, "give either from and to, or one_of"),
        ({"from": 0.5, "to": 2}, "from and to are whole numbers"),
        ({"one_of": ["a"]}, "at least 2 items"),
        ({"form": 1, "to": 2}, "form"),
        ({"from": 1, "to": 2, "adds_to": ["title"]}, "title does not|should match pattern"),
    ],
)
def test_a_family_that_draws_nothing_is_refused(given: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Drawn(**{"adds_to": ["traffic.mix.tunables.names"], **given})


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("traffic.mix.tunables.other", "drawn n: there is no traffic.mix.tunables.other"),
        ("classes.mix.src", "drawn n: classes.mix.src: of a class, only traffic.NAME.tunables.KEY is drawn"),
        ("traffic.mix.tunables.word", "drawn n: traffic.mix.tunables.word: a number cannot be added to foo"),
    ],
)
def test_a_place_that_cannot_be_drawn_is_refused(place: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declared({"n": {"from": 1, "to": 2, "adds_to": [place]}}, mix={"word": "foo"})


def test_a_tunable_that_is_overridden_is_not_drawn() -> None:
    lab = declared({"n": FAMILY}, mix={"names": 0})
    lab.traffic["mix"] = lab.traffic["mix"].tuned(names=9)
    assert {lab.tunables("mix", seed)["names"] for seed in range(9)} == {9}


def test_an_unknown_tunable_names_the_profile_and_the_tunable() -> None:
    lab = declared({"n": {**FAMILY, "adds_to": ["traffic.mix.tunables.nmaes"]}}, mix={"nmaes": 1})
    lab.traffic["mix"] = lab.traffic["mix"].model_copy(update={"profile": "resolver.py"})
    with pytest.raises(BadInput, match=r"lab12-resolver/resolver.py: unknown tunable 'nmaes'; there are: .*names"):
        TrafficStore(PROJECT, TOPOLOGY, lab).streams("mix")


def test_a_given_seed_is_taken_and_new_ones_differ() -> None:
    assert seed_or_new(0) == 0
    assert len({seed_or_new(None) for _ in range(20)}) > 10
    with pytest.raises(BadInput, match="the seed must be non-negative"):
        seed_or_new(-1)
