# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic classes: by header fields, and by streams, whose flows host and sink share."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.l2 import ARP, Dot1Q, Ether

from fwlab.model.declared_traffic import TrafficClass
from fwlab.model.errors import BadInput
from fwlab.traffic.classes import classify, count_classes, stream_flows
from tests.fakes.traffic_forms import one_each

FOUR, SIX = {"src": "198.18.1.1", "dst": "198.19.1.1"}, {"src": "2001:2::1", "dst": "2001:2::2"}
#: Six extension headers, two of them longer than eight bytes.
SIX_MORE = (
    IPv6ExtHdrDestOpt()
    / IPv6ExtHdrRouting(addresses=["2001:2::3"])
    / IPv6ExtHdrFragment(m=1)
    / IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(12))])
    / IPv6ExtHdrDestOpt()
    / IPv6ExtHdrDestOpt()
)


@pytest.mark.parametrize(
    ("layer", "wanted", "belongs"),
    [
        (IP(**FOUR) / UDP(), {"src": "198.18.1.0/24"}, True),
        (IP(**FOUR) / UDP(), {"src": "198.18.1.1/32", "dst": "198.19.0.0/16"}, True),
        (IP(**FOUR) / UDP(), {"dst": "198.18.1.0/24"}, False),
        (IP(**FOUR) / UDP(sport=5, dport=9), {"proto": "udp", "dport": 9}, True),
        (IP(**FOUR) / UDP(sport=5, dport=9), {"proto": "tcp", "dport": 9}, False),
        (IP(**FOUR) / TCP(sport=5, dport=9), {"sport": "4-6"}, True),
        (IP(**FOUR) / TCP(sport=7, dport=9), {"sport": "4-6"}, False),
        (IP(**FOUR) / ICMP(), {"proto": "icmp"}, True),
        (IP(**FOUR) / ICMP(), {"dport": "0-65535"}, False),
        (IP(**FOUR, options=b"\1\1\1\1") / UDP(dport=77), {"dport": 77}, True),
        (IP(**FOUR, frag=9) / UDP(dport=77), {"dport": "0-65535"}, False),
        (Dot1Q(vlan=3) / Dot1Q(vlan=4) / IP(**FOUR) / UDP(dport=77), {"src": "198.18.0.0/15", "dport": 77}, True),
        (IPv6(**SIX) / UDP(dport=77), {"src": "2001:2::/48", "proto": "udp", "dport": 77}, True),
        (IPv6(**SIX) / IPv6ExtHdrHopByHop() / TCP(dport=77), {"proto": "tcp", "dport": 77}, True),
        (IPv6(**SIX) / IPv6ExtHdrHopByHop() / SIX_MORE / UDP(dport=77), {"proto": "udp", "dport": 77}, True),
        (IPv6(**SIX) / IPv6ExtHdrFragment(m=1) / UDP(dport=77), {"proto": "udp", "dport": 77}, True),
        (IPv6(**SIX) / IPv6ExtHdrFragment(nh=17, offset=1) / UDP(dport=77), {"proto": "udp"}, True),
        (IPv6(**SIX) / IPv6ExtHdrFragment(nh=17, offset=1) / UDP(dport=77), {"dport": "0-65535"}, False),
        (IPv6(**SIX) / ICMPv6EchoRequest(), {"proto": "icmp"}, True),
        (IPv6(**SIX) / UDP(), {"src": "198.18.0.0/15"}, False),
        (ARP(), {}, False),
        (IP(**FOUR) / UDP(), {"sources": {"first": "198.18.0.255", "step": 2, "count": 2}}, True),
        (IP(**FOUR) / UDP(), {"sources": {"first": "198.18.0.255", "step": 2, "count": 1}}, False),
        (IP(**FOUR) / UDP(), {"sources": {"first": "198.18.1.0", "step": 2, "count": 9}}, False),
        (IP(**FOUR) / UDP(), {"destinations": {"first": "198.19.1.0", "count": 2}}, True),
        (IP(**FOUR) / UDP(), {"destinations": {"first": "198.18.1.0", "count": 2}}, False),
        (IP(**FOUR) / UDP(dport=7), {"sources": {"first": "198.18.1.0", "count": 2}, "dport": 8}, False),
        (IP(**FOUR) / UDP(dport=7), {"sources": {"first": "198.18.1.0", "count": 2}, "dports": [8, 7]}, True),
        (IP(**FOUR) / UDP(dport=8), {"sources": {"first": "198.18.1.0", "count": 2}, "dports": [8, 7]}, False),
        (IP(**FOUR) / TCP(dport=8), {"sources": {"first": "198.18.0.255", "count": 3}, "dports": [8, 7]}, True),
        (IP(**FOUR) / TCP(dport=7), {"sources": {"first": "198.18.0.255", "count": 3}, "dports": [7, 8, 7]}, True),
        (IP(**FOUR) / ICMP(), {"sources": {"first": "198.18.1.1", "count": 1}, "dports": [0]}, False),
        (IP(**FOUR) / UDP() / b"abcd", {"payload": {"at": 1, "hex": "6263"}}, True),
        (IP(**FOUR) / UDP() / b"abcd", {"payload": {"at": 2, "hex": "6263"}}, False),
        (IP(**FOUR) / UDP() / b"abcd", {"payload": {"at": 1, "hex": ["00", "62"]}}, True),
        (IP(**FOUR) / UDP() / b"abcd", {"payload": {"at": 1, "hex": "62"}, "dport": 54}, False),
        (IP(**FOUR, options=b"\1\1\1\1") / UDP() / b"abcd", {"payload": {"at": 0, "hex": "6162"}}, True),
        (IPv6(**SIX) / UDP() / b"abcd", {"payload": {"at": 0, "hex": "6162"}}, True),
        (IP(**FOUR) / UDP() / (b"." * 247 + b"abcd"), {"payload": {"at": 247, "hex": "61626364"}}, True),
        (IP(**FOUR) / UDP() / (b"." * 99 + b"d"), {"payload": {"at": 99, "hex": "6400"}}, False),  # ends before
        (IP(**FOUR) / TCP() / b"abcd", {"payload": {"at": 0, "hex": "61"}}, False),
        (ARP(), {"payload": {"at": 0, "hex": "00"}}, False),
        # This address starts with the bytes of 32.1.0.2.
        (IPv6(**SIX) / UDP(), {"sources": {"first": "32.1.0.2", "count": 1}}, False),
    ],
)
def test_a_frame_belongs_to_a_class(layer: Any, wanted: dict[str, Any], belongs: bool) -> None:
    frames = one_each((None, Ether() / layer))
    assert classify(frames, {"c": TrafficClass(**wanted)}).tolist() == [0 if belongs else -1]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"src": "198.18.0.0/16", "sources": {"first": "198.18.1.1", "count": 1}}, "give src or sources, not both"),
        ({"dst": "198.18.0.0/16", "destinations": {"first": "198.18.1.1", "count": 1}}, "dst or destinations, not"),
        ({"dports": [1]}, "dports needs sources"),
        ({"dst": "2001:2::/48", "sources": {"first": "198.18.1.1", "count": 1}}, "combined with an IPv6 prefix"),
        ({"sources": {"first": "255.255.255.0", "step": 2, "count": 200}}, "exceed IPv4"),
        ({"sources": {"first": "2001:2::1", "count": 1}}, "not a valid IPv4 address"),
        ({"payload": {"at": 0, "hex": "0x61"}}, "should match pattern"),
        ({"payload": {"at": 0, "hex": "616"}}, "should match pattern"),
        ({"payload": {"at": 0, "hex": "61" * 17}}, "should match pattern"),
        ({"payload": {"at": 0, "hex": 61}}, "put the hexadecimal digits between quotes"),
        ({"payload": {"at": 0, "hex": []}}, "payload needs at and hex"),
        ({"payload": {"hex": "61"}}, "payload needs at and hex"),
        ({"payload": {"at": 1, "size": 2}}, "payload needs at and hex"),
        ({"payload": {"at": 248, "hex": "61"}}, "less than or equal to 247"),
        ({"payload": {"at": 0, "hex": "61"}, "proto": "tcp"}, "payload is that of UDP, not of tcp"),
        ({"dport": 53, "stream": "one"}, "a class by stream can have no other field, except address, payload"),
        ({"stream": "bad", "payload": {"at": 1}}, "either at and size, or hex alone"),
        ({"stream": "bad", "payload": {"at": 1, "size": 2, "hex": "61"}}, "either at and size, or hex alone"),
        ({"stream": "bad", "payload": {"hex": ["61", "62"]}}, "either at and size, or hex alone"),
        ({"src": "198.18.0.0/24", "address": "source"}, "address needs stream"),
        ({"stream": "bad", "address": "source", "payload": {"hex": "61"}}, "address needs stream, and no payload"),
    ],
)
def test_a_class_that_contradicts_itself_is_refused(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TrafficClass(**wanted)


def tcp(port: int, source: int = 1, **more: int) -> Ether:
    return Ether() / IP(src=f"198.18.0.{source}", dst="198.19.0.1") / TCP(dport=port, **more)


def udp(payload: bytes) -> Ether:
    return Ether() / IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=1025, dport=53, chksum=0) / payload


def query(host: int, port: int = 4000) -> Ether:
    return Ether() / IP(src=f"198.18.0.{host}", dst="198.19.0.1") / UDP(sport=port, dport=53)


def answer(host: int) -> Ether:
    return Ether() / IP(src="198.19.0.1", dst=f"198.18.0.{host}") / UDP(sport=53, dport=4000)


BAD, GOOD = {"stream": "bad"}, {"stream": "good"}
NET, HOST = {"src": "198.18.0.0/24"}, {"src": "198.18.0.1/32"}
SOURCES = [{**wanted, "address": "source"} for wanted in (BAD, GOOD)]
THERE = [{**wanted, "payload": {"at": 4, "size": 2}} for wanted in (BAD, GOOD)]
MARKED = {**BAD, "payload": {"hex": "6162"}}
ANSWERED = {"stream": "good", "address": "destination", "at": "generator"}
BOTH_ENDS = [{**wanted, "payload": {"at": 0, "size": 2}} for wanted in (BAD, {**GOOD, "at": "generator"})]


@pytest.mark.parametrize(
    ("classes", "sent", "found"),
    [
        ([HOST, NET], [(None, tcp(1, 2)), (None, tcp(1)), (None, udp(b""))], [1, 0, 0]),
        ([BAD, GOOD], [("bad", tcp(1)), ("good", tcp(2)), (None, tcp(1, 2))], [0, 1, -1]),
        ([BAD, GOOD], [("bad", tcp(1)), ("more", tcp(1, sport=9))], [0, 0]),
        ([BAD, GOOD], [("bad", tcp(53)), ("good", udp(b""))], [0, 1]),
        ([BAD], [("bad 1", tcp(1)), ("bad 2", tcp(2)), ("badly", tcp(1, 2))], [0, 0, -1]),
        ([NET, BAD], [("bad", tcp(1)), ("more", tcp(2))], [0, 0]),
        ([BAD, NET], [("bad", tcp(1)), ("more", tcp(2))], [0, 1]),
        (SOURCES, [("bad", tcp(1)), ("good", tcp(1, 2)), (None, tcp(9))], [0, 1, 0]),
        (THERE, [("bad", udp(b"....ab")), ("bad 2", udp(b"....ac.")), ("good", udp(b"....\0\0"))], [0, 0, 1]),
        (THERE, [("bad", udp(b"....ab")), (None, udp(b"ab..ac"))], [0, -1]),
        ([MARKED], [("bad", udp(b"..ab")), ("bad 2", udp(b"....ab")), (None, udp(b"...ab"))], [0, 0, -1]),
        ([SOURCES[0], ANSWERED], [("bad", query(1)), ("good", answer(1)), ("more", query(1, 9))], [0, 1, 0]),
        (BOTH_ENDS, [("bad", udp(b"ab")), ("good", answer(1) / b"ab"), ("others", udp(b"ab"))], [0, 1, 0]),
    ],
)
def test_the_first_class_that_has_a_frames_flow_counts_it(classes: list[dict], sent: list, found: list[int]) -> None:
    """A stream without a class may have the same flow: the sink cannot distinguish them, so the host does not."""
    declared = {f"c{place}": TrafficClass(**wanted) for place, wanted in enumerate(classes)}
    frames = one_each(*sent)
    assert classify(frames, declared).tolist() == found
    counts = {name: found.count(place) for place, name in enumerate(declared)}
    assert count_classes(frames, declared) == {**counts, "other": found.count(-1)}


def test_flows_are_listed_as_the_sink_needs_them() -> None:
    classes = {"a": BAD, "b": {**GOOD, "address": "source"}, "c": {"stream": "there", "payload": {"at": 4, "size": 2}}}
    classes |= {"d": {"stream": "marked", "payload": {"hex": "6162"}}, "e": NET, "absent": {"stream": "absent"}}
    payloads = ("there", udp(b"....zz")), ("there 2", udp(b"....\0\0")), ("marked", udp(b"..abxxxx"))
    sent = one_each(("bad", tcp(1)), ("bad 2", tcp(2)), ("good", tcp(3, 2)), *payloads, ("marked 2", udp(b"....abab")))
    found = stream_flows(sent, {name: TrafficClass(**wanted) for name, wanted in classes.items()})
    assert found == {
        "a": [("198.18.0.1", 1, 6), ("198.18.0.1", 2, 6)],
        "b": [("198.18.0.2",)],
        "c": [(4, "0000"), (4, "7a7a")],
        "d": [(2, "6162"), (4, "6162")],
        "absent": [],
    }


def six(port: int, **addresses: str) -> Any:
    return Ether() / IPv6(**{**SIX, **addresses}) / IPv6ExtHdrDestOpt() / UDP(dport=port)


def test_flows_of_ipv6_are_listed_and_found() -> None:
    """Addresses whose last bytes are zero, among flows of IPv4, and a later fragment, which has an address alone."""
    later = Ether() / IPv6(**{**SIX, "src": "2001:2::5:0"}) / IPv6ExtHdrFragment(nh=17, offset=9) / b"abcdefgh"
    classes = {"a": BAD, "b": {**GOOD, "address": "source"}, "c": {"stream": "far", "address": "destination"}}
    declared = {name: TrafficClass(**wanted) for name, wanted in classes.items()}
    bad = [("bad", six(256)), ("bad 2", tcp(1)), ("bad 3", six(9, src="2001:2::7"))]
    sent = one_each(*bad, ("good", later), ("far", six(9, dst="2001:2:0:1300::")), (None, six(9)))
    flows = stream_flows(sent, declared)
    assert flows == {
        "a": [("198.18.0.1", 1, 6), ("2001:2::1", 256, 17), ("2001:2::7", 9, 17)],
        "b": [("2001:2::5:0",)],
        "c": [("2001:2:0:1300::",)],
    }
    assert classify(sent, declared, flows).tolist() == [0, 0, 0, 1, 2, -1]


WITHOUT_PORTS = "stream bad: class c0 requires IP packets with ports"


@pytest.mark.parametrize(
    ("classes", "sent", "message"),
    [
        ([BAD, GOOD], [("bad", tcp(1)), ("good", tcp(1, sport=9))], "frame 2, of the class c1, also belongs to"),
        ([BAD], [("bad", Ether() / IPv6(**SIX) / ICMPv6EchoRequest())], WITHOUT_PORTS),
        ([BAD], [("bad", Ether() / IP(**FOUR) / ICMP())], WITHOUT_PORTS),
        ([{**BAD, "address": "source"}], [("bad", Ether() / ARP())], "class c0 requires IP packets"),
        (
            [{**BAD, "payload": {"at": 20, "size": 4}}],
            [("bad", udp(b"..ab"))],
            "class c0 requires a longer UDP payload",
        ),
        ([{**BAD, "payload": {"hex": "7a7a"}}], [("bad", udp(b"..ab"))], "class c0 requires its bytes within"),
    ],
)
def test_streams_that_the_sink_cannot_tell_apart_are_refused(classes: list[dict], sent: list, message: str) -> None:
    declared = {f"c{place}": TrafficClass(**wanted) for place, wanted in enumerate(classes)}
    with pytest.raises(BadInput, match=message):
        stream_flows(one_each(*sent), declared)
