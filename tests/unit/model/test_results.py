# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a result merge by their type, and a metric may bring a part of its own."""

from __future__ import annotations

from typing import ClassVar

import pytest

from fwlab.model.results import Deliveries, Loading, Measured, Overload, Part, Trouble, Values
from fwlab.model.trial import Delivery
from tests.fakes.factories import attempt, trials

ONE, TWO = trials(250_000), trials(260_000)
DELIVERY = Delivery(intended_load=None, sent=1, offered={}, arrived={})


class CacheMisses(Part):
    """A count that no built-in metric has."""

    key: ClassVar[str] = "cache_misses"
    misses: list[int] = []
    of: str | None = None


@pytest.mark.parametrize(
    ("one", "two", "both"),
    [
        (Overload(trials=ONE), Overload(trials=TWO), {"trials": [*ONE, *TWO]}),
        (
            Overload(idle_trials=2, throttle_level=3),
            Overload(idle_trials=1, throttle_level=1),
            {"idle_trials": 3, "throttle_level": 3},
        ),
        (Overload(perturbed_by={"a": 0.5}), Overload(perturbed_by={"b": 0.1}), {"perturbed_by": {"a": 0.5, "b": 0.1}}),
        (Trouble(problems=["a", "b"]), Trouble(problems=["b", "c"]), {"problems": ["a", "b", "c"]}),
        (Trouble(lost=["a"]), Trouble(lost=["a"]), {"lost": ["a", "a"]}),
        (Loading(entries=7), Loading(loads=[1.5]), {"entries": 7, "loads": [1.5]}),
        (Loading(entries=7), Loading(entries=None), {"entries": 7}),
        (Loading(entries=7), Loading(entries=8), {"entries": 8}),
        (Values(extra={"a": [1.0]}), Values(extra={"b": []}), {"extra": {"a": [1.0], "b": []}}),
    ],
)
def test_parts_merge_field_by_field(one: Part, two: Part, both: dict[str, object]) -> None:
    found = attempt().plus(one).plus(two)
    assert {name: getattr(found, name) for name in both} == both
    assert found == attempt().plus(one, two)


def test_a_result_itself_does_not_change() -> None:
    found = attempt()
    assert found.hindered(["later"]).suspects == ["later"]
    assert found.problems == []


def test_a_metric_keeps_a_part_of_its_own() -> None:
    found = attempt().plus(CacheMisses(misses=[1], of="L1"), CacheMisses(misses=[2]))
    read = Measured.model_validate_json(found.model_dump_json())
    assert read == found
    assert read.part(CacheMisses) == CacheMisses(misses=[1, 2], of="L1")
    assert attempt().part(CacheMisses) is None


def test_what_is_rare_is_written_only_if_there_is_any() -> None:
    rare = {"interleaved", "benchmarks", "counts", "extra", "filled", "functions", "paced", "remarks", "unsaturated"}
    assert not rare & attempt().model_dump().keys()
    assert list(attempt().model_dump())[:4] == ["id", "title", "ruleset", "ruleset_hash"]
    assert "extra" in attempt().plus(Values(extra={"a": [1.0]})).model_dump()


def test_a_later_round_adds_its_trials_and_troubles_alone() -> None:
    first = attempt().plus(Overload(trials=ONE, idle_trials=1), Deliveries(deliveries=[DELIVERY]))
    later = first.plus(Overload(throttle_level=2), Trouble(problems=["late"])).model_copy(update={"wall_s": 2.0})
    both = first.joined(later)
    assert (both.trials, both.idle_trials, both.throttle_level) == ([*ONE, *ONE], 2, 2)
    assert (both.deliveries, both.problems, both.wall_s) == (first.deliveries, ["late"], 2.0)
