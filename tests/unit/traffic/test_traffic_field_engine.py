# SPDX-License-Identifier: GPL-2.0-or-later
"""The field engine: each instruction, and chains compared with a frame-by-frame implementation."""

from __future__ import annotations

import random
import struct

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Dot1Q, Ether

from fwlab.traffic import expand
from tests.fakes.traffic_forms import burst, packet, stream, variable, write

MAC = Ether(dst="00:00:00:01:00:00", src="00:00:00:02:00:00")


def words(*instructions, count=8, at=44, **fields):
    """The two bytes at `at` of the first frames."""
    frames = expand([stream(*instructions, **fields)], limit=count)
    return [int.from_bytes(frame[at : at + 2], "big") for frame in frames]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 1, 2, 3]),
        ({"op": "dec"}, [5, 4, 3, 2, 1, 5, 4, 3]),
        ({"init_value": 4}, [4, 5, 1, 2, 3, 4, 5, 1]),
        ({"step": 2}, [1, 3, 5, 1, 3, 5, 1, 3]),  # the range is made longer, to whole steps
        ({"step": 2, "op": "dec"}, [5, 3, 1, 5, 3, 1, 5, 3]),
        ({"value_list": [7, 9, 8]}, [7, 9, 8, 7, 9, 8, 7, 9]),
        ({"value_list": [7, 9, 8], "op": "dec"}, [8, 9, 7, 8, 9, 7, 8, 9]),
        ({"value_list": [7, 9, 8], "step": 2}, [7, 8, 9, 7, 8, 9, 7, 8]),
    ],
)
def test_the_values_of_a_variable(fields, expected):
    assert words(variable(**fields), write()) == expected


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("big", [True, False])
def test_variables_of_every_size_are_written_completely(size, big):
    top = (1 << 8 * size) - 1
    [frame] = expand([stream(variable(low=top - 5, high=top, size=size), write(is_big_endian=big))], limit=1)
    assert frame[44 : 44 + size] == (top - 5).to_bytes(size, "big" if big else "little")
    assert frame[44 + size :] == bytes(60 - 44 - size)


def test_the_constant_is_added_and_truncated():
    assert words(variable(), write(add_value=-3), count=3) == [0xFFFE, 0xFFFF, 0]


def test_random_values_stay_in_range_and_depend_on_the_seed():
    dice = variable(low=3, high=9, op="random")
    first = words(dice, write(), count=500, random_seed=1)
    assert set(first) == set(range(3, 10))
    assert first == words(dice, write(), count=500, random_seed=1)
    assert first != words(dice, write(), count=500, random_seed=2)


def test_random_takes_values_of_a_list():
    assert set(words(variable(op="random", value_list=[5, 500, 50]), write(), count=200)) == {5, 50, 500}


def test_repeatable_random_repeats_after_its_limit():
    dice = {"type": "flow_var_rand_limit", "name": "v", "size": 2, "limit": 7, "seed": 5}
    values = words({**dice, "min_value": 100, "max_value": 900}, write(), count=28)
    assert values == values[:7] * 4
    assert len(set(values)) > 1
    assert all(100 <= value <= 900 for value in values)


@pytest.mark.parametrize(
    ("fields", "clients", "ports"),
    [
        (
            {"ip_max": 3, "port_min": 50, "port_max": 52, "limit_flows": 8},
            "123123121",
            [50] * 3 + [51] * 3 + [52, 52, 50],
        ),
        ({"port_min": 65535, "port_max": 65535, "flags": 1}, "121212", [1025, 1025, 1026, 1026, 1027, 1027]),
    ],
    ids=["limited", "every port from 1025"],
)
def test_clients_and_ports_advance_together(fields, clients, ports):
    form = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 2, "limit_flows": 0, "flags": 0, **fields}
    program, count = (form, write("t.ip", at=44), write("t.port", at=50)), len(ports)
    assert words(*program, at=46, count=count) == [int(client) for client in clients]
    assert words(*program, at=50, count=count) == ports


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"mask": 0x00F0, "shift": 4}, [0xAA1A, 0xAA2A, 0xAA3A]),
        ({"mask": 0xFF00, "shift": 8, "add_value": 1}, [0x02AA, 0x03AA, 0x04AA]),
        ({"mask": 0x000F, "shift": -1}, [0xAAA0, 0xAAA1, 0xAAA1]),
        ({"mask": 0xFFFF, "shift": 0, "is_big_endian": False}, [0x0100, 0x0200, 0x0300]),
    ],
)
def test_a_mask_leaves_the_other_bits(fields, expected):
    form = {"type": "write_mask_flow_var", "name": "v", "pkt_offset": 44, "pkt_cast_size": 2}
    form |= {"add_value": 0, "is_big_endian": True, **fields}
    data = packet()[:44] + b"\xaa" * 16
    assert words(variable(), form, count=3, data=data) == expected


@pytest.mark.parametrize(
    ("low", "high", "length", "sizes"), [(60, 63, 100, [60, 61, 62, 63, 60]), (64, 9000, 66, [64, 65, 66, 64, 65])]
)
def test_trimming_cuts_the_packet_and_never_lengthens_it(low, high, length, sizes):
    data = packet(42) + bytes(range(length - 42))
    program = variable(low=low, high=high), {"type": "trim_pkt_size", "name": "v"}
    assert [frame[12:] for frame in expand([stream(*program, data=data)], limit=5)] == [data[12:n] for n in sizes]


def test_a_cache_repeats_its_frames():
    assert words(vm={"cache": 3, "instructions": [variable(high=100), write()]}, count=7) == [1, 2, 3, 1, 2, 3, 1]


FOUR, SIX = IP(src="198.18.0.9", dst="198.19.0.9"), IPv6(src="2001:2::9", dst="2001:2::8")


def hardware(l3: int, kind: int) -> dict:
    return {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": l3, "l4_type": kind}


@pytest.mark.parametrize(
    ("layers", "fix", "at"),
    [
        (FOUR / UDP(), {"type": "fix_checksum_ipv4", "pkt_offset": 14}, 26),
        (FOUR / TCP(sport=1, dport=2) / b"odd", hardware(20, 13), 34),
        (FOUR / UDP(sport=1, dport=2) / (b"even" * 60), hardware(20, 11), 34),
        (SIX / TCP(sport=1, dport=2) / (b"odd" * 71), hardware(40, 13), 54),
        (SIX / UDP(sport=1, dport=2) / (b"x" * 200), hardware(40, 11), 54),
        (SIX / ICMPv6EchoRequest(data=b"five!" * 20), {"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 40}, 70),
    ],
    ids=["ip", "tcp4", "udp4", "tcp6", "udp6", "icmpv6"],
)
def test_checksums_are_those_of_scapy(layers, fix, at):
    data = bytes(MAC / layers)
    for frame in expand([stream(variable(), write(at=at), fix, data=data)], limit=5, complete=True):
        again = Ether(frame[: len(data)])
        for layer, field in ((IP, "chksum"), (TCP, "chksum"), (UDP, "chksum"), (ICMPv6EchoRequest, "cksum")):
            if layer in again and not (layer is UDP and "ipv4" in fix["type"]):
                delattr(again[layer], field)
        assert frame == bytes(again).ljust(len(frame), b"\0")


def test_offloaded_checksums_are_left_to_the_network_card():
    [frame] = expand([stream(variable(), hardware(20, 11))], limit=1)
    assert frame[24:26] == b"\0\0"  # IPv4's own
    pseudo = sum(int.from_bytes(frame[at : at + 2], "big") for at in range(26, 34, 2)) + 17 + 26
    assert int.from_bytes(frame[40:42], "big") == (pseudo & 0xFFFF) + (pseudo >> 16)


@pytest.mark.parametrize(("flags", "kept"), [*enumerate(["", "source", "destination", "both", "", ""])])
def test_mac_addresses_come_from_the_port_unless_the_packet_keeps_them(flags, kept):
    frame = expand([stream(flags=flags)], limit=1)[0]
    assert frame[:6] == (bytes.fromhex("000000010000") if kept in ("destination", "both") else b"\x10" * 6)
    assert frame[6:12] == (bytes.fromhex("000000020000") if kept in ("source", "both") else b"\x18" * 6)


def test_frames_of_latency_streams_end_with_a_trailer():
    stats = {"enabled": True, "rule_type": "latency", "stream_id": 7}
    [frame] = expand([stream(flow_stats=stats)], limit=1)
    assert frame[-16:].hex() == "ab01000078563412ffeeddccbbaa9988"
    assert frame[18:20] == b"\xff\xff"


@pytest.mark.parametrize("tags", [0, 1])
def test_streams_without_statistics_are_not_marked(tags):
    between = MAC / Dot1Q(vlan=7) if tags else MAC
    marked = bytes(between / IP(src="198.18.0.9", dst="198.19.0.9", id=0xFF01) / UDP())
    header = expand([stream(data=marked)], limit=1)[0][14 + 4 * tags : 34 + 4 * tags]
    again = IP(header)
    assert again.id == 0xEF01
    del again.chksum
    assert header == bytes(again)


@pytest.mark.parametrize("seed", range(25))
def test_a_chain_of_variables_equals_the_frame_by_frame_result(seed):
    """A variable advances whenever the one before it wraps around."""
    dice = random.Random(seed)
    chain, ranges = [], []
    for number in range(dice.randint(1, 4)):
        low, span, step, op = dice.randint(50, 60), dice.randint(1, 7), dice.randint(1, 4), dice.choice(["inc", "dec"])
        start = low + dice.randrange(span)
        high, after, size = low + span - 1, f"v{number + 1}", span + -span % step
        chain.append(variable(f"v{number}", low, high, op=op, init_value=start, step=step, next_var=after))
        first, sign = (low, 1) if op == "inc" else (high, -1)
        ranges.append((first, sign, size, step % size, [(abs(start - first) - step) % size]))
    chain[-1]["next_var"] = None
    expected = []
    for _ in range(80):
        moving = True
        for _, _, size, step, place in ranges:
            wraps = place[0] + step >= size
            place[0] = (place[0] + step * moving) % size
            moving = moving and wraps
        expected.append([first + sign * place[0] for first, sign, _, _, place in ranges])
    program = [*chain, *(write(f"v{number}", at=44 + 2 * number) for number in range(len(chain)))]
    frames = expand([stream(*program, mode=burst(80))], limit=200)
    assert [list(struct.unpack_from(f">{len(chain)}H", frame, 44)) for frame in frames] == expected
