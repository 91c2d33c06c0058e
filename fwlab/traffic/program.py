# SPDX-License-Identifier: GPL-2.0-or-later
"""A stream's field engine program: TRex's instructions in the form of its RPC, validated.

The names are the RPC's own, so that whatever an error message mentions can be looked up in TRex's manual. The limits
are TRex's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fwlab.model.declared import Strict
from fwlab.traffic.checksums import ICMPV6, TCP, UDP
from fwlab.traffic.headers import IPV4, IPV6

#: Length of the shortest frame in bytes, without its checksum. Shorter packets are padded with zeros.
MIN_LENGTH = 60
MAX_VARIABLE_BYTES = 64
MAX_REACH = 512
_L4_TCP, _L4_IP = 13, 17  # of fix_checksum_hw

Size = Literal[1, 2, 4, 8]
U16 = Annotated[int, Field(ge=0, le=0xFFFF)]
U32 = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
U64 = Annotated[int, Field(ge=0, le=0xFFFFFFFFFFFFFFFF)]
S32 = Annotated[int, Field(ge=-(1 << 31), le=(1 << 31) - 1)]


class Instruction(Strict):
    """One instruction of a program."""

    type: str

    def declares(self) -> dict[str, int]:
        """The variables that it declares, by name, with their sizes in bytes."""
        return {}

    def reach(self, packet: bytes, sizes: Mapping[str, int]) -> int:
        """One past the last byte of the packet that it accesses. `sizes`: those of the variables."""
        return 0

    def check(self, packet: bytes) -> None:
        """Raises ValueError if the packet does not have the headers that it needs."""


class Counter(Instruction):
    """A variable of `size` bytes that changes with each packet, or whenever the one before it wraps around.

    `split_to_cores` says what several cores would do; one core has all values.
    """

    name: str
    size: Size
    split_to_cores: bool = True
    next_var: str | None = None

    def declares(self) -> dict[str, int]:
        return {self.name: self.size}

    def _reject_wide(self, **values: int) -> None:
        for name, value in values.items():
            if value >= 1 << 8 * self.size:
                raise ValueError(f"{name} {value} does not fit in {self.size} bytes")


class FlowVar(Counter):
    """A variable over either a range or a list of values."""

    type: Literal["flow_var"]
    op: Literal["inc", "dec", "random"]
    step: U64 = 1
    init_value: U64 = 0
    min_value: U64 = 0
    max_value: U64 = 0
    value_list: list[U64] = Field(default=[], max_length=0xFFFF)

    @model_validator(mode="after")
    def _fits(self) -> FlowVar:
        if self.step == 0:
            raise ValueError("step cannot be 0")
        if "value_list" in self.model_fields_set:
            if not self.value_list:
                raise ValueError("value_list is empty")
            if self.step > len(self.value_list):
                raise ValueError(f"step {self.step} is longer than value_list ({len(self.value_list)} values)")
            self._reject_wide(value=max(self.value_list))
            return self
        if not {"init_value", "min_value", "max_value"} <= self.model_fields_set:
            raise ValueError("either value_list, or init_value, min_value and max_value are required")
        if self.max_value < self.min_value:
            raise ValueError(f"max_value {self.max_value} is below min_value {self.min_value}")
        if not self.min_value <= self.init_value <= self.max_value:
            raise ValueError(f"init_value {self.init_value} is outside {self.min_value}..{self.max_value}")
        self._reject_wide(max_value=self.max_value, step=self.step)
        return self

    def range(self, longest: int | None = None) -> tuple[int, int]:
        """Lowest and highest value, or index in the list.

        A range has whole steps: it is extended in the direction of counting, as far as the variable's size allows.
        `longest` is the packet's length in bytes if the variable trims it.
        """
        if self.value_list:
            return 0, len(self.value_list) - 1
        low, high = self.min_value, self.max_value
        missing = -(high - low + 1) % self.step
        if self.op == "inc":
            high = min(high + missing, (1 << 8 * self.size) - 1)
        elif self.op == "dec":
            low = max(low - missing, 0)
        return (low, high) if longest is None else (max(min(low, longest), MIN_LENGTH), min(high, longest))


class RandLimit(Counter):
    """A pseudo-random variable that restarts from its seed after `limit` values."""

    type: Literal["flow_var_rand_limit"]
    limit: Annotated[U64, Field(ge=1)]
    seed: U64
    min_value: U64
    max_value: U64

    @model_validator(mode="after")
    def _fits(self) -> RandLimit:
        if self.max_value < self.min_value:
            raise ValueError(f"max_value {self.max_value} is below min_value {self.min_value}")
        self._reject_wide(max_value=self.max_value, limit=self.limit)
        return self


class TupleVar(Instruction):
    """A client address and port that advance together: NAME.ip, NAME.port, NAME.flow_limit.

    limit_flows  number of flows after which both restart; 0: no limit
    flags        1: ports run on behind the range, up to the highest
    """

    type: Literal["tuple_flow_var"]
    name: str
    ip_min: U32
    ip_max: U32
    port_min: U16
    port_max: U16
    limit_flows: U32
    flags: U16 = 0

    @model_validator(mode="after")
    def _ordered(self) -> TupleVar:
        if self.ip_max < self.ip_min:
            raise ValueError("ip_max is below ip_min")
        if self.port_max < self.port_min:
            raise ValueError("port_max is below port_min")
        return self

    def declares(self) -> dict[str, int]:
        return {f"{self.name}.ip": 4, f"{self.name}.port": 2, f"{self.name}.flow_limit": 4}


class Write(Instruction):
    """Write a variable, plus a constant, into the packet."""

    type: Literal["write_flow_var"]
    name: str
    pkt_offset: U16
    add_value: S32 = 0
    is_big_endian: bool = True

    def reach(self, packet: bytes, sizes: Mapping[str, int]) -> int:
        return self.pkt_offset + sizes[self.name]


class WriteMask(Instruction):
    """Write the bits of a variable that a mask selects, after adding a constant and shifting."""

    type: Literal["write_mask_flow_var"]
    name: str
    pkt_offset: U16
    pkt_cast_size: Literal[1, 2, 4]
    mask: U32
    shift: Annotated[int, Field(gt=-32, lt=32)]
    add_value: S32 = 0
    is_big_endian: bool = True

    def width(self, size: int) -> int:
        """How many bytes of the packet it changes, for a variable of `size` bytes."""
        return self.pkt_cast_size if self.is_big_endian else min(size, 4)

    def reach(self, packet: bytes, sizes: Mapping[str, int]) -> int:
        return self.pkt_offset + self.width(sizes[self.name])


class TrimSize(Instruction):
    """Trim the packet to the length in a variable."""

    type: Literal["trim_pkt_size"]
    name: str


class FixIpv4(Instruction):
    """Compute the checksum of the IPv4 header at this offset."""

    type: Literal["fix_checksum_ipv4"]
    pkt_offset: U16

    def reach(self, packet: bytes, sizes: Mapping[str, int]) -> int:
        return self.pkt_offset + max((_byte(packet, self.pkt_offset) & 0x0F) * 4, 20)


class FixHw(Instruction):
    """Checksums that the network card completes: the IPv4 header's, and that of TCP or UDP over IPv4 or IPv6."""

    type: Literal["fix_checksum_hw"]
    l2_len: Annotated[U16, Field(ge=14)]
    l3_len: U16
    l4_type: Literal[11, 13, 17]

    def transport(self, packet: bytes) -> tuple[int, int]:
        """Offset and protocol of the transport header.

        An IPv4 header states the protocol (and, with l4_type IP, its own length). For IPv6, which may have extension
        headers, the instruction states both.
        """
        first = _byte(packet, self.l2_len)
        if first >> 4 != IPV4:
            return self.l2_len + self.l3_len, TCP if self.l4_type == _L4_TCP else UDP
        length = (first & 0x0F) * 4 if self.l4_type == _L4_IP else self.l3_len
        return self.l2_len + length, _byte(packet, self.l2_len + 9)

    def reach(self, packet: bytes, sizes: Mapping[str, int]) -> int:
        offset, protocol = self.transport(packet)
        return max(self.l2_len + 20, offset + (20 if protocol == TCP else 8))

    def check(self, packet: bytes) -> None:
        version, length = packet[self.l2_len] >> 4, (packet[self.l2_len] & 0x0F) * 4
        if version not in (IPV4, IPV6):
            raise ValueError(f"no IPv4 or IPv6 header at byte {self.l2_len}")
        if version == IPV6 and self.l4_type == _L4_IP:
            raise ValueError("l4_type IP is not supported on IPv6")
        if version == IPV4 and self.l4_type != _L4_IP:
            if length != self.l3_len:
                raise ValueError(f"the IPv4 header is not {self.l3_len} bytes long")
            if packet[self.l2_len + 9] not in (TCP, UDP):
                raise ValueError("the packet is neither TCP nor UDP")


class FixIcmpv6(Instruction):
    """Compute the ICMPv6 checksum. Lengths of the headers before it, in bytes."""

    type: Literal["fix_checksum_icmpv6"]
    l2_len: U16
    l3_len: U16

    def reach(self, packet: bytes, sizes: Mapping[str, int]) -> int:
        return self.l2_len + max(self.l3_len, 40) + 4

    def check(self, packet: bytes) -> None:
        if packet[self.l2_len] >> 4 != IPV6 or packet[self.l2_len + 6] != ICMPV6:
            raise ValueError(f"no ICMPv6 header at byte {self.l2_len}")


AnyInstruction = Annotated[
    FlowVar | RandLimit | TupleVar | Write | WriteMask | TrimSize | FixIpv4 | FixHw | FixIcmpv6,
    Field(discriminator="type"),
]


def check(packet: bytes, instructions: Sequence[Instruction]) -> None:
    """Raises ValueError naming an instruction that does not fit the packet or those before it."""
    sizes: dict[str, int] = {}
    for number, ins in enumerate(instructions):
        try:
            _check_names(ins, sizes, instructions[number + 1 : number + 2])
            sizes.update(ins.declares())
            end = ins.reach(packet, sizes)
            if end > len(packet):
                raise ValueError(f"reaches byte {end}, beyond the packet's {len(packet)} bytes")
            if end > MAX_REACH:
                raise ValueError(f"reaches byte {end}, beyond TRex's limit of {MAX_REACH}")
            ins.check(packet)
            if isinstance(ins, TrimSize):
                _check_trim(packet, trim_variable(instructions), ins.name)
        except ValueError as error:
            raise ValueError(f"instruction {number + 1}: {ins.type}: {error}") from error
    if sum(sizes.values()) > MAX_VARIABLE_BYTES:
        raise ValueError(f"variables take {sum(sizes.values())} bytes, more than the limit of {MAX_VARIABLE_BYTES}")


def trim_variable(instructions: Sequence[Instruction]) -> FlowVar | None:
    """The variable that sets the packet's length, if there is one."""
    trimming = {ins.name for ins in instructions if isinstance(ins, TrimSize)}
    return next((ins for ins in instructions if isinstance(ins, FlowVar) and ins.name in trimming), None)


def _check_names(ins: Instruction, sizes: Mapping[str, int], after: Sequence[Instruction]) -> None:
    for name in ins.declares():
        if name in sizes:
            raise ValueError(f"variable {name!r} is declared twice")
    if isinstance(ins, Write | WriteMask | TrimSize) and ins.name not in sizes:
        raise ValueError(f"variable {ins.name!r} is not declared before it")
    if isinstance(ins, Counter) and ins.next_var is not None:
        if isinstance(ins, FlowVar) and ins.op == "random":
            raise ValueError("a random variable cannot have a next_var")
        if not any(isinstance(follower, Counter) and follower.name == ins.next_var for follower in after):
            raise ValueError(f"next_var {ins.next_var!r} is not declared by the next instruction")


def _check_trim(packet: bytes, variable: FlowVar | None, name: str) -> None:
    if variable is None or variable.size != 2:
        raise ValueError(f"{name!r} is not a flow_var of 2 bytes")
    for value in variable.value_list:
        if not MIN_LENGTH <= value <= len(packet):
            raise ValueError(f"length {value} is outside {MIN_LENGTH}..{len(packet)}")
    if not variable.value_list and min(variable.min_value, len(packet)) >= min(variable.max_value, len(packet)):
        what = f"min_value {variable.min_value} leaves no range of lengths in a packet of {len(packet)} bytes"
        raise ValueError(what)


def _byte(packet: bytes, at: int) -> int:
    """The byte there, or 0 behind the packet's end."""
    return packet[at] if at < len(packet) else 0
