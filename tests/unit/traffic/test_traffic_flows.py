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
from fwlab.traffic.classes import classify, count_classes, stream_flows
from tests.fakes.traffic_forms import one_each

BAD, GOOD = TrafficClass(stream="bad"), TrafficClass(stream="good")
CLASSES = {"evil": BAD, "fine": GOOD}


def tcp(source: str, port: int, **more: int) -> Ether:
    return Ether() / IP(src=source, dst="198.19.0.1") / TCP(dport=port, **more)


def test_a_packet_belongs_to_the_stream_that_has_its_flow() -> None:
    sent = one_each(("bad", tcp("198.18.0.1", 1)), ("good", tcp("198.18.0.1", 2)), (None, tcp("198.18.0.2", 1)))
    assert classify(sent, CLASSES).tolist() == [0, 1, -1]
    assert count_classes(sent, CLASSES) == {"evil": 1, "fine": 1, "other": 1}


def test_a_stream_without_a_class_may_have_the_same_flow() -> None:
    """The sink cannot distinguish them, so the host does not either."""
    sent = one_each(("bad", tcp("198.18.0.1", 1)), ("more", tcp("198.18.0.1", 1, sport=9)))
    assert classify(sent, CLASSES).tolist() == [0, 0]


def test_the_first_class_counts_whether_it_is_declared_by_a_stream_or_not() -> None:
    sent = one_each(("bad", tcp("198.18.0.1", 1)), ("more", tcp("198.18.0.1", 2)))
    net = TrafficClass(src="198.18.0.0/24")
    assert classify(sent, {"net": net, "evil": BAD}).tolist() == [0, 0]
    assert classify(sent, {"evil": BAD, "net": net}).tolist() == [0, 1]


def test_two_classes_that_share_a_flow_are_refused() -> None:
    sent = one_each(("bad", tcp("198.18.0.1", 1)), ("good", tcp("198.18.0.1", 1, sport=9)))
    with pytest.raises(BadInput, match="frame 2, of the class fine, also belongs to the class evil"):
        stream_flows(sent, CLASSES)


@pytest.mark.parametrize(
    "layer",
    [
        Ether() / IPv6(src="2001:2::1", dst="2001:2::2") / UDP(),
        Ether() / IP(src="198.18.0.1", dst="198.19.0.1") / ICMP(),
    ],
)
def test_a_class_by_stream_requires_flows(layer: Ether) -> None:
    with pytest.raises(BadInput, match="stream bad: class evil requires IPv4 packets with ports"):
        stream_flows(one_each(("bad", layer)), CLASSES)


def test_classes_by_address_list_no_flows() -> None:
    sent = one_each(("bad", Ether() / IPv6(src="2001:2::1", dst="2001:2::2") / UDP()))
    assert stream_flows(sent, {"net": TrafficClass(src="2001:2::/48")}) == {}


@pytest.mark.parametrize("more", [{"src": "198.18.0.0/24"}, {"sport": 1025}, {"proto": "tcp"}])
def test_a_class_by_stream_has_no_other_criteria(more: dict) -> None:
    with pytest.raises(ValidationError, match="a class by stream can have no other field, except address, payload"):
        TrafficClass(stream="bad", **more)


def test_several_streams_may_make_up_a_class() -> None:
    sent = one_each(("bad 1", tcp("198.18.0.1", 1)), ("bad 2", tcp("198.18.0.1", 2)), ("badly", tcp("198.18.0.2", 1)))
    assert classify(sent, CLASSES).tolist() == [0, 0, -1]


# ---- classes by an address, or by the payload -------------------------------------------------------------------


def udp(payload: bytes, source: str = "198.18.0.1") -> Ether:
    return Ether() / IP(src=source, dst="198.19.0.1") / UDP(sport=1025, dport=53, chksum=0) / payload


def test_a_class_by_address_has_every_packet_from_there() -> None:
    sent = one_each(("bad", tcp("198.18.0.1", 1)), ("good", tcp("198.18.0.2", 1)), (None, tcp("198.18.0.1", 9)))
    by_source = {name: TrafficClass(stream=name, address="source") for name in ("bad", "good")}
    assert stream_flows(sent, by_source) == {"bad": [("198.18.0.1",)], "good": [("198.18.0.2",)]}
    assert classify(sent, by_source).tolist() == [0, 1, 0]
    rules = counting_ruleset("eth0", by_source, flows=stream_flows(sent, by_source))
    assert "set class-bad-addresses { type ipv4_addr; size 1; elements = { 198.18.0.1 } }" in rules
    assert 'ip saddr @class-bad-addresses counter name "class-bad" drop' in rules


def test_a_class_by_payload_has_what_its_packets_have_there() -> None:
    named = {name: TrafficClass(stream=name, payload={"at": 4, "size": 2}) for name in ("bad", "good")}
    sent = one_each(
        ("bad", udp(b"....ab")), ("bad 2", udp(b"....ac.")), ("good", udp(b"....\0\0")), (None, udp(b"ab..ac"))
    )
    assert stream_flows(sent, named) == {"bad": [(4, "6162"), (4, "6163")], "good": [(4, "0000")]}
    assert classify(sent, named).tolist() == [0, 0, 1, 0]
    rules = counting_ruleset("eth0", named, flows=stream_flows(sent, named))
    assert '    meta l4proto udp @th,96,16 { 0x6162, 0x6163 } counter name "class-bad" drop' in rules
    assert '    meta l4proto udp @th,96,16 0x0000 counter name "class-good" drop' in rules


def test_a_class_by_payload_has_these_bytes_wherever_its_packets_have_them() -> None:
    marked = {"bad": TrafficClass(stream="bad", payload={"hex": "6162"})}
    sent = one_each(("bad", udp(b"..ab")), ("bad 2", udp(b"....abab")), (None, udp(b"...ab")), (None, udp(b"..ab..")))
    assert stream_flows(sent, marked) == {"bad": [(2, "6162"), (4, "6162")]}
    assert classify(sent, marked).tolist() == [0, 0, -1, 0]
    rules = counting_ruleset("eth0", marked, flows=stream_flows(sent, marked))
    for place in (80, 96):
        assert f'meta l4proto udp @th,{place},16 0x6162 counter name "class-bad" drop' in rules


@pytest.mark.parametrize("payload", [{"at": 20, "size": 4}, {"hex": "7a7a"}])
def test_a_stream_without_such_bytes_is_refused(payload: dict) -> None:
    with pytest.raises(BadInput, match="stream bad: class evil requires"):
        stream_flows(one_each(("bad", udp(b"..ab"))), {"evil": TrafficClass(stream="bad", payload=payload)})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stream": "bad", "payload": {"at": 1}}, "either at and size, or hex alone"),
        ({"stream": "bad", "payload": {"at": 1, "size": 2, "hex": "61"}}, "either at and size, or hex alone"),
        ({"stream": "bad", "payload": {"hex": ["61", "62"]}}, "either at and size, or hex alone"),
        ({"payload": {"hex": "61"}}, "payload needs at and hex"),
        ({"payload": {"at": 1, "size": 2}}, "payload needs at and hex"),
        ({"src": "198.18.0.0/24", "address": "source"}, "address needs stream"),
        ({"stream": "bad", "address": "source", "payload": {"hex": "61"}}, "address needs stream, and no payload"),
    ],
)
def test_what_tells_a_class_is_declared_in_one_way(fields: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TrafficClass(**fields)


def test_the_sink_counts_by_the_same_flows() -> None:
    sent = one_each(("bad", tcp("198.18.0.1", 1)), ("good", tcp("198.18.0.1", 2)))
    rules = counting_ruleset("eth0", CLASSES, flows=stream_flows(sent, CLASSES)).splitlines()
    kind = "type ipv4_addr . inet_service . inet_proto; size 1;"
    assert f"  set class-evil-flows {{ {kind} elements = {{ 198.18.0.1 . 1 . 6 }} }}" in rules
    assert f"  set class-fine-flows {{ {kind} elements = {{ 198.18.0.1 . 2 . 6 }} }}" in rules
    asked = [line.strip() for line in rules if "@" in line]
    assert asked == [
        f"meta l4proto {{ udp, tcp }} ip saddr . th dport . meta l4proto @class-{name}-flows "
        f'counter name "class-{name}" drop'
        for name in CLASSES
    ]


def test_a_port_of_another_protocol_is_another_flow() -> None:
    sent = one_each(
        ("bad", tcp("198.18.0.1", 1)), ("good", Ether() / IP(src="198.18.0.1", dst="198.19.0.1") / UDP(dport=1))
    )
    assert classify(sent, CLASSES).tolist() == [0, 1]


def test_a_class_without_flows_counts_nothing() -> None:
    """A set must not be empty, and no rule may match everything."""
    rules = counting_ruleset("eth0", CLASSES, flows=stream_flows(one_each((None, tcp("198.18.0.1", 1))), CLASSES))
    assert "@" not in rules
    assert "  set " not in rules
    assert "counter class-evil { }" in rules


def test_the_sink_counts_by_the_flows_of_the_traffic_and_absorbs_any() -> None:
    class Node:
        loaded: list[bytes] = []

        def run(self, _command: str, data: bytes) -> None:
            self.loaded.append(data)

    node = Node()
    sink = Sink(node, "eth0")
    for flows in ({}, {"evil": [("198.18.0.1", 1)]}):
        sink.set_flows(flows)
        sink.absorb_all(CLASSES)
    assert len(node.loaded) == 1
    sink.load_counters(CLASSES)
    assert b"198.18.0.1 . 1" in node.loaded[1]
    sink.absorb_all({**CLASSES, "more": TrafficClass(proto="icmp")})
    assert len(node.loaded) == 3
