# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic classes, lab addresses, and the frame table."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1Q, Ether

from fwlab.model.declared_traffic import TrafficClass
from fwlab.model.errors import BadInput
from fwlab.traffic import expand
from fwlab.traffic.classes import classify, count_classes
from fwlab.traffic.frame_loop import build_table, check_addresses
from tests.fakes.traffic_forms import burst, one_each, packet, rate, stream, variable, write

MAC = Ether(dst="00:00:00:01:00:00", src="00:00:00:02:00:00")
FOUR, SIX = {"src": "198.18.1.1", "dst": "198.19.1.1"}, {"src": "2001:2::1", "dst": "2001:2::2"}


def frames(*layers):
    """One frame of each packet, in order."""
    return one_each(*((None, MAC / layer) for layer in layers))


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
        (
            Dot1Q(vlan=3) / Dot1Q(vlan=4) / IP(**FOUR) / UDP(dport=77),
            {"src": "198.18.0.0/15", "dport": 77},
            True,
        ),
        (IPv6(**SIX) / UDP(dport=77), {"src": "2001:2::/48", "proto": "udp", "dport": 77}, True),
        (IPv6(**SIX) / IPv6ExtHdrHopByHop() / TCP(dport=77), {"proto": "tcp", "dport": 77}, True),
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
def test_a_frame_belongs_to_a_class(layer, wanted, belongs):
    assert classify(frames(layer), {"c": TrafficClass(**wanted)}).tolist() == [0 if belongs else -1]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"src": "198.18.0.0/16", "sources": {"first": "198.18.1.1", "count": 1}}, "give src or sources, not both"),
        ({"dst": "198.18.0.0/16", "destinations": {"first": "198.18.1.1", "count": 1}}, "dst or destinations, not"),
        ({"dports": [1]}, "dports needs sources"),
        ({"dst": "2001:2::/48", "sources": {"first": "198.18.1.1", "count": 1}}, "combined with an IPv6 prefix"),
        ({"sources": {"first": "255.255.255.0", "step": 2, "count": 200}}, "exceed IPv4"),
        ({"payload": {"at": 0, "hex": "0x61"}}, "should match pattern"),
        ({"payload": {"at": 0, "hex": "616"}}, "should match pattern"),
        ({"payload": {"at": 0, "hex": "61" * 17}}, "should match pattern"),
        ({"payload": {"at": 0, "hex": 61}}, "put the hexadecimal digits between quotes"),
        ({"payload": {"at": 0, "hex": []}}, "payload needs at and hex"),
        ({"payload": {"at": 248, "hex": "61"}}, "less than or equal to 247"),
        ({"payload": {"at": -1, "hex": "61"}}, "greater than or equal to 0"),
        ({"payload": {"at": 0, "hex": "61"}, "proto": "tcp"}, "payload is that of UDP, not of tcp"),
        ({"dport": 53, "stream": "one"}, "can have no other field"),
        ({"sources": {"first": "198.18.1.1", "count": 0}}, "greater than or equal to 1"),
        ({"sources": {"first": "2001:2::1", "count": 1}}, "not a valid IPv4 address"),
        ({"sources": {"first": True, "count": 1}}, "first"),
    ],
)
def test_a_class_that_contradicts_itself_is_refused(wanted, message):
    with pytest.raises(ValidationError, match=message):
        TrafficClass(**wanted)


def test_the_first_class_that_fits_counts():
    classes = {"one": TrafficClass(src="198.18.1.1/32"), "net": TrafficClass(src="198.18.1.0/24")}
    others = [IP(src=src, dst="198.19.1.1") / UDP() for src in ("198.18.1.2", "198.18.1.1", "198.18.2.1")]
    assert classify(frames(*others), classes).tolist() == [1, 0, -1]
    assert count_classes(frames(*others), classes) == {"one": 1, "net": 1, "other": 1}


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (IP(src="11.0.0.1", dst="198.19.1.1"), "source 11.0.0.1 is not a lab address"),
        (IP(src="198.18.0.1", dst="8.8.8.8"), "destination 8.8.8.8 is not a lab address"),
        (IP(src="198.18.0.1", dst="198.20.0.0"), "destination 198.20.0.0 is not a lab address"),
        (IP(src="198.18.0.1", dst="224.0.0.5"), "destination 224.0.0.5 is a multicast address"),
        (IPv6(src="2001:2:1::1", dst="2001:2::1"), "source 2001:2:1::1 is not a lab address"),
        (IPv6(src="2001:2::1", dst="ff02::1"), "destination ff02::1 is a multicast address"),
        (Dot1Q(vlan=3) / IP(src="198.18.0.1", dst="9.9.9.9"), "destination 9.9.9.9 is not a lab address"),
    ],
)
def test_addresses_outside_the_lab_are_refused(layer, message):
    with pytest.raises(BadInput) as error:
        check_addresses(frames(IP(**FOUR) / UDP(), layer / UDP()))
    assert error.value.message == f"stream 2, frame 2: {message}"
    assert error.value.hint == "use addresses in 198.18.0.0/15 or 2001:2::/48"


def test_a_variable_that_leaves_the_labs_addresses_is_refused():
    form = stream(variable(low=0x0001, high=0xFFFF), write(at=26), name="flood")
    with pytest.raises(BadInput, match=r"^stream 1 \(flood\), frame 1: source 0\.1\.0\.9 is not a lab address"):
        check_addresses(expand([form], limit=10))


def test_a_multicast_mac_address_is_refused():
    with pytest.raises(BadInput) as error:
        check_addresses(expand([stream(flags=2, data=b"\xff" * 6 + packet()[6:])], limit=1))
    assert error.value.message == "stream 1, frame 1: destination ff:ff:ff:ff:ff:ff is a multicast address"


def test_one_packet_needs_one_frame():
    table = build_table([stream()])
    assert (len(table.frames), table.loop_ns, table.exact) == (1, 1_000_000, True)


def test_a_loop_is_the_period_of_the_variable():
    table = build_table([stream(variable(high=100), write(), variable("w", high=40), write("w", at=46))])
    assert (len(table.frames), table.exact) == (200, True)


def test_a_loop_keeps_the_proportion_of_streams_and_all_their_values():
    fast = stream(variable(high=30), write(), mode={"type": "continuous", "rate": rate(900)})
    slow = stream(variable(high=4), write(), mode={"type": "continuous", "rate": rate(100)}, isg=5e6)
    table = build_table([fast, slow])
    assert table.exact
    assert table.loop_ns == 200_000_000
    assert Counter(table.frames.stream.tolist()) == {0: 180, 1: 20}
    values = Counter(
        int.from_bytes(f[44:46], "big") for f, s in zip(table.frames, table.frames.stream, strict=True) if s
    )
    assert values == {1: 5, 2: 5, 3: 5, 4: 5}


def test_random_values_fill_the_table():
    table = build_table([stream(variable(op="random", high=60000), write())], max_frames=500)
    assert (len(table.frames), table.exact) == (500, False)


def test_a_loop_that_is_too_long_is_truncated():
    program = [variable("a", high=499), variable("b", high=500), write("a"), write("b", at=46)]
    table = build_table([stream(*program)], max_frames=1000)
    assert (len(table.frames), table.exact) == (1000, False)


def test_a_dependent_variable_makes_the_loop_longer():
    low = variable("a", high=10, next_var="b", split_to_cores=False)
    table = build_table([stream(low, variable("b", high=7, split_to_cores=False), write("a"))])
    assert len(table.frames) == 70


def test_a_profile_that_ends_is_repeated_completely():
    first = stream(mode=burst(3), name="a", next="b")
    table = build_table([first, stream(mode=burst(2), name="b", self_start=False)])
    assert (len(table.frames), table.exact) == (5, True)
    assert table.loop_ns > int(table.frames.times_ns[-1])


def test_a_loop_of_bursts_fills_the_table():
    table = build_table([stream(mode=burst(3), name="a", next="a", isg=1.0)], max_frames=100)
    assert (len(table.frames), table.exact) == (100, False)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (stream(mode=burst(70_000)), "the profile sends more frames than the table holds (65536)"),
        (
            stream(variable("src", high=100_000, size=4), write("src", at=38)),
            "stream 1: 100000 values of 'src' need 100000 frames, but the table holds 65536",
        ),
        (stream(flags=8), "the profile sends nothing"),
    ],
)
def test_too_many_frames_are_refused(form, message):
    with pytest.raises(BadInput) as error:
        build_table([form])
    assert error.value.message == message


def test_a_slow_stream_with_many_values_is_refused():
    slow = stream(variable("src", high=1000), write("src"), mode={"type": "continuous", "rate": rate(10)})
    with pytest.raises(BadInput) as error:
        build_table([stream(), slow])
    assert error.value.message == "stream 2: 1000 values of 'src' need 101000 frames, but the table holds 65536"


@pytest.mark.parametrize(("limit", "frames", "exact"), [(1000, 1000, True), (100_000, 65_536, False)])
def test_repeatable_random_values_may_be_cut(limit, frames, exact):
    dice = {"type": "flow_var_rand_limit", "name": "v", "size": 4, "limit": limit, "seed": 1}
    form = stream({**dice, "min_value": 0, "max_value": 99}, write(at=42))
    table, again = build_table([form]), build_table([form])
    assert (len(table.frames), table.exact) == (frames, exact)
    assert list(table.frames) == list(again.frames)
    assert {int.from_bytes(frame[42:46], "big") for frame in table.frames} == set(range(100))
