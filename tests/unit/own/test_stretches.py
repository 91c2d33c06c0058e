# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the instructions go: the rules that a packet is compared with, and stretches of them, on a model and here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fwlab.model.ruleset import RulesetFile
from fwlab.own.layout import layout_of
from fwlab.own.packets import UDP
from fwlab.own.prices import Price, classes, price
from fwlab.own.reach import reach
from fwlab.own.rules import Chain, Match, Rule, Rules
from fwlab.own.showing import where_lines
from fwlab.own.stretches import Division, compared, divide
from fwlab.own.walks import FORWARDED, Walk

from .kernel import bench, lacks
from .model import CHAIN, ModelBench, rules_of

NS_PER_INSTRUCTION = 4
DEAR, LAST = 57, 100


def divided(counter: int | None) -> tuple[Division, list[Price], Rules]:
    """A hundred rules of which one is dear; the last one has counted."""
    ports = ((f"udp dport {n} accept", (Match("proto", ((UDP, UDP),)), Match("dport", ((n, n),)))) for n in range(100))
    rules = rules_of(*ports)
    last = (*CHAIN, LAST + 1)
    rules.rules[last] = replace(rules.rules[last], packets=counter)
    model, bare, layout = ModelBench("X", rules), ModelBench("bare", rules_of(policy="accept")), layout_of([rules])
    model.dear = {DEAR: 9040}
    reached = reach(model, rules, layout, 1, lambda _: None)
    prices = price(model, bare, rules, classes(reached), NS_PER_INSTRUCTION, lambda _: None)
    return divide(model, rules, prices, NS_PER_INSTRUCTION, lambda _: None), prices, rules


@pytest.mark.parametrize("counter", [None, 700])
def test_a_dear_rule_ends_alone_in_a_stretch(counter: int | None) -> None:
    division, prices, rules = divided(counter)
    [first, second, *_] = division.together
    assert (first.first, first.rules, first.instructions) == ((*CHAIN, DEAR), 1, 9040 / NS_PER_INSTRUCTION)
    assert second.first is None
    whole = sum(one.instructions for one in division.together)
    [decider] = division.of
    [of] = [one for one in prices if one.of.decider == decider]
    assert whole == pytest.approx(of.total, rel=0.01)
    assert division.share == (None if counter is None else 1)
    assert any(f"{CHAIN[2]} {DEAR - 1}: udp dport {DEAR - 2} accept" in line for line in where_lines(division, rules))


def test_a_packet_is_compared_with_all_rules_up_to_the_one_that_decides() -> None:
    rules = Rules()
    for name, hook in (("base", "forward"), ("side", None), ("other", None)):
        rules.chains["ip", "t", name] = Chain("ip", "t", name, hook, policy="drop" if hook else None)
        for number in range(1, 5):
            key = ("ip", "t", name, number)
            rules.rules[key] = Rule(key, f"{name} {number}")

    def of(*met: tuple[str, int, str, str]) -> list[tuple[str, int]]:
        keys = tuple(("ip", "t", name, number) for name, number, _, _ in met)
        walk = Walk(FORWARDED, keys[-1], keys, (), verdicts=tuple(one[2:] for one in met))
        return [key[2:] for key in compared(rules, walk)]

    first = [("base", 1), ("base", 2)]
    side = [("side", number) for number in range(1, 5)]
    # A chain that is jumped to, decided in, returned from by its end or by a rule, and left by goto.
    assert of(("base", 2, "jump", "side"), ("side", 2, "accept", "")) == [*first, *side[:2]]
    through = [*first, *side, ("base", 3)]
    assert of(("base", 2, "jump", "side"), ("base", 3, "accept", "")) == through
    assert of(("base", 2, "jump", "side"), ("side", 1, "return", ""), ("base", 3, "accept", "")) == [
        *first, ("side", 1), ("base", 3)]  # fmt: skip
    assert of(("base", 2, "goto", "side"), ("base", 0, "drop", "")) == [*first, *side, ("base", 0)]
    assert of(("base", 2, "continue", ""), ("base", 0, "drop", "")) == [*first, ("base", 3), ("base", 4), ("base", 0)]


LIST = "".join(f"ip saddr 10.0.{n >> 8}.{n & 255} drop\n" for n in range(600))
RULES = f"table ip f {{\nchain c {{\ntype filter hook forward priority 0; policy drop;\n{LIST}}}\n}}\n"


@pytest.mark.skipif(bool(lacks()), reason=lacks())
def test_this_kernel_drops_the_timed_packet_at_a_cut_and_no_other_one() -> None:
    with bench("rules") as one:
        rules = one.load([RulesetFile("rules", "nft", RULES)])
        layout = layout_of([rules])
        one.prepare(layout)
        reached = reach(one, rules, layout, None, lambda _: None)
        [policy] = [found for found in classes(reached) if not found.decider[3]]
        walk = compared(rules, policy.walk)
        assert len(walk) == 601
        with one.untraced():
            times = [min(took) for cut in (walk[0], walk[-1]) for took in one.price([policy.timed], 25, cut)]
        [([walked], _)] = one.play([policy.timed.steps])
    assert times[1] > 1.2 * times[0]
    assert walked.decider == policy.decider
