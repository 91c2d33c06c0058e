# SPDX-License-Identifier: GPL-2.0-or-later
"""The field engine: each instruction, and chains compared with a frame-by-frame implementation."""

from __future__ import annotations

import random

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


def test_a_dependent_variable_advances_when_the_first_wraps():
    low = variable("low", high=3, next_var="high", split_to_cores=False)
    high = variable("high", low=10, high=12, split_to_cores=False)
    assert words(low, high, write("high"), count=10) == [10, 10, 10, 11, 11, 11, 12, 12, 12, 10]
    assert words(low, high, write("low"), count=10) == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]


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


def test_clients_and_ports_advance_together():
    clients = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 3, "flags": 0}
    form = {**clients, "port_min": 50, "port_max": 52, "limit_flows": 8}
    assert words(form, write("t.ip", at=44), at=46, count=9) == [1, 2, 3, 1, 2, 3, 1, 2, 1]
    assert words(form, write("t.port"), count=9) == [50, 50, 50, 51, 51, 51, 52, 52, 50]


def test_unlimited_flows_take_every_port_from_1025():
    form = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 2, "flags": 1}
    form |= {"port_min": 65535, "port_max": 65535, "limit_flows": 0}
    assert words(form, write("t.port"), count=6) == [1025, 1025, 1026, 1026, 1027, 1027]


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


def test_trimming_cuts_the_packet():
    sizes = variable(low=60, high=63)
    data = packet(42) + bytes(range(58))
    frames = expand([stream(sizes, {"type": "trim_pkt_size", "name": "v"}, data=data)], limit=5)
    assert [frame[12:] for frame in frames] == [data[12:size] for size in (60, 61, 62, 63, 60)]


def test_trimming_never_lengthens_the_packet():
    sizes = variable(low=64, high=9000)
    frames = expand([stream(sizes, {"type": "trim_pkt_size", "name": "v"}, data=packet(66))], limit=4)
    assert [len(frame) for frame in frames] == [64, 65, 66, 64]


def test_a_cache_repeats_its_frames():
    form = stream(variable(high=100), write(), vm={"cache": 3, "instructions": [variable(high=100), write()]})
    assert [int.from_bytes(frame[44:46], "big") for frame in expand([form], limit=7)] == [1, 2, 3, 1, 2, 3, 1]


def test_ipv4_header_checksum():
    frames = expand([stream(variable(), write(at=26), {"type": "fix_checksum_ipv4", "pkt_offset": 14})], limit=5)
    for frame in frames:
        given = IP(frame[14:])
        again = IP(bytes(given))
        del again.chksum
        assert given.chksum == IP(bytes(again)).chksum


LAYERS = [
    (IP(src="198.18.0.9", dst="198.19.0.9") / TCP(sport=1, dport=2) / b"odd", 20, 13),
    (IP(src="198.18.0.9", dst="198.19.0.9") / UDP(sport=1, dport=2) / (b"even" * 60), 20, 11),
    (IPv6(src="2001:2::9", dst="2001:2::8") / TCP(sport=1, dport=2) / (b"odd" * 71), 40, 13),
    (IPv6(src="2001:2::9", dst="2001:2::8") / UDP(sport=1, dport=2) / (b"x" * 200), 40, 11),
]


@pytest.mark.parametrize(("packet_", "l3", "kind"), LAYERS, ids=["tcp4", "udp4", "tcp6", "udp6"])
def test_checksums_completed_by_the_network_card(packet_, l3, kind):
    data = bytes(MAC / packet_)
    fix = {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": l3, "l4_type": kind}
    form = stream(variable(), write(at=14 + l3), fix, data=data)
    for frame in expand([form], limit=5, complete=True):
        assert frame == rebuilt(frame, len(data))


def rebuilt(frame: bytes, size: int) -> bytes:
    """The frame with all checksums computed by scapy."""
    layers = Ether(frame[:size])
    for layer in (IP, TCP, UDP):
        if layer in layers:
            del layers[layer].chksum
    return bytes(layers).ljust(len(frame), b"\0")


def test_offloaded_checksums_are_left_to_the_network_card():
    fix = {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11}
    [frame] = expand([stream(variable(), fix)], limit=1)
    assert frame[24:26] == b"\0\0"  # IPv4's own
    pseudo = sum(int.from_bytes(frame[at : at + 2], "big") for at in range(26, 34, 2)) + 17 + 26
    assert int.from_bytes(frame[40:42], "big") == (pseudo & 0xFFFF) + (pseudo >> 16)


def test_icmpv6_checksum():
    data = bytes(MAC / IPv6(src="2001:2::9", dst="2001:2::8") / ICMPv6EchoRequest(data=b"five!" * 20))
    fix = {"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 40}
    for frame in expand([stream(variable(), write(at=70), fix, data=data)], limit=3):
        again = Ether(frame)
        del again[ICMPv6EchoRequest].cksum
        assert bytes(again) == frame


def test_mac_addresses_come_from_the_port_unless_the_packet_keeps_them():
    kept = {flags: expand([stream(flags=flags)], limit=1)[0][:12] for flags in range(6)}
    mine = bytes.fromhex("000000010000"), bytes.fromhex("000000020000")
    port = b"\x10" * 6, b"\x18" * 6
    assert kept == {
        0: port[0] + port[1],
        1: port[0] + mine[1],
        2: mine[0] + port[1],
        3: mine[0] + mine[1],
        4: port[0] + port[1],
        5: port[0] + port[1],
    }


def test_frames_of_latency_streams_end_with_a_trailer():
    stats = {"enabled": True, "rule_type": "latency", "stream_id": 7}
    [frame] = expand([stream(flow_stats=stats)], limit=1)
    assert frame[-16:].hex() == "ab01000078563412ffeeddccbbaa9988"
    assert frame[18:20] == b"\xff\xff"


def test_streams_without_statistics_are_not_marked():
    marked = bytes(MAC / IP(src="198.18.0.9", dst="198.19.0.9", id=0xFF01) / UDP())
    [frame] = expand([stream(data=marked)], limit=1)
    assert frame[18:20] == b"\xef\x01"
    assert frame[14:34] == bytes(IP(rebuilt(frame, 60)[14:34]))


def test_a_vlan_tag_does_not_hide_the_mark():
    tagged = bytes(MAC / Dot1Q(vlan=7) / IP(src="198.18.0.9", dst="198.19.0.9", id=0xFFFF) / UDP())
    assert expand([stream(data=tagged)], limit=1)[0][22:24] == b"\xef\xff"


def interpret(instructions, count):
    """The values that each write stores, computed frame by frame."""
    state = {}
    for ins in instructions:
        if ins["type"] == "flow_var":
            low, high, step = ins["min_value"], ins["max_value"], ins["step"]
            missing = -(high - low + 1) % step
            low, high = (low, high + missing) if ins["op"] == "inc" else (low - missing, high)
            size = high - low + 1
            sign = 1 if ins["op"] == "inc" else -1
            state[ins["name"]] = (
                low,
                size,
                sign * (step % size),
                [ins["init_value"] - low - sign * (step % size)],
            )
            state[ins["name"]][3][0] %= size
    rows = []
    for _ in range(count):
        row, moving, expected = [], True, None
        for ins in instructions:
            if ins["type"] == "flow_var":
                low, size, step, place = state[ins["name"]]
                moving = moving if expected == ins["name"] else True
                if moving:
                    raw = place[0] + step
                    moving = not 0 <= raw < size
                    place[0] = raw % size
                expected = ins.get("next_var")
            else:
                low, size, step, place = state[ins["name"]]
                row.append(low + place[0])
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", range(25))
def test_chains_of_variables_equal_the_frame_by_frame_result(seed):
    dice = random.Random(seed)
    length = dice.randint(1, 4)
    chain = []
    for number in range(length):
        low = dice.randint(50, 60)
        high = low + dice.randint(0, 6)
        following = f"v{number + 1}" if number + 1 < length else None
        chain.append(
            variable(
                f"v{number}",
                low,
                high,
                op=dice.choice(["inc", "dec"]),
                init_value=dice.randint(low, high),
                step=dice.randint(1, 4),
                next_var=following,
                split_to_cores=False,
            )
        )
    program = [*chain, *(write(f"v{number}", at=44 + 2 * number) for number in range(length))]
    frames = expand([stream(*program, mode=burst(80))], limit=200)
    seen = [[int.from_bytes(f[44 + 2 * n : 46 + 2 * n], "big") for n in range(length)] for f in frames]
    assert seen == interpret(program, 80)
