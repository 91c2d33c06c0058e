# SPDX-License-Identifier: GPL-2.0-or-later
"""The counters of sink and generator: their rules, and when they are read."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from fwlab.generator import sink
from fwlab.generator.sink import BothEnds, Sink, counting_ruleset, returning
from fwlab.metrics.measurement import Nodes, link_counters
from fwlab.model.declared_traffic import TrafficClass
from fwlab.traffic.classes import classify, stream_flows
from tests.fakes.traffic_forms import one_each


class Answers:
    """A sink with the next pair of counts at each query, and in the end always the last pair. A query resets them."""

    def __init__(self, *pairs: tuple[int, int]) -> None:
        self.pairs, self.asked, self.read = list(pairs), 0, (0, 0)

    def run(self, command: str) -> str:
        assert command.startswith("nft -j reset counters")
        self.asked += 1
        counts = self.pairs.pop(0) if len(self.pairs) > 1 else self.pairs[0]
        since, self.read = [now - before for now, before in zip(counts, self.read, strict=True)], counts
        named = zip(("class-attacker", "class-other"), since, strict=True)
        return json.dumps({"nftables": [{"metainfo": {}}, *({"counter": {"name": n, "packets": p}} for n, p in named)]})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink.time, "sleep", lambda _seconds: None)


@pytest.mark.parametrize(
    ("pairs", "all_of", "found", "asked"),
    [
        ([(7, 1)], None, (7, 1), 2),  # twice the same: settled
        ([(3, 0), (6, 1), (7, 1)], None, (7, 1), 4),
        ([(7, 1)], 8, (7, 1), 1),  # all that was sent on
        ([(0, 0)], 0, (0, 0), 1),
        ([(3, 0), (7, 1)], 8, (7, 1), 2),
        ([(7, 1)], 9, (7, 1), 2),  # one was lost, or was not test traffic
        ([(7, 1)], 6, (7, 1), 2),
    ],
)
def test_counts_settle(pairs: list[tuple[int, int]], all_of: int | None, found: tuple[int, int], asked: int) -> None:
    node = Answers(*pairs)
    counts = Sink(node, "eth0").settled_counts(all_of)
    assert (counts, node.asked) == ({"attacker": found[0], "other": found[1]}, asked)


def test_loading_begins_at_zero() -> None:
    node = Answers((3, 1), (8, 1))
    counting = Sink(node, "eth0")
    assert counting.counts() == {"attacker": 3, "other": 1}
    assert counting.counts() == {"attacker": 8, "other": 1}
    counting._ssh = Loading()
    counting.load_counters({"all": TrafficClass()})
    counting._ssh = Answers((2, 0))
    assert counting.counts() == {"attacker": 2, "other": 0}


def test_waiting_has_a_time_limit() -> None:
    node = Answers((1, 0), (2, 0), (3, 0))
    assert Sink(node, "eth0").settled_counts(9, timeout_s=0) == {"attacker": 1, "other": 0}


def test_probes_pass_before_any_class_could_drop_them() -> None:
    everything = {"all": TrafficClass(src="198.18.0.0/16")}
    accept = "    icmp type echo-request accept\n"
    ruleset = counting_ruleset("eth0", everything, echo=True)
    assert ruleset.index(accept) < ruleset.index('counter name "class-all" drop')
    assert accept not in counting_ruleset("eth0", everything)


LISTED = TrafficClass(sources={"first": "198.18.64.1", "step": 13, "count": 3})


def test_a_list_of_addresses_becomes_an_nft_set() -> None:
    rules = counting_ruleset("eth0", {"listed": LISTED}).splitlines()
    elements = "198.18.64.1, 198.18.64.14, 198.18.64.27"
    assert f"  set class-listed-sources {{ type ipv4_addr; size 3; elements = {{ {elements} }} }}" in rules
    assert '    ip saddr @class-listed-sources counter name "class-listed" drop' in rules
    assert sum("class-listed" in line for line in rules) == 3  # the counter, the set and one rule


def test_lists_of_sources_destinations_and_pairs() -> None:
    both = TrafficClass(sources=LISTED.sources, destinations={"first": "198.19.0.9", "count": 1}, proto="udp")
    pairs = TrafficClass(sources=LISTED.sources, dports=[80, 443])
    rules = counting_ruleset("eth0", {"both": both, "pairs": pairs})
    assert "  set class-both-destinations { type ipv4_addr; size 1; elements = { 198.19.0.9 } }" in rules
    assert "ip saddr @class-both-sources ip daddr @class-both-destinations meta l4proto udp counter" in rules
    assert "elements = { 198.18.64.1 . 80, 198.18.64.14 . 443, 198.18.64.27 . 80 }" in rules
    assert "meta l4proto { udp, tcp } ip saddr . th dport @class-pairs-pairs counter" in rules


def test_a_payload_is_compared_behind_the_udp_header() -> None:
    one = TrafficClass(dport=53, payload={"at": 12, "hex": "03777777"})
    any_of = TrafficClass(src="198.18.0.0/16", proto="udp", payload={"at": 0, "hex": ["6162", "63"]})
    rules = [line.strip() for line in counting_ruleset("eth0", {"one": one, "any": any_of}).splitlines()]
    for family in ("ip", "ip6"):
        match = f"meta protocol {family} th dport 53 meta l4proto udp @th,160,32 0x03777777"
        assert f'{match} counter name "class-one" drop' in rules
    for match in ("@th,64,16 0x6162", "@th,64,8 0x63"):
        assert f'ip saddr 198.18.0.0/16 meta l4proto udp {match} counter name "class-any" drop' in rules


class Loading:
    """A sink that records its commands and their input."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bytes]] = []

    def run(self, command: str, data: bytes) -> None:
        if not data:
            raise AssertionError("a sink without a ruleset counts nothing")
        self.told.append((command, data))


def test_unchanged_classes_are_reset_instead_of_loaded() -> None:
    """Loading a list takes a while. If the table is gone, it is loaded as usual."""
    node = Loading()
    counting = Sink(node, "eth0")
    one, other = {"listed": LISTED}, {"all": TrafficClass()}
    for classes in (one, one, other, one):
        counting.load_counters(classes)
    anew = "nft reset counters table netdev fwlab > /dev/null 2>&1 || nft -f -"
    assert [command for command, _ in node.told] == ["nft -f -", anew, "nft -f -", "nft -f -"]
    assert all(b"table netdev fwlab" in data for _, data in node.told)


# ---- counted at both ends ----

ASKED = TrafficClass(stream="asked", address="source")
ANSWERED = TrafficClass(stream="answered", address="destination", at="generator")
CLASSES = {"asked": ASKED, "answered": ANSWERED}


def query(host: int, port: int = 4000) -> Ether:
    return Ether() / IP(src=f"198.18.0.{host}", dst="198.19.0.1") / UDP(sport=port, dport=53)


def answer(host: int, port: int = 4000) -> Ether:
    return Ether() / IP(src="198.19.0.1", dst=f"198.18.0.{host}") / UDP(sport=53, dport=port)


SENT = one_each(("asked", query(1)), ("answered", answer(1)), ("more", query(1, 9)), ("others", query(2)))


def test_each_end_has_classes_of_its_own() -> None:
    assert classify(SENT, CLASSES).tolist() == [0, 1, 0, -1]


def test_what_tells_classes_at_different_ends_may_be_the_same() -> None:
    same = {"payload": {"at": 0, "size": 2}}
    classes = {
        "asked": TrafficClass(stream="asked", **same),
        "told": TrafficClass(stream="told", at="generator", **same),
    }
    sent = one_each(("asked", query(1) / b"ab"), ("told", answer(1) / b"ab"), ("others", query(1) / b"ab"))
    assert classify(sent, classes).tolist() == [0, 1, 0]


def test_both_ends_count_by_the_same_addresses() -> None:
    rules = counting_ruleset("eth0", CLASSES, flows=stream_flows(SENT, CLASSES)).splitlines()
    assert "  set class-asked-addresses { type ipv4_addr; size 1; elements = { 198.18.0.1 } }" in rules
    assert '    ip saddr @class-asked-addresses counter name "class-asked" drop' in rules
    assert '    ip daddr @class-answered-addresses counter name "class-answered" drop' in rules


class Node:
    """A node whose counters all show the same number."""

    def __init__(self, packets: int) -> None:
        self.packets, self.loaded = packets, ""

    def run(self, command: str, data: bytes = b"") -> str:
        if data:
            self.loaded = data.decode()
            return ""
        names = [line.split()[1] for line in self.loaded.splitlines() if line.startswith("  counter ")]
        return json.dumps({"nftables": [{"counter": {"name": name, "packets": self.packets}} for name in names]})


def test_each_class_is_counted_at_its_end() -> None:
    sink, generator = Node(7), Node(3)
    both = BothEnds(sink, "eth0", generator, "eth1")
    both.set_flows(stream_flows(SENT, CLASSES))
    both.load_counters(CLASSES)
    assert both.counts() == {"asked": 7, "answered": 3, "other": 10}
    assert "class-answered" not in sink.loaded
    assert "class-asked" not in generator.loaded


def test_the_generator_is_asked_only_while_a_class_is_counted_there() -> None:
    sink, generator = Node(7), Node(3)
    both = BothEnds(sink, "eth0", generator, "eth1")
    both.load_counters({"asked": ASKED})
    assert generator.loaded == ""
    assert both.counts() == {"asked": 7, "other": 7}
    both.load_counters(CLASSES)
    assert both.counts()["answered"] == 3
    both.load_counters({"asked": ASKED})
    assert both.counts() == {"asked": 7, "other": 7}


def test_the_generator_drops_nothing() -> None:
    """A table left behind would otherwise keep its own connections from their answers."""
    sink, generator = Node(0), Node(0)
    BothEnds(sink, "eth0", generator, "eth0").load_counters(CLASSES)
    assert " drop" in sink.loaded
    assert " drop" not in generator.loaded


@pytest.mark.parametrize(("classes", "sent_on"), [({"asked": ASKED}, 20), (CLASSES, 25)])
def test_what_is_sent_back_counts_as_sent_on_where_it_is_counted(classes: dict, sent_on: int) -> None:
    counters = {"eth0.rx_packets": 50, "eth0.tx_packets": 5, "eth1.rx_packets": 1, "eth1.tx_packets": 20}
    nodes = Nodes(SimpleNamespace(counters=lambda: counters), None, None, None, classes, lambda _level: None, 1)
    assert returning(classes) == (sent_on == 25)
    assert link_counters(nodes) == (50, sent_on)
