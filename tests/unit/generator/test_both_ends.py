# SPDX-License-Identifier: GPL-2.0-or-later
"""Classes by the addresses of a stream, and classes that are counted where the DUT sends packets back to."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from fwlab.generator.sink import BothEnds, counting_ruleset, returning
from fwlab.metrics.nodes import Nodes, through
from fwlab.model.declared_traffic import TrafficClass
from fwlab.traffic import expand
from fwlab.traffic.classes import classify, stream_flows
from tests.fakes.traffic_forms import burst, stream

ASKED = TrafficClass(stream="asked", address="source")
ANSWERED = TrafficClass(stream="answered", address="destination", at="generator")
CLASSES = {"asked": ASKED, "answered": ANSWERED}


def query(host: int, port: int = 4000) -> Ether:
    return Ether() / IP(src=f"198.18.0.{host}", dst="198.19.0.1") / UDP(sport=port, dport=53)


def answer(host: int, port: int = 4000) -> Ether:
    return Ether() / IP(src="198.19.0.1", dst=f"198.18.0.{host}") / UDP(sport=53, dport=port)


def frames(*named):
    streams = [
        stream(data=bytes(layer), mode=burst(1), isg=float(n), name=name) for n, (name, layer) in enumerate(named)
    ]
    return expand(streams, limit=len(named))


SENT = frames(("asked", query(1)), ("answered", answer(1)), ("more", query(1, 9)), ("others", query(2)))


def test_each_end_has_classes_of_its_own() -> None:
    assert classify(SENT, CLASSES).tolist() == [0, 1, 0, -1]


def test_what_tells_classes_at_different_ends_may_be_the_same() -> None:
    same = {"payload": {"at": 0, "size": 2}}
    classes = {
        "asked": TrafficClass(stream="asked", **same),
        "told": TrafficClass(stream="told", at="generator", **same),
    }
    sent = frames(("asked", query(1) / b"ab"), ("told", answer(1) / b"ab"), ("others", query(1) / b"ab"))
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
    assert through(nodes) == (50, sent_on)
