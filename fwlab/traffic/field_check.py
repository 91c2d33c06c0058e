# SPDX-License-Identifier: GPL-2.0-or-later
"""Validates field engine programs before any frame is made. The limits are TRex's own."""

from collections.abc import Sequence

from fwlab.model.errors import BadInput
from fwlab.traffic.instructions import (
    FixHw,
    FixIcmpv6,
    FixIpv4,
    FlowVar,
    Instruction,
    RandLimit,
    TrimSize,
    TupleVar,
    Write,
    WriteMask,
)

MOST_VARIABLE_BYTES = 64
FURTHEST_WRITE = 512
#: A tail shorter than this is not worth storing separately from the head.
FURTHEST_TAIL = 64
_LONGEST_IPV4_HEADER = 60
_TCP_HEADER = 20
_IPV6_HEADER = 40


def check(packet: bytes, instructions: Sequence[Instruction], label: str) -> None:
    """Raises BadInput naming the stream (`label`) and the instruction."""
    sizes: dict[str, int] = {}
    used = 4 if any(isinstance(ins, FlowVar) and ins.op == "random" for ins in instructions) else 0
    for number, ins in enumerate(instructions, start=1):
        names = _declares(ins)
        for name in names:
            if name in sizes:
                raise BadInput(
                    f"{label}, instruction {number}: variable {name!r} is declared twice", "rename one of them"
                )
        sizes.update(names)
        used += 2 * sum(names.values()) + 4 if isinstance(ins, RandLimit) else sum(names.values())
    if used > MOST_VARIABLE_BYTES:
        raise BadInput(
            f"{label}: variables take {used} bytes, more than the limit of {MOST_VARIABLE_BYTES}",
            "use fewer or smaller variables",
        )
    for number, ins in enumerate(instructions, start=1):
        where = f"{label}, instruction {number}: {ins.type}"
        if isinstance(ins, Write | WriteMask | TrimSize) and ins.name not in sizes:
            raise BadInput(f"{where}: unknown variable {ins.name!r}", "declare it with a flow_var")
        if isinstance(ins, TrimSize):
            _check_trim(packet, instructions, ins, where)
        elif isinstance(ins, FlowVar | RandLimit) and ins.next_var is not None:
            _check_next(instructions, number, where)
        end = _end(ins, sizes, packet)
        if end > len(packet):
            raise BadInput(f"{where}: reaches byte {end}, beyond the packet's {len(packet)} bytes", "check its offset")
        if end > FURTHEST_WRITE:
            raise BadInput(f"{where}: reaches byte {end}, beyond TRex's limit of {FURTHEST_WRITE}", "check its offset")
        if isinstance(ins, FixHw):
            _check_hw(packet, ins, where)
        if isinstance(ins, FixIcmpv6) and (packet[ins.l2_len] >> 4 != 6 or packet[ins.l2_len + 6] != 58):
            raise BadInput(f"{where}: no ICMPv6 header at byte {ins.l2_len}", "check l2_len")


def touched(instructions: Sequence[Instruction]) -> int:
    """How many leading bytes the instructions may read or write, the MAC addresses included."""
    sizes: dict[str, int] = {}
    for ins in instructions:
        sizes.update(_declares(ins))
    return max((_end(ins, sizes) for ins in instructions), default=12)


def trim_variable(instructions: Sequence[Instruction]) -> str | None:
    """The variable that sets the packet's length, if there is one."""
    return next((ins.name for ins in instructions if isinstance(ins, TrimSize)), None)


def _declares(ins: Instruction) -> dict[str, int]:
    if isinstance(ins, FlowVar | RandLimit):
        return {ins.name: ins.size}
    if isinstance(ins, TupleVar):
        return {f"{ins.name}.ip": 4, f"{ins.name}.port": 2, f"{ins.name}.flow_limit": 4}
    return {}


def _end(ins: Instruction, sizes: dict[str, int], packet: bytes | None = None) -> int:
    """One past the last byte that the instruction accesses; without `packet`, the upper bound."""
    if isinstance(ins, Write):
        return ins.pkt_offset + sizes[ins.name]
    if isinstance(ins, WriteMask):
        return ins.pkt_offset + max(ins.pkt_cast_size, 1 if ins.is_big_endian else min(sizes[ins.name], 4))
    if isinstance(ins, FixIpv4):
        length = _LONGEST_IPV4_HEADER
        if packet is not None and ins.pkt_offset < len(packet):
            length = max((packet[ins.pkt_offset] & 0x0F) * 4, 20)
        return ins.pkt_offset + length
    if isinstance(ins, FixHw):
        if packet is None:
            return ins.l2_len + max(ins.l3_len, _LONGEST_IPV4_HEADER) + _TCP_HEADER
        protocol = 0
        if ins.l2_len + 9 < len(packet):
            protocol = packet[ins.l2_len + (9 if packet[ins.l2_len] >> 4 == 4 else 6)]
        return ins.l2_len + ins.l3_len + {6: _TCP_HEADER, 17: 8}.get(protocol, 8)
    if isinstance(ins, FixIcmpv6):
        return ins.l2_len + max(ins.l3_len, _IPV6_HEADER) + 4
    return 12


def _check_trim(packet: bytes, instructions: Sequence[Instruction], trim: TrimSize, where: str) -> None:
    ins = next((i for i in instructions if isinstance(i, FlowVar) and i.name == trim.name), None)
    if ins is None or ins.size != 2:
        raise BadInput(f"{where}: {trim.name!r} is not a flow_var of 2 bytes", "trim with a flow_var of size 2")
    if ins.value_list is not None:
        for value in ins.value_list:
            if not 60 <= value <= len(packet):
                raise BadInput(f"{where}: length {value} is outside 60..{len(packet)}", "correct value_list")
    elif min(ins.bounds[0], len(packet)) >= min(ins.bounds[1], len(packet)):
        raise BadInput(
            f"{where}: min_value {ins.min_value} leaves no range of lengths in a packet of {len(packet)} bytes",
            "give a longer packet or a smaller min_value",
        )


def _check_next(instructions: Sequence[Instruction], number: int, where: str) -> None:
    ins = instructions[number - 1]
    assert isinstance(ins, FlowVar | RandLimit)  # noqa: S101 - the caller checked it
    follower = instructions[number] if number < len(instructions) else None
    if not isinstance(follower, FlowVar | RandLimit) or follower.name != ins.next_var:
        raise BadInput(
            f"{where}: next_var {ins.next_var!r} is not declared by the next instruction", "declare it right after"
        )
    if isinstance(ins, FlowVar) and ins.op == "random":
        raise BadInput(f"{where}: a random variable cannot have a next_var", "use inc, dec or flow_var_rand_limit")
    if follower.split_to_cores and not (isinstance(follower, FlowVar) and follower.op == "random"):
        raise BadInput(
            f"{where}: {follower.name!r} depends on it and must not be split to cores",
            "declare it with split_to_cores = False",
        )


def _check_hw(packet: bytes, ins: FixHw, where: str) -> None:
    version = packet[ins.l2_len] >> 4
    if version == 6:
        if ins.l4_type == 17:
            raise BadInput(f"{where}: l4_type IP is not supported on IPv6", "set l4_type to TCP or UDP")
        return
    if version != 4:
        raise BadInput(f"{where}: no IPv4 or IPv6 header at byte {ins.l2_len}", "check l2_len")
    if ins.l4_type != 17 and (packet[ins.l2_len] & 0x0F) * 4 != ins.l3_len:
        raise BadInput(f"{where}: the IPv4 header is not {ins.l3_len} bytes long", "check l3_len")
    if ins.l4_type != 17 and packet[ins.l2_len + 9] not in (6, 17):
        raise BadInput(f"{where}: the packet is neither TCP nor UDP", "set l4_type to IP")
