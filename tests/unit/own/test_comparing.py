# SPDX-License-Identifier: GPL-2.0-or-later
"""Drawing, reaching, comparing and reducing, on a model in the kernel's place."""

from __future__ import annotations

import random

import pytest

from fwlab.model.errors import BadInput
from fwlab.own.borders import DPORT, SPORT, draw
from fwlab.own.comparing import Comparison, compare, first_difference
from fwlab.own.layout import Layout, layout_of
from fwlab.own.packets import SYN, TCP, UDP
from fwlab.own.reach import reach
from fwlab.own.rules import Chain, Match, Rule, Rules
from fwlab.own.showing import CAPTURED, comparison_document, comparison_lines
from fwlab.own.walks import DELIVERED, DROPPED, FORWARDED, GONE, REJECTED, Walk, walk

from .model import ModelBench, rules_of

IS_TCP, IS_UDP = Match("proto", ((TCP, TCP),)), Match("proto", ((UDP, UDP),))


def port(low: int, high: int | None = None) -> Match:
    return Match("dport", ((low, high or low),))


def network(address: int, bits: int) -> tuple[Match, Match]:
    low = address << 24
    return Match("version", ((4, 4),)), Match("saddr", ((low, low + (1 << (32 - bits)) - 1),))


WEB = ("tcp dport 80-90 accept", (IS_TCP, port(80, 90)))
TEN = ("ip saddr 10.0.0.0/8 drop", network(10, 8))


def compared(old: Rules, new: Rules, **given: bool) -> Comparison:
    benches = ModelBench("OLD", old), ModelBench("NEW", new, **given)
    return compare(*benches, (old, new), layout_of((old, new)), 1, lambda _: None)


@pytest.mark.parametrize(("low", "high"), [(80, 89), (80, 91), (79, 90), (81, 90)])
def test_a_border_that_moved_is_reduced_to_the_plainest_packet(low: int, high: int) -> None:
    found = compared(rules_of(TEN, WEB), rules_of(TEN, (f"tcp dport {low}-{high} accept", (IS_TCP, port(low, high)))))
    [one] = found.differences
    [step] = one.steps
    moved = {89: 90, 91: 91, 79: 79, 81: 80}[high if high != 90 else low]
    layout = layout_of([found.old.rules, found.new.rules])
    plain = {"src": layout.host(step["iface"], 4), "dst": layout.host(step["out"], 4), "sport": SPORT, "dport": moved}
    assert {name: step["packet"][name] for name in plain} == plain
    assert set(one.changed["fate"]) == {FORWARDED, DROPPED}


def test_the_order_of_two_rules_shows_in_a_packet_that_both_match() -> None:
    found = compared(rules_of(TEN, WEB), rules_of(WEB, TEN))
    [one] = found.differences
    assert one.steps[0]["packet"]["src"].startswith("10.")
    assert one.steps[0]["packet"]["dport"] in range(80, 91)
    lines = "\n".join(comparison_lines(found, ("OLD", "NEW")))
    assert "packets) drawn from both rulesets" in lines
    assert "packets) of the capture," in "\n".join(comparison_lines(found, ("OLD", "NEW"), CAPTURED))
    assert TEN[0] in lines
    assert WEB[0] in lines
    assert comparison_document(found)["differences"][0]["old"]["decided_by"] == TEN[0]


def test_rules_whose_order_does_not_matter_do_not_differ() -> None:
    other = ("udp dport 53 accept", (IS_UDP, port(53)))
    found = compared(rules_of(TEN, WEB, other), rules_of(TEN, other, WEB))
    assert not found.differences
    assert found.packets > 50


def test_what_does_not_show_again_alone_is_no_difference() -> None:
    found = compared(rules_of(WEB), rules_of(WEB), treated_once=True)
    assert not found.differences
    assert found.unstable == 1


def test_a_shadowed_rule_is_named_with_what_stands_before_it() -> None:
    rules = rules_of(
        TEN, ("ip saddr 10.0.0.0 accept", (*network(10, 8)[:1], Match("saddr", ((10 << 24, 10 << 24),)))), WEB
    )
    bench, layout = ModelBench("X", rules), layout_of([rules])
    found = reach(bench, rules, layout, 1, lambda _: None)
    [(rule, decider)] = found.missed()
    assert rule.text == "ip saddr 10.0.0.0 accept"
    assert rules.words(decider) == TEN[0]


def test_a_rule_behind_another_is_reached_past_it() -> None:
    """The plainest packet of the second is decided by the first; one from a neighbouring port is not."""
    rules = rules_of(("tcp dport 8080 drop", (IS_TCP, port(DPORT))), ("tcp accept", (IS_TCP,)))
    layout = layout_of([rules])
    found = reach(ModelBench("X", rules), rules, layout, 1, lambda _: None)
    assert not found.missed()


def test_without_a_seed_no_border_is_drawn() -> None:
    rules = rules_of(TEN, WEB)
    layout = layout_of([rules])
    drawn = draw(rules, layout, None)
    assert {key for one in drawn for key, _ in one.subjects} == set(rules.rules)
    ports = {step["packet"].get("dport") for one in drawn for step in one.steps if "packet" in step}
    assert not ports & {79, 90, 91}


def test_the_same_seed_draws_the_same() -> None:
    rules = rules_of(("tcp accept", (IS_TCP, Match("dport", tuple((p, p) for p in range(1, 4000, 7))))))
    layout = Layout(("a", "b"))
    once, again, other = (
        [one.identity for one in draw(rules, layout, seed)] for seed in (1, 1, 2)
    )  # fmt: skip
    assert once == again
    assert once != other
    assert len(set(once)) == len(once)


def test_random_chains_differ_exactly_where_a_packet_says_so() -> None:
    chance = random.Random(4)
    for _ in range(10):
        ranges = [(low, low + chance.randrange(5)) for low in chance.sample(range(10, 60), 4)]
        several = [(f"tcp dport {a}-{b} {chance.choice(['accept', 'drop'])}", (IS_TCP, port(a, b))) for a, b in ranges]
        old, new = several, chance.sample(several, 4)

        def decided(rules: list, number: int) -> str:
            return next(
                (text.split()[-1] for text, (_, one) in rules if one.spans[0][0] <= number <= one.spans[0][1]), "drop"
            )

        differ = any(decided(old, number) != decided(new, number) for number in range(70))
        assert bool(compared(rules_of(*old), rules_of(*new)).differences) is differ, (old, new)


MARK = ["inet", "fwlab_marks"]


def way(*events: list) -> list[list]:
    return [[*event, ""] for event in events]


def policy(chain: str) -> list:
    return [*MARK, chain, 0, "policy", "accept"]


def rule(chain: str, handle: int, verdict: str) -> list:
    return ["ip", "filter", chain, handle, "rule", verdict]


TRANSLATED = ["ip", "nat", "DOCKER", 3, "rule", "accept"]
REJECTION = [["lan", {"version": 4, "proto": 1, "type": 3, "code": 3, "src": "192.0.2.1", "dst": "192.0.2.2"}]]


@pytest.mark.parametrize(
    ("events", "left", "fate", "decider"),
    [
        ([policy("prerouting"), policy("forward"), rule("FORWARD", 4, "jump"), rule("web", 9, "accept"),
          policy("postrouting"), policy("postrouting_end")], [], FORWARDED, ("ip", "filter", "web", 9)),
        ([policy("prerouting"), policy("input"), ["ip", "filter", "INPUT", 0, "policy", "accept"], policy("input_end")],
         [], DELIVERED, ("ip", "filter", "INPUT", 0)),
        ([policy("prerouting"), policy("forward"), rule("FORWARD", 4, "drop")], [], DROPPED,
         ("ip", "filter", "FORWARD", 4)),
        ([policy("prerouting"), policy("forward"), rule("FORWARD", 4, "drop")], REJECTION, REJECTED,
         ("ip", "filter", "FORWARD", 4)),
        ([policy("prerouting")], [], GONE, None),
        # A flow table sends it on without a trace.
        ([], [["lan", {"version": 4, "proto": 6, "flags": 16}]], FORWARDED, None),
        # What the machine sends to itself meets two hooks that decide.
        ([policy("output"), rule("OUTPUT", 4, "accept"), policy("postrouting"), policy("postrouting_end"),
          policy("prerouting"), policy("input"), rule("INPUT", 5, "accept"), policy("input_end")], [], DELIVERED,
         ("ip", "filter", "INPUT", 5)),
        ([policy("prerouting"), rule("PREROUTING", 3, "accept"), policy("forward"), rule("FORWARD", 4, "accept"),
          ["ip", "security", "FORWARD", 0, "policy", "accept"], policy("postrouting"), policy("postrouting_end")],
         [], FORWARDED, ("ip", "filter", "FORWARD", 4)),
        # NAT's rules decide about no packet, neither before the filter nor behind it.
        ([policy("output"), TRANSLATED, ["ip", "filter", "OUTPUT", 0, "policy", "accept"], policy("postrouting"),
          policy("postrouting_end")], [], FORWARDED, ("ip", "filter", "OUTPUT", 0)),
        ([policy("input"), rule("INPUT", 4, "accept"), TRANSLATED, policy("input_end")], [], DELIVERED,
         ("ip", "filter", "INPUT", 4)),
    ],
)  # fmt: skip
def test_the_trace_says_what_became_of_a_packet_and_what_decided(
    events: list, left: list, fate: str, decider: tuple | None
) -> None:
    found = walk(way(*events), left, 0, frozenset([(*TRANSLATED[:3],)]))
    assert (found.fate, found.decider) == (fate, decider)


def test_a_packet_that_vanishes_anyway_is_no_difference() -> None:
    steps = [{"iface": "a", "out": "b", "packet": {}}]
    gone, dropped = (Walk(fate, None, (), ()) for fate in (GONE, DROPPED))
    assert first_difference(steps, ([gone], []), ([dropped], []), {}) is None
    sent = Walk(FORWARDED, None, (), (("b", {"proto": TCP, "flags": SYN}),))
    found = first_difference(steps, ([gone], []), ([sent], []), {})
    assert found is not None
    assert found.changed["packet left by"] == (None, "b")


def test_fragments_that_one_side_puts_together_are_no_difference() -> None:
    first, last = ({"iface": "a", "out": "b", "packet": {"part": part}} for part in (0, 1))
    part, whole = (("b", {"length": length}) for length in (8, 40))
    apart = [Walk(FORWARDED, None, (), (part,)), Walk(FORWARDED, None, (), (part,))]
    together = [Walk(GONE, None, (), ()), Walk(FORWARDED, None, (), (whole,))]
    assert first_difference([first, last], (apart, []), (together, []), {}) is None
    dropped = [together[0], Walk(DROPPED, None, (), ())]
    found = first_difference([first, last], (apart, []), (dropped, []), {})
    assert found is not None
    assert found.place == 1


@pytest.mark.parametrize(
    ("but", "found"),
    [("eth0", ("eth1", "eth0", "wan")), ("eth+", ("other0", "eth0", "wan")), ("lo", ("wan", "eth0"))],
)
def test_a_rule_for_all_interfaces_but_one_means_one_that_no_rule_names(but: str, found: tuple[str, ...]) -> None:
    rules = rules_of(("but", (Match("iif", ((but, but),), True),)), ("wan", (Match("oif", (("wan", "wan"),)),)))
    assert layout_of([rules]).interfaces == found


def test_more_interfaces_than_can_be_made_are_refused() -> None:
    names = [(f"vif{number}", (Match("iif", ((f"vif{number}", f"vif{number}"),)),)) for number in range(501)]
    with pytest.raises(BadInput, match="501 interfaces"):
        layout_of([rules_of(*names)])
    layout = layout_of([rules_of(*names[:400])])
    assert layout.host("vif399", 4) == "198.19.144.10"


@pytest.mark.parametrize(
    ("hooks", "own"), [(("input",), ("192.0.2.1",)), (("input", "forward"), ()), (("prerouting", "output"), ())]
)
def test_addresses_are_the_machines_where_no_other_packets_come(hooks: tuple, own: tuple) -> None:
    rules = Rules()
    for hook in hooks:
        rules.chains["ip", "t", hook] = Chain("ip", "t", hook, hook)
        rules.rules["ip", "t", hook, 1] = Rule(("ip", "t", hook, 1), "jump c", targets=(("c", ()),))
    rules.chains["ip", "t", "c"] = Chain("ip", "t", "c")
    matches = tuple(Match(end, ((192 << 24 | 2 << 8 | 1,) * 2,)) for end in ("saddr", "daddr"))
    rules.rules["ip", "t", "c", 2] = Rule(("ip", "t", "c", 2), "accept", matches)
    assert layout_of([rules]).own == own


def test_entries_of_the_connection_table_count_unless_they_differ_by_themselves() -> None:
    steps = [{"iface": "a", "out": "b", "packet": {}}]
    one = Walk(FORWARDED, None, (), ())
    assert first_difference(steps, ([one], ["x"]), ([one], []), {}) is not None
    assert first_difference(steps, ([one], ["x"]), ([one], []), {-1: set()}) is None
