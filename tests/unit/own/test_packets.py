# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets as data and as bytes, against scapy."""

from __future__ import annotations

import pytest

from fwlab.own import packets
from fwlab.own.packets import ACK, ICMP, ICMPV6, RST, SYN, TCP, UDP

V4 = {"version": 4, "src": "192.0.2.1", "dst": "198.51.100.2"}
V6 = {"version": 6, "src": "2001:db8::1", "dst": "2001:db8::2"}
PORTS = {"sport": 1234, "dport": 80}
EACH = [
    {**V4, "proto": TCP, **PORTS, "flags": SYN, "ttl": 9, "dscp": 46},
    {**V6, "proto": TCP, **PORTS, "flags": RST | ACK, "length": 3},
    {**V4, "proto": UDP, **PORTS, "length": 7},
    {**V6, "proto": UDP, **PORTS, "dscp": 8, "ttl": 1},
    {**V4, "proto": ICMP, "type": 8, "code": 0, "id": 77},
    {**V6, "proto": ICMPV6, "type": 128, "code": 0},
    {**V4, "proto": 47},
    {**V6, "proto": UDP, **PORTS, "header": 0},
    {**V6, "proto": TCP, **PORTS, "flags": SYN, "header": 43},
]


@pytest.mark.parametrize("packet", EACH, ids=lambda packet: f"{packet['version']}-{packet['proto']}")
def test_a_packet_comes_back_from_its_bytes(packet: dict) -> None:
    found = packets.parse(packets.ip_packet(packet))
    assert found is not None
    assert packet.items() <= found.items()


@pytest.mark.parametrize("packet", EACH, ids=lambda packet: f"{packet['version']}-{packet['proto']}")
def test_scapy_computes_the_same_bytes(packet: dict) -> None:
    from scapy.layers.inet import IP, TCP, UDP
    from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6

    made = packets.ip_packet(packet)
    layers = (IP if packet["version"] == 4 else IPv6)(made)
    for layer in (IP, TCP, UDP, ICMPv6EchoRequest):
        if layer in layers:
            for name in ("chksum", "cksum"):
                if name in layers[layer].fields:
                    del layers[layer].fields[name]
    assert bytes(layers) == made


@pytest.mark.parametrize("address", [V4, V6])
def test_two_fragments_are_one_packet(address: dict) -> None:
    from scapy.layers import inet
    from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment

    whole = {**address, "proto": UDP, **PORTS, "length": 40}
    first, last = (packets.ip_packet({**whole, "part": part}) for part in (0, 1))
    carried = b"".join(
        bytes((inet.IP(one) if address is V4 else IPv6(one)[IPv6ExtHdrFragment]).payload) for one in (first, last)
    )
    assert carried == packets.ip_packet(whole)[-48:]
    assert inet.UDP(carried).len == 48
    found = [packets.parse(one) for one in (first, last)]
    assert [(one["more"], one["offset"], one.get("dport")) for one in found] == [(1, 0, 80), (0, 4, None)]


@pytest.mark.parametrize(("group", "mac"), [("224.0.0.251", "01005e0000fb"), ("239.255.255.250", "01005e7ffffa"),
                                            ("ff02::fb", "3333000000fb")])  # fmt: skip
def test_a_group_has_its_ethernet_address(group: str, mac: str) -> None:
    assert packets.group_mac(group).hex() == mac


def test_a_reply_goes_back_and_acknowledges() -> None:
    answer = packets.reply({**EACH[0], "seq": 41})
    assert answer is not None
    assert (answer["src"], answer["sport"], answer["dport"]) == ("198.51.100.2", 80, 1234)
    assert (answer["flags"], answer["ack"]) == (SYN | ACK, 42)


def test_only_an_echo_request_of_icmp_is_answered() -> None:
    assert packets.reply(EACH[4]) == {**V4, "src": V4["dst"], "dst": V4["src"], "proto": ICMP, "ttl": 64, "dscp": 0,
                                      "length": 0, "type": 0, "code": 0, "id": 77}  # fmt: skip
    assert packets.reply({**EACH[4], "type": 3}) is None


@pytest.mark.parametrize("about", [EACH[0], EACH[3]])
def test_an_error_quotes_what_it_is_about(about: dict) -> None:
    error = packets.parse(packets.ip_packet(packets.error_about(about)))
    assert error is not None
    assert packets.is_error(error)
    assert error["dst"] == about["src"]
    assert error["about"] == {name: about[name] for name in ("src", "dst", "proto", "sport", "dport")}


def test_a_frame_that_holds_no_ip_is_none() -> None:
    assert packets.parse_frame(b"\xff" * 12 + b"\x08\x06" + b"\0" * 46) is None
