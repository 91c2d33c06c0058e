# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices by class: on a model, and how this machine's own kernel is timed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fwlab.model.ruleset import RulesetFile
from fwlab.own.bench_client import Timed
from fwlab.own.layout import layout_of
from fwlab.own.packets import TCP, UDP
from fwlab.own.prices import Price, classes, dearer, mean, price, share, side_by_side
from fwlab.own.reach import Reached, reach
from fwlab.own.rules import Match, Rules
from fwlab.own.showing import pair_lines, price_lines, prices_document
from fwlab.own.stretches import Division

from .kernel import bench, lacks
from .model import ModelBench, rules_of

DNS = ("udp dport 53 accept", (Match("proto", ((UDP, UDP),)), Match("dport", ((53, 53),))))
WEB = ("tcp dport 80 accept", (Match("proto", ((TCP, TCP),)), Match("dport", ((80, 80),))))
NS_PER_INSTRUCTION = 4


def counted(rules: Rules, *packets: int) -> Rules:
    """The rules with these counters."""
    for (key, rule), number in zip(rules.rules.items(), packets, strict=False):
        rules.rules[key] = replace(rule, packets=number)
    return rules


def priced(rules: Rules) -> tuple[list[Price], Reached]:
    model, layout = ModelBench("X", rules), layout_of([rules])
    reached = reach(model, rules, layout, 1, lambda _: None)
    bare = ModelBench("bare", rules_of(policy="accept"))
    return price(model, bare, rules, classes(reached), NS_PER_INSTRUCTION, lambda _: None), reached


def test_each_rule_and_the_policy_have_a_class_with_its_price() -> None:
    prices, reached = priced(rules_of(DNS, WEB))
    words = [reached.rules.words(one.of.decider) for one in prices]
    assert words == [DNS[0], WEB[0], "policy drop of c (inet f)"]
    # The median of nine times, each 4 ns longer than the one before, is 16 ns above the first.
    assert [one.total for one in prices] == [(4000 + 40 * asked + 16) / 4 for asked in (1, 2, 2)]
    assert [one.added for one in prices] == [10, 20, 20]
    assert prices[0].spread == pytest.approx(32 / 4056)


def test_a_class_is_priced_by_its_plainest_packet() -> None:
    prices, _ = priced(rules_of(DNS, WEB))
    [web] = [one for one in prices if one.of.decider[3] == 3]
    assert web.of.timed.place == 0
    assert web.of.timed.steps[0]["packet"]["dport"] == 80


def test_the_mean_and_the_shares_go_by_the_rules_counters() -> None:
    prices, reached = priced(counted(rules_of(DNS, WEB), 300, 100))
    dns, web = prices[0].total, prices[1].total
    assert mean(prices) == pytest.approx((300 * dns + 100 * web) / 400)
    assert share(prices[0], prices) == pytest.approx(300 * dns / (300 * dns + 100 * web))
    division = Division({}, [], None)
    lines = list(price_lines(prices, division, reached, "X"))
    assert DNS[0] in lines[1]
    assert f"{1e9 / mean(prices):,.0f} pps" in "".join(lines)
    found = prices_document(prices, division, reached)["classes"]
    assert (found[1]["counter"], found[1]["packets_per_second"]) == (100, round(1e9 / web))
    assert [one["compared_with"] for one in found] == [1, 2, 3]  # the policy is one of them


def test_without_counters_there_is_no_mean() -> None:
    prices, reached = priced(rules_of(DNS, WEB))
    assert mean(prices) is None
    assert not [line for line in price_lines(prices, Division({}, [], None), reached, "X") if "mean" in line]


def test_two_rulesets_are_priced_side_by_side_by_the_old_ones_counters() -> None:
    old, new = counted(rules_of(DNS, WEB), 1, 1000), rules_of(WEB, DNS)
    model, layout = ModelBench("OLD", old), layout_of([old])
    reached = reach(model, old, layout, 1, lambda _: None)
    pairs = side_by_side(model, ModelBench("NEW", new), reached, NS_PER_INSTRUCTION, lambda _: None)
    assert [(one.old, one.new) for one in pairs][:2] == [(1014, 1024), (1024, 1014)]
    more = dearer(pairs)
    assert more is not None
    assert more == pytest.approx((1024 + 1000 * 1014) / (1014 + 1000 * 1024) - 1)
    assert "by OLD's counters" in list(pair_lines(pairs, old))[-1]


LONG = "".join(f"ip saddr 10.0.{n >> 8}.{n & 255} drop\n" for n in range(4000))
CHAIN = "table ip f {{\nchain c {{\ntype filter hook forward priority 0; policy accept;\n{}}}\n}}\n"


@pytest.mark.skipif(bool(lacks()), reason=lacks())
def test_this_kernel_takes_longer_for_a_long_list_and_is_traced_afterwards() -> None:
    step = {"iface": "eth0", "out": "eth1", "packet": {"version": 4, "proto": UDP, "src": "198.18.1.10",
            "dst": "198.18.2.10", "sport": 1, "dport": 2}}  # fmt: skip
    times = []
    for text in (LONG, ""):
        with bench("rules") as one:
            rules = one.load([RulesetFile("rules", "nft", CHAIN.format(text))])
            one.prepare(layout_of([rules]))
            with one.untraced():
                [took] = one.price([Timed([step], 0)], 15)
            times.append(min(took))
            [([walk], _)] = one.play([[step]])
            assert walk.decider == ("ip", "f", "c", 0)
    assert len(took) == 15
    assert times[0] > 1.5 * times[1]


@pytest.mark.skipif(bool(lacks()), reason=lacks())
def test_a_packet_in_a_connection_is_timed_in_its_conversation() -> None:
    text = CHAIN.format("ct state established drop\n")
    opening = {"iface": "eth0", "out": "eth1", "packet": {"version": 4, "proto": TCP, "src": "198.18.1.10",
               "dst": "198.18.2.10", "sport": 1, "dport": 2, "flags": 2}}  # fmt: skip
    with bench("rules") as one:
        rules = one.load([RulesetFile("rules", "nft", text)])
        one.prepare(layout_of([rules]))
        took, nothing = one.price(
            [Timed([opening, {"reply": 0}], 1), Timed([opening, {"reply": 0}, {"reply": 1}], 2)], 3
        )
    assert (len(took), nothing) == (3, [])  # the reply is dropped, so nobody answers it
