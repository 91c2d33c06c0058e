# SPDX-License-Identifier: GPL-2.0-or-later
"""The counters of sink and generator: their rules, and when they are read."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.generator import sink
from fwlab.generator.sink import BothEnds, Sink, counting_ruleset, returning
from fwlab.metrics.measurement import Nodes, link_counters
from fwlab.model.declared_traffic import Connections, TrafficClass

LISTED = {"sources": {"first": "198.18.64.1", "step": 13, "count": 3}}
ADDRESSES = "{ 198.18.64.1, 198.18.64.14, 198.18.64.27 }"
PAIRS = "{ 198.18.64.1 . 80, 198.18.64.14 . 443, 198.18.64.27 . 80 }"
BOTH = {**LISTED, "destinations": {"first": "198.19.0.9", "count": 1}, "proto": "udp"}
BY_FLOW, BY_ADDRESS = {"stream": "s"}, {"stream": "s", "address": "destination"}
BY_PAYLOAD = {"stream": "s", "payload": {"at": 4, "size": 2}}
ANY_PORTS = "meta l4proto { udp, tcp } ip saddr . th dport"


@pytest.mark.parametrize(
    ("wanted", "flows", "sets", "matches"),
    [
        ({}, [], [], ["meta protocol ip", "meta protocol ip6"]),
        ({"proto": "icmp"}, [], [], ["meta protocol ip meta l4proto icmp", "meta protocol ip6 meta l4proto icmpv6"]),
        ({"dst": "2001:2::/48", "sport": 0, "dport": "4-6"}, [], [], ["ip6 daddr 2001:2::/48 th sport 0 th dport 4-6"]),
        (LISTED, [], [f"sources {{ type ipv4_addr; size 3; elements = {ADDRESSES} }}"], ["ip saddr @class-c-sources"]),
        (
            BOTH,
            [],
            [
                f"sources {{ type ipv4_addr; size 3; elements = {ADDRESSES} }}",
                "destinations { type ipv4_addr; size 1; elements = { 198.19.0.9 } }",
            ],
            ["ip saddr @class-c-sources ip daddr @class-c-destinations meta l4proto udp"],
        ),
        (
            {**LISTED, "dports": [80, 443]},
            [],
            [f"pairs {{ type ipv4_addr . inet_service; size 3; elements = {PAIRS} }}"],
            [f"{ANY_PORTS} @class-c-pairs"],
        ),
        (
            {"dport": 53, "payload": {"at": 12, "hex": "03777777"}},
            [],
            [],
            [f"meta protocol {ip} th dport 53 meta l4proto udp @th,160,32 0x03777777" for ip in ("ip", "ip6")],
        ),
        (
            {"src": "198.18.0.0/16", "proto": "udp", "payload": {"at": 0, "hex": ["6162", "63"]}},
            [],
            [],
            [f"ip saddr 198.18.0.0/16 meta l4proto udp {there}" for there in ("@th,64,16 0x6162", "@th,64,8 0x63")],
        ),
        (
            BY_FLOW,
            [("198.18.0.1", 1, 6)],
            ["flows { type ipv4_addr . inet_service . inet_proto; size 1; elements = { 198.18.0.1 . 1 . 6 } }"],
            [f"{ANY_PORTS} . meta l4proto @class-c-flows"],
        ),
        (
            BY_ADDRESS,
            [("198.18.0.1",), ("198.18.0.2",)],
            ["addresses { type ipv4_addr; size 2; elements = { 198.18.0.1, 198.18.0.2 } }"],
            ["ip daddr @class-c-addresses"],
        ),
        (
            BY_FLOW,
            [("198.18.0.1", 1, 6), ("2001:2::1", 53, 17)],
            [
                "flows { type ipv4_addr . inet_service . inet_proto; size 1; elements = { 198.18.0.1 . 1 . 6 } }",
                "flows6 { type ipv6_addr . inet_service . inet_proto; size 1; elements = { 2001:2::1 . 53 . 17 } }",
            ],
            [
                f"{ANY_PORTS} . meta l4proto @class-c-flows",
                "meta l4proto { udp, tcp } ip6 saddr . th dport . meta l4proto @class-c-flows6",
            ],
        ),
        (
            BY_ADDRESS,
            [("2001:2::1",)],
            ["addresses6 { type ipv6_addr; size 1; elements = { 2001:2::1 } }"],
            ["ip6 daddr @class-c-addresses6"],
        ),
        (BY_PAYLOAD, [(4, "6162"), (4, "6163")], [], ["meta l4proto udp @th,96,16 { 0x6162, 0x6163 }"]),
        (
            BY_PAYLOAD,
            [(2, "61"), (4, "6162")],
            [],
            ["meta l4proto udp @th,80,8 0x61", "meta l4proto udp @th,96,16 0x6162"],
        ),
        # A set must not be empty, and no rule may match everything.
        (BY_FLOW, [], [], []),
        (BY_ADDRESS, [], [], []),
        (BY_PAYLOAD, [], [], []),
    ],
)
def test_a_class_is_counted_by_its_rules(wanted: dict, flows: list, sets: list[str], matches: list[str]) -> None:
    rules = counting_ruleset("eth0", {"c": TrafficClass(**wanted)}, flows={"c": flows} if flows else {})
    lines = [line.strip() for line in rules.splitlines()]
    assert [line.removeprefix("set class-c-") for line in lines if line.startswith("set ")] == sets
    counted = ' counter name "class-c" drop'
    assert [line.removesuffix(counted) for line in lines if line.endswith(counted)] == matches
    assert "counter class-c { }" in lines


def test_probes_and_connections_pass_before_any_class_could_drop_them() -> None:
    web = Connections(servers="198.19.32.0/30", port=8080)
    everything = {"all": TrafficClass(src="198.18.0.0/16")}
    passing = "    icmp type echo-request accept\n    ip daddr 198.19.32.0/30 tcp dport 8080 accept\n"
    rules = counting_ruleset("eth0", everything, web, echo=True)
    assert rules.index(passing) < rules.index(' counter name "class-all" drop')
    assert counting_ruleset("eth0", everything) == rules.replace(passing, "")


def test_hosts_of_a_stream_are_counted_before_connections_unless_they_are_clients() -> None:
    web = Connections(clients="198.18.32.0/24", servers="198.19.32.0/30")
    wanted = {"forged": TrafficClass(stream="forged", address="source")}
    passing = " accept\n"
    for address, before in (("198.18.33.1", True), ("198.18.32.1", False)):
        rules = counting_ruleset("eth0", wanted, web, {"forged": [(address,)]})
        assert (rules.index(' counter name "class-forged" drop') < rules.index("tcp dport 80" + passing)) is before


class Node:
    """A node's nft. At each query every counter has reached the next of these numbers, in the end always the last."""

    def __init__(self, *reached: int) -> None:
        self.reached, self.before, self.loaded = list(reached), 0, ""
        self.commands: list[str] = []

    def run(self, command: str, data: bytes = b"") -> str:
        self.commands.append(command)
        if data:
            self.loaded, self.before = data.decode(), 0
            return ""
        assert command.startswith("nft -j reset counters")
        now = self.reached.pop(0) if len(self.reached) > 1 else self.reached[0]
        since, self.before = now - self.before, now
        names = [line.split()[1] for line in self.loaded.splitlines() if line.startswith("  counter ")]
        counters = [{"counter": {"name": name, "packets": since}} for name in names]
        return json.dumps({"nftables": [{"metainfo": {}}, *counters]})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink.time, "sleep", lambda _seconds: None)


ONE, OTHER = {"one": TrafficClass(**LISTED)}, {"all": TrafficClass()}


@pytest.mark.parametrize(
    ("reached", "options", "found", "queries"),
    [
        ([7], {}, 7, 2),  # twice the same: settled
        ([3, 6, 7], {}, 7, 4),
        ([7], {"all_of": 14}, 7, 1),  # all that was sent on
        ([0], {"all_of": 0}, 0, 1),
        ([3, 7], {"all_of": 14}, 7, 2),
        ([7], {"all_of": 15}, 7, 2),  # one was lost, or was not test traffic
        ([7], {"all_of": 13}, 7, 2),
        ([1, 2, 3], {"all_of": 9, "timeout_s": 0}, 1, 1),
    ],
)
def test_counts_settle(reached: list[int], options: dict[str, Any], found: int, queries: int) -> None:
    node = Node(*reached)
    counting = Sink(node, "eth0")
    counting.load_counters(ONE)
    assert counting.settled_counts(**options) == {"one": found, "other": found}
    assert len(node.commands) == 1 + queries


def test_loading_begins_at_zero_and_resets_what_is_loaded_already() -> None:
    """Loading a list takes a while. If the table is gone, it is loaded as usual."""
    node = Node(3, 8, 2)
    counting = Sink(node, "eth0")
    counting.load_counters(ONE)
    assert [counting.counts()["one"] for _ in range(2)] == [3, 8]
    for classes in (ONE, OTHER, ONE):
        counting.load_counters(classes)
    assert counting.counts() == {"one": 2, "other": 2}
    reset = "nft reset counters table netdev fwlab > /dev/null 2>&1 || nft -f -"
    assert [said for said in node.commands if "-j" not in said] == ["nft -f -", reset, "nft -f -", "nft -f -"]


def test_the_flows_are_those_of_the_traffic_while_any_absorb_all() -> None:
    node = Node()
    counting, classes = Sink(node, "eth0"), {"c": TrafficClass(**BY_FLOW)}
    for flows in ({}, {"c": [("198.18.0.1", 1, 6)]}):
        counting.set_flows(flows)
        counting.absorb_all(classes)
    assert len(node.commands) == 1
    counting.load_counters(classes)
    assert "198.18.0.1 . 1" in node.loaded
    counting.absorb_all(classes)
    counting.load_counters(classes, echo=True)
    counting.absorb_all(classes)
    assert len(node.commands) == 4, "probes would pass"


# ---- counted at both ends ----

ASKED = {"asked": TrafficClass(stream="asked", address="source")}
CLASSES = {**ASKED, "answered": TrafficClass(stream="answered", address="destination", at="generator")}


def test_each_class_is_counted_at_its_end_and_the_generator_drops_nothing() -> None:
    """A table left behind would otherwise keep the generator's own connections from their answers."""
    here, there = Node(7), Node(3)
    both = BothEnds(here, "eth0", there, "eth1")
    both.set_flows({"asked": [("198.18.0.1",)], "answered": [("198.18.0.1",)]})
    both.load_counters(ASKED)
    assert there.loaded == ""
    assert both.counts() == {"asked": 7, "other": 7}
    both.load_counters(CLASSES)
    assert both.counts() == {"asked": 7, "answered": 3, "other": 10}
    assert '    ip saddr @class-asked-addresses counter name "class-asked" drop' in here.loaded
    assert "class-answered" not in here.loaded
    assert '    ip daddr @class-answered-addresses counter name "class-answered" accept' in there.loaded
    assert "class-asked" not in there.loaded
    assert " drop" not in there.loaded
    both.load_counters(ASKED)
    assert both.counts() == {"asked": 7, "other": 7}


@pytest.mark.parametrize(("classes", "sent_on"), [(ASKED, 20), (CLASSES, 25)])
def test_what_is_sent_back_counts_as_sent_on_where_it_is_counted(classes: dict, sent_on: int) -> None:
    counters = {"eth0.rx_packets": 50, "eth0.tx_packets": 5, "eth1.rx_packets": 1, "eth1.tx_packets": 20}
    nodes = Nodes(SimpleNamespace(counters=lambda: counters), None, None, None, classes, lambda _level: None, 1)
    assert returning(classes) == (sent_on == 25)
    assert link_counters(nodes) == (50, sent_on)
