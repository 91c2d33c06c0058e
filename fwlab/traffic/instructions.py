# SPDX-License-Identifier: GPL-2.0-or-later
"""Validated field engine instructions in TRex's RPC format.

The names are the RPC's own, so that anything an error message mentions can be looked up in TRex's manual.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from fwlab.model.declared import Strict
from fwlab.model.errors import BadInput

Size = Literal[1, 2, 4, 8]
U16 = Annotated[int, Field(ge=0, le=0xFFFF)]
U32 = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
U64 = Annotated[int, Field(ge=0, le=0xFFFFFFFFFFFFFFFF)]
S32 = Annotated[int, Field(ge=-(1 << 31), le=(1 << 31) - 1)]


class Instruction(Strict):
    """One instruction of a field engine's program, as TRex's API encodes it."""

    type: str


class Counter(Instruction):
    """A variable of `size` bytes that changes with each packet, or whenever the one before it wraps around."""

    name: str
    size: Size
    split_to_cores: bool = True
    next_var: str | None = None


class FlowVar(Counter):
    """A variable over either a range or a list of values."""

    type: Literal["flow_var"]
    op: Literal["inc", "dec", "random"]
    step: U64 = 1
    init_value: U64 | None = None
    min_value: U64 | None = None
    max_value: U64 | None = None
    value_list: list[U64] | None = None

    @model_validator(mode="after")
    def _fits(self) -> FlowVar:
        top = (1 << (8 * self.size)) - 1
        if self.step == 0:
            raise ValueError("step cannot be 0")
        if self.value_list is not None:
            if not self.value_list:
                raise ValueError("value_list is empty")
            if self.step > len(self.value_list):
                raise ValueError(f"step {self.step} is longer than value_list ({len(self.value_list)} values)")
            if len(self.value_list) > 0xFFFF:
                raise ValueError(f"value_list has {len(self.value_list)} values, more than the limit of 65535")
            if max(self.value_list) > top:
                raise ValueError(f"value {max(self.value_list)} does not fit in {self.size} bytes")
            return self
        if self.init_value is None or self.min_value is None or self.max_value is None:
            raise ValueError("either value_list, or init_value, min_value and max_value are required")
        if self.max_value < self.min_value:
            raise ValueError(f"max_value {self.max_value} is below min_value {self.min_value}")
        if not self.min_value <= self.init_value <= self.max_value:
            raise ValueError(f"init_value {self.init_value} is outside {self.min_value}..{self.max_value}")
        if max(self.max_value, self.step) > top:
            raise ValueError(f"value {max(self.max_value, self.step)} does not fit in {self.size} bytes")
        return self

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest value of a variable over a range."""
        assert self.min_value is not None  # noqa: S101 - validated
        assert self.max_value is not None  # noqa: S101 - validated
        return self.min_value, self.max_value

    @property
    def first(self) -> int:
        """First value of a variable over a range."""
        assert self.init_value is not None  # noqa: S101 - validated
        return self.init_value


class RandLimit(Counter):
    """A pseudo-random variable that restarts from its seed after `limit` values."""

    type: Literal["flow_var_rand_limit"]
    limit: Annotated[int, Field(ge=1, le=0xFFFFFFFFFFFFFFFF)]
    seed: U64
    min_value: U64
    max_value: U64

    @model_validator(mode="after")
    def _fits(self) -> RandLimit:
        top = (1 << (8 * self.size)) - 1
        if self.max_value < self.min_value:
            raise ValueError(f"max_value {self.max_value} is below min_value {self.min_value}")
        for name in ("max_value", "limit"):
            if getattr(self, name) > top:
                raise ValueError(f"{name} {getattr(self, name)} does not fit in {self.size} bytes")
        return self


class TupleVar(Instruction):
    """A client address and port that advance together: NAME.ip, NAME.port, NAME.flow_limit."""

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


class Write(Instruction):
    """Write a variable, plus a constant, into the packet."""

    type: Literal["write_flow_var"]
    name: str
    pkt_offset: U16
    add_value: S32 = 0
    is_big_endian: bool = True


class WriteMask(Instruction):
    """Write the bits of a variable selected by a mask, after adding a constant and shifting."""

    type: Literal["write_mask_flow_var"]
    name: str
    pkt_offset: U16
    pkt_cast_size: Literal[1, 2, 4]
    mask: U32
    shift: Annotated[int, Field(gt=-32, lt=32)]
    add_value: S32 = 0
    is_big_endian: bool = True


class TrimSize(Instruction):
    """Trim the packet to the length in a variable."""

    type: Literal["trim_pkt_size"]
    name: str


class FixIpv4(Instruction):
    """Compute the checksum of the IPv4 header at this offset."""

    type: Literal["fix_checksum_ipv4"]
    pkt_offset: U16


class FixHw(Instruction):
    """Checksums that the network card completes: the IPv4 header's, and that of TCP or UDP over IPv4 or IPv6."""

    type: Literal["fix_checksum_hw"]
    l2_len: Annotated[int, Field(ge=14, le=0xFFFF)]
    l3_len: U16
    l4_type: Literal[11, 13, 17]


class FixIcmpv6(Instruction):
    """Compute the ICMPv6 checksum. Lengths of the headers before it, in bytes."""

    type: Literal["fix_checksum_icmpv6"]
    l2_len: U16
    l3_len: U16


_KINDS: dict[str, type[Instruction]] = {
    "flow_var": FlowVar,
    "flow_var_rand_limit": RandLimit,
    "tuple_flow_var": TupleVar,
    "write_flow_var": Write,
    "write_mask_flow_var": WriteMask,
    "trim_pkt_size": TrimSize,
    "fix_checksum_ipv4": FixIpv4,
    "fix_checksum_hw": FixHw,
    "fix_checksum_icmpv6": FixIcmpv6,
}


def parse_instruction(data: Any, where: str) -> Instruction:
    """Validate one instruction. Raises BadInput naming `where` and the instruction."""
    kind = data.get("type") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise BadInput(f"{where}: unknown instruction {kind!r}", "use one of: " + ", ".join(_KINDS))
    try:
        return _KINDS[kind].model_validate(data)
    except ValidationError as error:
        raise BadInput(f"{where}: {kind}: {first_error(error)}", "correct this instruction") from error


def first_error(error: ValidationError) -> str:
    """The first error that pydantic found, as `field: what is wrong`."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown field {field!r}"
    if first["type"] == "missing":
        return f"field {field!r} is missing"
    what = first["msg"].removeprefix("Value error, ")
    return f"{field}: {what}" if field else what
