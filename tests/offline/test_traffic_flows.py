# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic classes declared by a stream: host and sink use the same flows."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from fwlab.generator.sink import Sink, counting_ruleset
from fwlab.model.declared_traffic import TrafficClass
from fwlab.model.errors import BadInput
from fwlab.traffic import expand
from fwlab.traffic.classes import classify, count_classes
from fwlab.traffic.flows import listed_flows
from tests.offline.traffic_forms import burst, stream

BAD, GOOD = TrafficClass(stream="bad"), TrafficClass(stream="good")
CLASSES = {"evil": BAD, "fine": GOOD}


def tcp(source: str, port: int, **more: int) -> Ether:
    return Ether() / IP(src=source, dst="198.19.0.1") / TCP(dport=port, **more)


def frames(*named):
    """One frame for each pair of stream name and packet, in order."""
    streams = [
        stream(data=bytes(layer), mode=burst(1), isg=float(n), name=name) for n, (name, layer) in enumerate(named)
    ]
    return expand(streams, limit=len(named))


def test_a_packet_belongs_to_the_stream_that_has_its_flow() -> None:
    sent = frames(("bad", tcp("198.18.0.1", 1)), ("good", tcp("198.18.0.1", 2)), (None, tcp("198.18.0.2", 1)))
    assert classify(sent, CLASSES).tolist() == [0, 1, -1]
    assert count_classes(sent, CLASSES) == {"evil": 1, "fine": 1, "other": 1}


def test_a_stream_without_a_class_may_have_the_same_flow() -> None:
    """The sink cannot distinguish them, so the host does not either."""
    sent = frames(("bad", tcp("198.18.0.1", 1)), ("more", tcp("198.18.0.1", 1, sport=9)))
    assert classify(sent, CLASSES).tolist() == [0, 0]


def test_the_first_class_counts_whether_it_is_declared_by_a_stream_or_not() -> None:
    sent = frames(("bad", tcp("198.18.0.1", 1)), ("more", tcp("198.18.0.1", 2)))
    net = TrafficClass(src="198.18.0.0/24")
    assert classify(sent, {"net": net, "evil": BAD}).tolist() == [0, 0]
    assert classify(sent, {"evil": BAD, "net": net}).tolist() == [0, 1]


def test_two_classes_that_share_a_flow_are_refused() -> None:
    sent = frames(("bad", tcp("198.18.0.1", 1)), ("good", tcp("198.18.0.1", 1, sport=9)))
    with pytest.raises(BadInput, match="classes evil and fine share a flow: 198.18.0.1 to port 1"):
        listed_flows(sent, CLASSES)


@pytest.mark.parametrize(
    "layer",
    [
        Ether() / IPv6(src="2001:2::1", dst="2001:2::2") / UDP(),
        Ether() / IP(src="198.18.0.1", dst="198.19.0.1") / ICMP(),
    ],
)
def test_a_class_by_stream_requires_flows(layer: Ether) -> None:
    with pytest.raises(BadInput, match="stream bad: class evil requires IPv4 packets with ports"):
        listed_flows(frames(("bad", layer)), CLASSES)


def test_classes_by_address_list_no_flows() -> None:
    sent = frames(("bad", Ether() / IPv6(src="2001:2::1", dst="2001:2::2") / UDP()))
    assert listed_flows(sent, {"net": TrafficClass(src="2001:2::/48")}) == {}


@pytest.mark.parametrize("more", [{"src": "198.18.0.0/24"}, {"sport": 1025}, {"proto": "tcp"}])
def test_a_class_by_stream_has_no_other_criteria(more: dict) -> None:
    with pytest.raises(ValidationError, match="a class by stream can have no other field, except ports and at"):
        TrafficClass(stream="bad", **more)


def test_the_sink_counts_by_the_same_flows() -> None:
    sent = frames(("bad", tcp("198.18.0.1", 1)), ("good", tcp("198.18.0.1", 2)))
    rules = counting_ruleset("eth0", CLASSES, flows=listed_flows(sent, CLASSES)).splitlines()
    kind = "type ipv4_addr . inet_service; size 1;"
    assert f"  set class-evil-flows {{ {kind} elements = {{ 198.18.0.1 . 1 }} }}" in rules
    assert f"  set class-fine-flows {{ {kind} elements = {{ 198.18.0.1 . 2 }} }}" in rules
    asked = [line.strip() for line in rules if "@" in line]
    assert asked == [
        f'meta l4proto {{ udp, tcp }} ip saddr . th dport @class-{name}-flows counter name "class-{name}" drop'
        for name in CLASSES
    ]


def test_a_class_without_flows_counts_nothing() -> None:
    """A set must not be empty, and no rule may match everything."""
    rules = counting_ruleset("eth0", CLASSES, flows=listed_flows(frames((None, tcp("198.18.0.1", 1))), CLASSES))
    assert "@" not in rules
    assert "  set " not in rules
    assert "counter class-evil { }" in rules


def test_the_sink_reloads_its_counters_for_other_flows() -> None:
    class Node:
        loaded: list[bytes] = []

        def run(self, _command: str, data: bytes) -> None:
            self.loaded.append(data)

    node = Node()
    sink = Sink(node, "eth0")
    for flows in ({}, {}, {"evil": [("198.18.0.1", 1)]}, {"evil": [("198.18.0.1", 1)]}):
        sink.set_flows(flows)
        sink.absorb_all(CLASSES)
    assert len(node.loaded) == 2
    assert b"198.18.0.1 . 1" in node.loaded[1]
