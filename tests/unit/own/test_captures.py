# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures as conversations: where their addresses are, what is played once, and what they weigh."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.utils import wrpcap, wrpcapng

from fwlab.model.errors import BadInput
from fwlab.own.captures import Capture, Routes, captured, routes
from fwlab.own.layout import LO, SELF, Layout
from fwlab.own.rules import Match, Rules

from .model import CHAIN, ModelBench, rules_of

LAYOUT = Layout(("lan", "wan"), ("203.0.113.5",))
WAY = Routes([(ipaddress.ip_network("192.168.0.0/16"), "lan")], "wan", frozenset(LAYOUT.own))
CLIENT, SERVER, FIREWALL = "192.168.0.2", "198.51.100.7", "203.0.113.5"


def connection(port: int, packets: int) -> list:
    there, back = IP(src=CLIENT, dst=SERVER), IP(src=SERVER, dst=CLIENT)
    found = [
        there / TCP(sport=port, dport=443, flags="S"),
        back / TCP(sport=443, dport=port, flags="SA"),
        there / TCP(sport=port, dport=443, flags="A"),
    ]
    return found + [back / TCP(sport=443, dport=port, flags="A") / (b"x" * 100)] * packets


def read(path: Path, frames: list, way: Routes = WAY) -> Capture:
    wrpcap(str(path), frames)
    return captured(path, way)


def test_connections_that_differ_in_the_clients_port_alone_are_played_once(tmp_path: Path) -> None:
    found = read(tmp_path / "c", [Ether() / one for port in (40_000, 40_001) for one in connection(port, 5)])
    [one] = found.drawn
    assert found.weights[one.identity] == [2, 2, 2, 10]
    first, second, third, fourth = one.steps
    assert (first["iface"], first["out"], first["packet"]["dport"]) == ("lan", "wan", 443)
    assert (second["reply"], second["flags"]) == (0, 18)
    assert third["packet"]["flags"] == 16
    assert (fourth["reply"], fourth["flags"], fourth["changed"]["length"]) == (2, 16, 100)
    assert "seq" not in first["packet"]
    assert found.words().startswith("capture: 16 packets, 1 different conversations; 192.168.0.0/16 at lan;")


def test_a_connection_that_was_there_before_is_opened_by_packets_without_weight(tmp_path: Path) -> None:
    found = read(tmp_path / "c", [Ether() / one for one in connection(40_000, 3)[3:]])
    [one] = found.drawn
    assert found.weights[one.identity] == [0, 0, 3]
    assert (one.steps[0]["packet"]["src"], one.steps[0]["packet"]["flags"]) == (CLIENT, 2)
    assert one.steps[2]["reply"] == 0


def test_an_error_is_played_about_what_it_quotes(tmp_path: Path) -> None:
    asking = IP(src=CLIENT, dst=SERVER) / UDP(sport=5000, dport=33434)
    error = IP(src="198.51.100.1", dst=CLIENT) / ICMP(type=11, code=0) / asking
    found = read(tmp_path / "c", [Ether() / asking, Ether() / error, Ether() / IP(dst=CLIENT) / ICMP(type=3) / IP()])
    [one] = found.drawn
    assert one.steps[1] == {"error": 0, "changed": {"type": 11, "code": 0}}
    assert found.left_out == {"errors about what is not in it": 1}


@pytest.mark.parametrize(
    ("packet", "ends"),
    [
        (IP(src=CLIENT, dst=FIREWALL) / UDP(sport=1, dport=53), ("lan", SELF)),
        (IP(src=FIREWALL, dst=SERVER) / UDP(sport=1, dport=53), (SELF, "wan")),
        (IP(src=FIREWALL, dst=FIREWALL) / UDP(sport=1, dport=53), (LO, LO)),
        (IP(src=CLIENT, dst="224.0.0.251") / UDP(sport=5353, dport=5353), ("lan", SELF)),
        (IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=1, dport=53), ("wan", "wan")),
        (Dot1Q(vlan=7) / IP(src=CLIENT, dst=SERVER) / UDP(sport=1, dport=53), ("lan", "wan")),
    ],
)
def test_addresses_say_where_a_packet_comes_from_and_goes_to(tmp_path: Path, packet: object, ends: tuple) -> None:
    [one] = read(tmp_path / "c", [Ether() / packet]).drawn
    assert (one.steps[0]["iface"], one.steps[0]["out"]) == ends


def test_what_leaves_again_in_a_capture_of_all_interfaces_is_left_out(tmp_path: Path) -> None:
    asking = bytes(IP(src=CLIENT, dst=SERVER) / UDP(sport=5000, dport=53))
    frames = [struct.pack("!HHIHBB8s", 0x0800, 0, 2, 1, kind, 6, b"") + asking for kind in (0, 4)]
    with (tmp_path / "c").open("wb") as file:
        file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 276))
        for one in frames:
            file.write(struct.pack("=IIII", 0, 0, len(one), len(one)) + one)
    found = captured(tmp_path / "c", WAY)
    assert [sum(weights) for weights in found.weights.values()] == [1]
    assert found.left_out == {"on their way out again": 1}


def test_pcapng_is_read_too(tmp_path: Path) -> None:
    wrpcapng(str(tmp_path / "c"), [Ether() / one for one in connection(40_000, 1)])
    assert captured(tmp_path / "c", WAY).read == 4


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "neither pcap nor pcapng"),
        (b"*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n", "neither pcap nor pcapng"),
        (bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"), "no packet of IP"),
    ],
)
def test_what_is_no_capture_is_said_in_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(BadInput, match=says) as error:
        captured(tmp_path / "c", WAY)
    assert "\n" not in error.value.message


def test_a_capture_without_ip_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no packet of IP"):
        read(tmp_path / "c", [Ether() / ARP()])


def test_routes_come_from_rules_that_name_a_network_and_an_interface() -> None:
    network = Match("saddr", ((192 << 24 | 168 << 16, (192 << 24 | 168 << 16) + 65535),))
    rules = rules_of(("accept", (Match("version", ((4, 4),)), network, Match("iif", (("lan", "lan"),)))))
    found = routes([rules], LAYOUT, ())
    assert (found.of(CLIENT), found.of(SERVER), found.of(FIREWALL)) == ("lan", "wan", SELF)
    given = routes([rules], LAYOUT, ["198.51.100.0/24=lan", "::/0=lan"])
    assert (given.of(SERVER), given.of("2001:db8::1")) == ("lan", "lan")
    assert "192.168.0.0/16 at lan" in given.words()
    for wrong in ("198.51.100.0/24", "198.51.100.0/24=dmz", "x=lan"):
        with pytest.raises(BadInput, match="--route"):
            routes([rules], LAYOUT, [wrong])


def test_a_capture_weighs_the_rules_that_decide_about_its_packets(tmp_path: Path) -> None:
    rules: Rules = rules_of(("tcp dport 443 accept", (Match("proto", ((6, 6),)), Match("dport", ((443, 443),)))))
    model = ModelBench("X", rules)
    frames = [*connection(40_000, 0)[:1] * 3, IP(src=CLIENT, dst=SERVER) / UDP(sport=1, dport=53)]
    found = read(tmp_path / "c", [Ether() / one for one in frames])
    played = list(model.play([one.steps for one in found.drawn]))
    assert found.by_decider(found.drawn, played) == {(*CHAIN, 2): 3, (*CHAIN, 0): 1}
