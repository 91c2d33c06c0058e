# SPDX-License-Identifier: GPL-2.0-or-later
"""lab12's traffic: nothing but what the lab is about tells the classes apart, whatever the seed draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.generator.traffic_store import TrafficStore
from fwlab.grading.grading_plan import plan_grading
from fwlab.grading.options import GradingOptions
from fwlab.traffic.classes import classify
from tests.checkout import PROJECT, TOPOLOGY, lab_named

LAB = lab_named("lab12-resolver")
NAMES = list(LAB.classes)
SEEDS = (1, 2, 3)


def packets(traffic: str, seed: int) -> Iterator[tuple[str, bytes]]:
    """The class of each frame, and the frame."""
    frames = TrafficStore(PROJECT, TOPOLOGY, LAB, seed).table(traffic).frames
    for place, frame in zip(classify(frames, LAB.classes), frames, strict=True):
        yield NAMES[place] if place >= 0 else "other", bytes(frame)


@pytest.fixture(scope="module", params=SEEDS)
def mix(request: pytest.FixtureRequest) -> list[tuple[str, bytes]]:
    return list(packets("mix", request.param))


def values(mix: list[tuple[str, bytes]], name: str, begin: int, end: int) -> set[bytes]:
    return {frame[begin:end] for found, frame in mix if found == name}


def test_the_attack_comes_from_the_victims_addresses(mix: list[tuple[str, bytes]]) -> None:
    victims = values(mix, "lookups", 26, 30)
    assert values(mix, "abuse", 26, 30) == values(mix, "made-up", 26, 30) == victims
    assert values(mix, "reflected", 30, 34) == victims
    assert not victims & values(mix, "clients", 26, 30)


def test_nobody_else_asks_for_the_names_of_the_attack(mix: list[tuple[str, bytes]]) -> None:
    names = {name: values(mix, name, 54, 70) for name in ("clients", "popular", "lookups", "abuse", "made-up")}
    assert 2 <= len(names["abuse"]) <= 4
    assert len(names["popular"]) == 1
    assert names["lookups"] == names["clients"]
    for other in ("clients", "popular", "made-up"):
        assert not names["abuse"] & names[other]
    assert not names["made-up"] & names["clients"]


def test_an_attack_is_answered_query_by_query(mix: list[tuple[str, bytes]]) -> None:
    count = Counter(name for name, _ in mix)
    assert abs(count["made-up"] - count["reflected"]) <= 1


def test_other_seeds_draw_other_victims_and_names() -> None:
    first, second = ([(name, frame) for name, frame in packets("names", seed)] for seed in (2, 3))
    assert values(first, "abuse", 54, 70).isdisjoint(values(second, "abuse", 54, 70))
    assert values(first, "abuse", 26, 30) != values(second, "abuse", 26, 30)


@pytest.mark.usefixtures("unplayed")
@pytest.mark.parametrize(("given", "seed"), [(None, 1), (20417, 20417)])
def test_a_grading_has_one_seed_for_all(given: int | None, seed: int) -> None:
    plan = plan_grading(PROJECT, GradingOptions(labs=[LAB.id], seed=given))
    assert plan.contexts[LAB.id].seed == plan.contexts[LAB.id].store.seed == seed


@pytest.mark.usefixtures("unplayed")
def test_a_class_is_graded_with_a_new_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.model.drawn.secrets.randbelow", lambda _: 4710)
    (tmp_path / "ada").mkdir()
    for lab in (LAB.id, "lab03-ipset"):
        plan = plan_grading(PROJECT, GradingOptions(labs=[lab], submissions=tmp_path))
        assert plan.contexts[lab].seed == 4711
        if plan.submissions is not None:
            plan.submissions.close()
