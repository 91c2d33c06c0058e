# SPDX-License-Identifier: GPL-2.0-or-later
"""lab12's traffic: nothing but what the lab is about tells the classes apart, whatever the seed draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fwlab.generator.traffic_store import TrafficStore
from fwlab.grading.grading_plan import plan_grading
from fwlab.grading.options import GradingOptions
from tests.checkout import PROJECT, SEED, TOPOLOGY, lab_named, tables

LAB = lab_named("lab12-resolver")
SEEDS = (1, 2, 3)


#: The first bytes of each class's frames.
Packets = dict[str, np.ndarray]


def packets(traffic: str, seed: int) -> Packets:
    store = tables(LAB.id) if seed == SEED else TrafficStore(PROJECT, TOPOLOGY, LAB, seed)
    heads, found = store.table(traffic).frames.matrix(70), store.classified(traffic)
    return {name: heads[found == place] for place, name in enumerate(LAB.classes)}


@pytest.fixture(scope="module", params=SEEDS)
def mix(request: pytest.FixtureRequest) -> Packets:
    return packets("mix", request.param)


def values(mix: Packets, name: str, begin: int, end: int) -> set[bytes]:
    return set(np.ascontiguousarray(mix[name][:, begin:end]).view(f"V{end - begin}")[:, 0].tolist())


def test_the_attack_comes_from_the_victims_addresses(mix: Packets) -> None:
    victims = values(mix, "lookups", 26, 30)
    assert values(mix, "abuse", 26, 30) == values(mix, "made-up", 26, 30) == victims
    assert values(mix, "reflected", 30, 34) == victims
    assert not victims & values(mix, "clients", 26, 30)


def test_nobody_else_asks_for_the_names_of_the_attack(mix: Packets) -> None:
    names = {name: values(mix, name, 54, 70) for name in ("clients", "popular", "lookups", "abuse", "made-up")}
    assert 2 <= len(names["abuse"]) <= 4
    assert len(names["popular"]) == 1
    assert names["lookups"] == names["clients"]
    for other in ("clients", "popular", "made-up"):
        assert not names["abuse"] & names[other]
    assert not names["made-up"] & names["clients"]


def test_an_attack_is_answered_query_by_query(mix: Packets) -> None:
    assert abs(len(mix["made-up"]) - len(mix["reflected"])) <= 1


def test_other_seeds_draw_other_victims_and_names() -> None:
    first, second = (packets("names", seed) for seed in (2, 3))
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
