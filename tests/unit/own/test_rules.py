# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules as the kernel's tools print them, read as data."""

from __future__ import annotations

import ipaddress
import json

import pytest

from fwlab.own.packets import ACK, PSH, SYN
from fwlab.own.reading import read
from fwlab.own.rules import Match, Rules, concrete, names_it

CHAIN = {
    "family": "inet",
    "table": "f",
    "name": "c",
    "handle": 1,
    "hook": "forward",
    "type": "filter",
    "policy": "drop",
}


def number(address: str) -> int:
    return int(ipaddress.ip_address(address))


def listing(*expressions: list, more: tuple = ()) -> str:
    rules = [
        {"rule": {"family": "inet", "table": "f", "chain": "c", "handle": handle, "expr": expression}}
        for handle, expression in enumerate(expressions, 2)
    ]
    return json.dumps({"nftables": [*more, {"chain": CHAIN}, *rules]})


def match(left: dict, right: object, operator: str = "==") -> dict:
    return {"match": {"op": operator, "left": left, "right": right}}


def payload(protocol: str, field: str) -> dict:
    return {"payload": {"protocol": protocol, "field": field}}


def only(rules: Rules):
    [rule] = rules.rules.values()
    return rule


@pytest.mark.parametrize(
    ("condition", "field", "spans"),
    [
        (match(payload("tcp", "dport"), {"set": [80, {"range": [1000, 2000]}]}), "dport", ((80, 80), (1000, 2000))),
        (match(payload("ip", "saddr"), {"prefix": {"addr": "192.0.2.0", "len": 31}}), "saddr",
         ((number("192.0.2.0"), number("192.0.2.1")),)),
        (match(payload("ip6", "daddr"), "2001:db8::7"), "daddr", ((number("2001:db8::7"),) * 2,)),
        (match({"meta": {"key": "iifname"}}, "eth*"), "iif", (("eth*", "eth*"),)),
        (match({"ct": {"key": "state"}}, ["established", "related"], "in"), "state",
         (("established", "established"), ("related", "related"))),
        (match(payload("ip", "dscp"), "af21"), "dscp", ((18, 18),)),
        (match(payload("icmpv6", "type"), "nd-neighbor-solicit"), "type", ((135, 135),)),
        (match(payload("udp", "sport"), 1024, ">="), "sport", ((1024, 65535),)),
        (match({"meta": {"key": "l4proto"}}, {"set": ["tcp", "udp"]}), "proto", ((6, 6), (17, 17))),
        (match(payload("ip", "protocol"), "ospf"), "proto", ((89, 89),)),
        (match({"exthdr": {"name": "rt"}}, True), "header", ((43, 43),)),
        (match({"exthdr": {"name": "frag", "field": "more-fragments"}}, 1), "header", ((44, 44),)),
        (match({"&": [payload("ip", "frag-off"), 0x1FFF]}, 0, "!="), "header", ((44, 44),)),
        (match({"fib": {"result": "type", "flags": ["daddr"]}}, "local"), "kind", (("local", "local"),)),
        (match({"meta": {"key": "pkttype"}}, "multicast"), "kind", (("multicast", "multicast"),)),
    ],
)  # fmt: skip
def test_a_condition_of_nft(condition: dict, field: str, spans: tuple) -> None:
    rule = only(read(listing([condition, {"accept": None}])))
    assert not rule.unread
    assert [one.spans for one in rule.matches if one.field == field] == [spans]


def test_what_a_field_implies_is_asked_for_too() -> None:
    matches = only(read(listing([match(payload("tcp", "dport"), 22)]))).matches
    assert Match("proto", ((6, 6),)) in matches


def test_flags_are_those_that_the_mask_leaves() -> None:
    masked = {"&": [payload("tcp", "flags"), ["fin", "syn", "rst", "ack"]]}
    [flags] = [one for one in only(read(listing([match(masked, "syn")]))).matches if one.field == "flags"]
    assert flags.spans == ((SYN, SYN),)
    _, flags = only(read(listing([match(payload("tcp", "flags"), "psh", "in")]))).matches
    assert (PSH | ACK,) * 2 in flags.spans
    assert (SYN, SYN) not in flags.spans


def test_a_named_set_is_looked_up() -> None:
    named = {
        "set": {"family": "inet", "table": "f", "name": "s", "elem": ["192.0.2.1", {"elem": {"val": "192.0.2.9"}}]}
    }
    rule = only(read(listing([match(payload("ip", "saddr"), "@s")], more=(named,))))
    assert [one.spans for one in rule.matches if one.field == "saddr"] == [
        ((number("192.0.2.1"),) * 2, (number("192.0.2.9"),) * 2)
    ]


def test_each_branch_of_a_verdict_map_has_its_condition() -> None:
    data = {"set": [["established", {"accept": None}], ["new", {"jump": {"target": "n"}}]]}
    rule = only(read(listing([{"vmap": {"key": {"ct": {"key": "state"}}, "data": data}}])))
    assert [(target, one.spans) for target, [one] in rule.targets] == [
        ("", (("established", "established"),)), ("n", (("new", "new"),)),
    ]  # fmt: skip


def test_a_condition_that_is_not_understood_is_named() -> None:
    rule = only(read(listing([match({"meta": {"key": "mark"}}, 5), match(payload("tcp", "dport"), 22)])))
    assert len(rule.unread) == 1
    assert "mark" in rule.unread[0]
    assert any(one.field == "dport" for one in rule.matches)


def test_a_statement_that_nft_cannot_print_as_json_is_named() -> None:
    rule = only(read(listing(["map stmt", match(payload("tcp", "dport"), 22)])))
    assert rule.unread == ("map stmt",)
    assert any(one.field == "dport" for one in rule.matches)


def test_names_that_no_interface_can_have_are_left_out() -> None:
    names = {"set": ["/never/", "a-name-that-is-too-long", "lan", "lo"]}
    assert read(listing([match({"meta": {"key": "iifname"}}, names)])).interfaces() == ["lan"]


def test_counter_limit_and_text() -> None:
    limit = {"limit": {"rate": 10, "burst": 7, "per": "minute"}}
    texts = "table inet f { # handle 1\n\tchain c { # handle 1\n\t\ttype filter hook forward priority 0;\n"
    texts += "\t\ttcp dport { 1,\n\t\t\t2 } accept # handle 2\n\t}\n}\n"
    rule = only(read(listing([limit, {"counter": {"packets": 9, "bytes": 1}}]), texts))
    assert (rule.packets, rule.limit, rule.text) == (9, (10 / 60, 7), "tcp dport { 1, 2 } accept")


SAVED = """*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [12:900]
:web - [0:0]
[7:420] -A FORWARD ! -i eth+ -s 10.0.0.0/8 -p tcp -m tcp --tcp-flags FIN,SYN,ACK SYN -m comment --comment "-j b" -j web
-A web -p udp -m multiport --dports 53,100:110 -m limit --limit 5/min --limit-burst 9 -m mark --mark 0x1 -j ACCEPT
-A web -m set --match-set ports dst,dst -j DROP
COMMIT
"""


def of_iptables() -> Rules:
    chains = [
        {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward", "type": "filter"}},
        {"chain": {"family": "ip", "table": "filter", "name": "web"}},
    ]
    rules = [
        {"rule": {"family": "ip", "table": "filter", "chain": chain, "handle": handle, "expr": [{"xt": None}]}}
        for handle, chain in ((4, "FORWARD"), (5, "web"), (6, "web"))
    ]
    sets = "create ports hash:ip,port family inet\nadd ports 192.0.2.1,tcp:8080\nadd ports 192.0.2.2,tcp:80\n"
    return read(json.dumps({"nftables": [*chains, *rules]}), saved={"iptables": SAVED}, sets=sets)


def test_rules_of_iptables_have_the_conditions_that_it_saves() -> None:
    first, second, third = of_iptables().rules.values()
    assert Match("iif", (("eth+", "eth+"),), negated=True) in first.matches
    assert Match("flags", ((SYN, SYN),)) in first.matches
    assert (first.packets, first.targets) == (7, (("web", ()),))
    assert first.text.startswith("-A FORWARD ! -i eth+")
    assert Match("dport", ((53, 53), (100, 110))) in second.matches
    assert (second.limit, second.unread) == ((5 / 60, 9), ("--mark 0x1",))
    entries = [("192.0.2.1", 8080), ("192.0.2.2", 80)]
    assert third.targets == tuple(
        (
            "DROP",
            (Match("daddr", ((number(address),) * 2,)), Match("proto", ((6, 6),)), Match("dport", ((port, port),))),
        )
        for address, port in entries
    )


def test_a_set_of_several_fields_asks_for_one_of_its_elements() -> None:
    parts = [payload("ip", "saddr"), payload("tcp", "dport")]
    elements = {"set": [{"concat": ["192.0.2.1", 22]}, {"concat": ["192.0.2.2", 80]}]}
    rule = only(read(listing([match({"concat": parts}, elements), {"jump": {"target": "t"}}])))
    assert not rule.unread
    asked = [(to, [one.spans for one in own if one.field in ("saddr", "dport")]) for to, own in rule.targets]
    assert asked == [
        ("t", [((number("192.0.2.1"),) * 2,), ((22, 22),)]), ("t", [((number("192.0.2.2"),) * 2,), ((80, 80),)]),
    ]  # fmt: skip


AT_DEVICES = """table netdev t { # handle 1
	chain c { # handle 1
		type filter hook ingress device "wan" priority 0; policy accept;
	}
	chain d { # handle 2
		type filter hook ingress devices = { "lan", "dmz" } priority 0; policy accept;
	}
}
"""


def test_a_chain_at_a_device_is_met_there_only() -> None:
    chains = [
        {"chain": {"family": "netdev", "table": "t", "name": name, "hook": "ingress", "type": "filter"}}
        for name in "cd"
    ]
    flow = {"flowtable": {"family": "inet", "table": "f", "name": "ft", "dev": ["wan", "lte"]}}
    rules = read(json.dumps({"nftables": [*chains, flow]}), AT_DEVICES)
    ways = {where[2]: way for where, [(_, way)] in rules.reached_from().items()}
    assert ways == {
        "c": (Match("iif", (("wan", "wan"),)),), "d": (Match("iif", (("lan", "lan"), ("dmz", "dmz"))),),
    }  # fmt: skip
    assert rules.interfaces() == ["wan", "lan", "dmz", "lte"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("-f", Match("header", ((44, 44),))),
        ("! -f", Match("header", ((44, 44),), negated=True)),
        ("-m rt --rt-type 0", Match("header", ((43, 43),))),
        ("-m addrtype --dst-type BROADCAST", Match("kind", (("broadcast", "broadcast"),))),
        ("-m ttl --ttl-lt 5", Match("ttl", ((0, 4),))),
        ("-m conntrack --ctstate RELATED,DNAT", Match("state", (("related", "related"),))),
        ("-p udp -m multiport --ports 53", Match("dport", ((53, 53),))),
    ],
)
def test_conditions_of_iptables_that_people_use(condition: str, expected: Match) -> None:
    chain = {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward"}
    listed = [{"chain": chain}, {"rule": {**chain, "chain": "FORWARD", "handle": 4, "expr": []}}]
    saved = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {condition} -j DROP\nCOMMIT\n"
    rule = only(read(json.dumps({"nftables": listed}), saved={"iptables": saved}))
    assert expected in rule.matches
    assert not rule.unread


def test_an_option_without_a_value_swallows_no_other() -> None:
    saved = (
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m recent --update --hitcount 6 --rsource -p tcp -j DROP\nCOMMIT\n"
    )
    chain = {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward"}
    listed = [{"chain": chain}, {"rule": {**chain, "chain": "FORWARD", "handle": 4, "expr": []}}]
    rule = only(read(json.dumps({"nftables": listed}), saved={"iptables": saved}))
    assert rule.limit is not None
    assert rule.limit[1] == 6
    assert Match("proto", ((6, 6),)) in rule.matches
    assert [word.split()[0] for word in rule.unread] == ["--update", "--rsource"]


def test_a_chain_is_reached_by_the_conditions_of_the_jump() -> None:
    rules = of_iptables()
    assert rules.chains["ip", "filter", "FORWARD"].packets == 12
    [(hook, way)] = rules.reached_from()["ip", "filter", "web"]
    assert hook == "forward"
    assert Match("flags", ((SYN, SYN),)) in way
    assert rules.interfaces() == ["eth0"]
    assert rules.remembers  # it has a limit


def test_chains_that_call_each_other_come_to_an_end() -> None:
    chains = [{"chain": CHAIN}, {"chain": {"family": "inet", "table": "f", "name": "d"}}]
    rules = [
        {"rule": {"family": "inet", "table": "f", "chain": chain, "handle": handle, "expr": [{"jump": {"target": to}}]}}
        for handle, chain, to in ((2, "c", "d"), (3, "d", "c"))
    ]
    assert read(json.dumps({"nftables": [*chains, *rules]})).reached_from()


@pytest.mark.parametrize(
    ("pattern", "name", "means"), [("eth+", "eth7", True), ("wl*", "eth0", False), ("lan", "lan", True)]
)
def test_names_of_interfaces(pattern: str, name: str, means: bool) -> None:
    assert names_it(pattern, name) is means
    assert names_it(pattern, concrete(pattern))


def test_chains_that_only_nat_enters_are_known() -> None:
    nat = {**CHAIN, "name": "dstnat", "hook": "prerouting", "type": "nat", "policy": "accept"}
    own, shared = ({"family": "inet", "table": "f", "name": name, "handle": 9} for name in ("own", "shared"))
    jumps = [
        {"rule": {"family": "inet", "table": "f", "chain": chain, "handle": handle, "expr": [{"jump": {"target": to}}]}}
        for handle, (chain, to) in enumerate((("dstnat", "own"), ("dstnat", "shared"), ("c", "shared")), 20)
    ]
    given = [{"chain": one} for one in (nat, own, shared)] + jumps
    found = read(listing([{"accept": None}], more=tuple(given)))
    assert found.translating == {("inet", "f", "dstnat"), ("inet", "f", "own")}
