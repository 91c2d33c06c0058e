# SPDX-License-Identifier: GPL-2.0-or-later
"""The message for an invalid stream names the item and the next step."""

from __future__ import annotations

import pytest

from fwlab.model.errors import BadInput
from fwlab.traffic import expand
from tests.fakes.traffic_forms import burst, continuous, packet, stream, variable, write

TRIM = {"type": "trim_pkt_size", "name": "v"}
FIX_IP = {"type": "fix_checksum_ipv4", "pkt_offset": 14}
HW = {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 11}
DICE = {"type": "flow_var_rand_limit", "name": "v", "size": 2, "limit": 7, "seed": 5, "min_value": 0, "max_value": 9}
TUPLE = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 9, "port_min": 1, "port_max": 9}

STREAMS = [
    ([], "the profile has no streams"),
    ([7], "stream 1: Input should be a valid dictionary or instance of Stream"),
    ([stream(colour=1)], "stream 1: unknown field 'colour'"),
    ([{"packet": {"binary": ""}}], "stream 1: field 'mode' is missing"),
    ([stream(mode=continuous(1, "bps"))], "stream 1: mode.rate.type: Input should be 'pps', "),
    ([stream(mode=continuous(0))], "stream 1: mode.rate: invalid rate 0 pps; give at least "),
    ([stream(mode=continuous(-2, "percentage"))], "stream 1: mode.rate: invalid rate -2 percentage"),
    ([stream(mode={**continuous(), "type": "single_burst"})], "stream 1: mode: total_pkts is missing: "),
    ([stream(mode={**continuous(), "type": "multi_burst"})], "stream 1: mode: pkts_per_burst is missing: "),
    ([stream(packet={"binary": "?"})], "stream 1: packet.binary: not valid base64"),
    ([stream(data=b"short")], "stream 1: packet.binary: the packet has 5 bytes, not from 14 to 9238"),
    ([stream(data=bytes(9300))], "stream 1: packet.binary: the packet has 9300 bytes, not from 14 to 9238"),
    ([stream(name="a"), stream(name="a")], "stream 2 (a): the name is used twice"),
    ([stream(stream_id=3), stream(stream_id=3)], "stream 2: stream number 3 is used twice"),
    ([stream(mode=burst(1), next="b")], "stream 1: next stream 'b' does not exist"),
    ([stream(name="a", next="a")], "stream 1 (a): a continuous stream cannot have a next stream"),
    ([stream(mode=burst(1), next="b"), stream(name="b", enabled=False)], "stream 1: next stream 'b' is disabled"),
    ([stream(), stream(self_start=False)], "stream 2: no stream starts it"),
    ([stream(flow_stats={"enabled": True, "rule_type": "tpg"})], "stream 1: flow_stats: tagged packet groups are not"),
    ([stream(flow_stats={"enabled": True, "ieee_1588": True})], "stream 1: flow_stats: IEEE 1588 time stamps are not"),
    ([stream(core_id=1)], "stream 1: core_id: there is no core 1: the generator has one, 0"),
]

PROGRAMS = [
    ([{"type": "jump"}], "instruction 1: unknown instruction 'jump'; use one of: 'flow_var', "),
    ([variable(speed=3)], "instruction 1: flow_var: unknown field 'speed'"),
    ([{"type": "fix_checksum_ipv4"}], "instruction 1: fix_checksum_ipv4: field 'pkt_offset' is missing"),
    ([variable(step=0)], "instruction 1: flow_var: step cannot be 0"),
    ([variable(low=9, high=5)], "instruction 1: flow_var: max_value 5 is below min_value 9"),
    ([variable(init_value=6)], "instruction 1: flow_var: init_value 6 is outside 1..5"),
    ([variable(high=65536)], "instruction 1: flow_var: max_value 65536 does not fit in 2 bytes"),
    ([variable(value_list=[])], "instruction 1: flow_var: value_list is empty"),
    ([variable(value_list=[1], step=2)], "instruction 1: flow_var: step 2 is longer than value_list (1 values)"),
    ([variable(value_list=[70000])], "instruction 1: flow_var: value 70000 does not fit in 2 bytes"),
    ([variable(size=3)], "instruction 1: flow_var.size: Input should be 1, 2, 4 or 8"),
    ([variable(), variable()], "instruction 2: flow_var: variable 'v' is declared twice"),
    ([{**DICE, "size": 1, "limit": 256}], "instruction 1: flow_var_rand_limit: limit 256 does not fit in 1 bytes"),
    ([{**DICE, "max_value": 1 << 16}], "instruction 1: flow_var_rand_limit: max_value 65536 does not fit in 2 bytes"),
    ([variable(f"v{n}", size=8) for n in range(9)], "variables take 72 bytes, more than the limit of 64"),
    ([variable(), write("w")], "instruction 2: write_flow_var: variable 'w' is not declared before it"),
    ([variable(), write(at=599)], "instruction 2: write_flow_var: reaches byte 601, beyond the packet's 600 bytes"),
    ([variable(), write(at=511)], "instruction 2: write_flow_var: reaches byte 513, beyond TRex's limit of 512"),
    ([{**FIX_IP, "pkt_offset": 590}], "instruction 1: fix_checksum_ipv4: reaches byte 610, beyond the packet's 600"),
    ([TRIM], "instruction 1: trim_pkt_size: variable 'v' is not declared before it"),
    ([variable(size=4), TRIM], "instruction 2: trim_pkt_size: 'v' is not a flow_var of 2 bytes"),
    ([variable(low=680, high=690), TRIM], "instruction 2: trim_pkt_size: min_value 680 leaves no range of lengths in"),
    ([variable(value_list=[59]), TRIM], "instruction 2: trim_pkt_size: length 59 is outside 60..600"),
    ([variable(next_var="w")], "instruction 1: flow_var: next_var 'w' is not declared by the next instruction"),
    ([{**HW, "l2_len": 15}], "instruction 1: fix_checksum_hw: no IPv4 or IPv6 header at byte 15"),
    ([{**HW, "l3_len": 24}], "instruction 1: fix_checksum_hw: the IPv4 header is not 24 bytes long"),
    ([{"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 40}], "instruction 1: fix_checksum_icmpv6: no ICMPv6"),
    ([{**TUPLE, "limit_flows": 1, "port_max": 0}], "instruction 1: tuple_flow_var: port_max is below port_min"),
]
STREAMS += [([stream(*program, name="a", data=packet(600))], f"stream 1 (a), {said}") for program, said in PROGRAMS]


@pytest.mark.parametrize(("streams", "message"), STREAMS, ids=[message for _, message in STREAMS])
def test_a_wrong_stream_is_named(streams, message):
    with pytest.raises(BadInput) as error:
        expand(streams, limit=10)
    assert error.value.message.startswith(message)
    assert error.value.hint


def test_a_limit_of_zero_is_refused():
    with pytest.raises(BadInput, match="invalid limit 0: must be at least 1"):
        expand([stream()], limit=0)
