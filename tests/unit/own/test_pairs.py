# SPDX-License-Identifier: GPL-2.0-or-later
"""Forty pairs through this machine's own netfilter: no false difference, and each planted one with the right rules."""

from __future__ import annotations

import pytest

from fwlab.model.ruleset import RulesetFile
from fwlab.own.comparing import Comparison, Difference, compare
from fwlab.own.layout import layout_of
from fwlab.own.walks import Walk

from .kernel import bench, lacks
from .pairs import DIFFERENT, EQUAL, Planted, Rules

pytestmark = pytest.mark.skipif(bool(lacks()), reason=lacks())


def compared(old: Rules, new: Rules, seed: int = 1) -> Comparison:
    with bench("OLD") as before, bench("NEW") as after:
        rules = tuple(
            side.load([RulesetFile(f"{side.name}.rules", given.kind, given.text)])
            for side, given in ((before, old), (after, new))
        )
        return compare(before, after, rules, layout_of(rules), seed, lambda _: None)


def explained(walk: Walk | None, comparison: Comparison, side: str) -> str:
    rules = getattr(comparison, side).rules
    return "" if walk is None else "\n".join(rules.words(key) for key in (walk.decider, *walk.met) if key)


def changes(found: list[Difference]) -> list[tuple]:
    return [(one.changed, one.steps) for one in found]


@pytest.mark.parametrize("name", EQUAL)
def test_rulesets_that_do_the_same_do_not_differ(name: str) -> None:
    found = compared(*EQUAL[name])
    assert found.packets > 50
    assert not found.differences, changes(found.differences)


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_planted_difference_is_found_with_the_rules_that_decided(name: str) -> None:
    planted: Planted = DIFFERENT[name]
    found = compared(planted.old, planted.new)
    assert found.differences
    wanted = {(planted.explained_old, planted.explained_new), planted.or_else}
    for one in found.differences:
        old, new = explained(one.old, found, "old"), explained(one.new, found, "new")
        assert any(before and before in old and after in new for before, after in wanted), changes([one])


@pytest.mark.thorough
@pytest.mark.parametrize("name", EQUAL)
def test_nor_with_another_seed(name: str) -> None:
    assert not compared(*EQUAL[name], seed=7).differences


def test_there_are_as_many_of_each_as_the_guide_says() -> None:
    assert (len(EQUAL), len(DIFFERENT)) == (20, 22)
