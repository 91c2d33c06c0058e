# SPDX-License-Identifier: GPL-2.0-or-later
"""Field engine instructions in TRex's RPC form, validated. Names and fields are those of the RPC, so that a
message about one of them can be looked up in TRex's own manual."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fwlab.model.errors import BadInput

Size = Literal[1, 2, 4, 8]
U16 = Annotated[int, Field(ge=0, le=0xFFFF)]
U32 = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
U64 = Annotated[int, Field(ge=0, le=0xFFFFFFFFFFFFFFFF)]
S32 = Annotated[int, Field(ge=-(1 << 31), le=(1 << 31) - 1)]


class Instruction(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    type: str


class FlowVar(Instruction):
    """A variable of the stream that changes with each packet. Either a range or a list of values."""

    type: Literal["flow_var"]
    name: str
    size: Size
    op: Literal["inc", "dec", "random"]
    step: U64 = 1
    init_value: U64 | None = None
    min_value: U64 | None = None
    max_value: U64 | None = None
    value_list: list[U64] | None = None
    split_to_cores: bool = True
    next_var: str | None = None

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
                raise ValueError(f"value_list has {len(self.value_list)} values, at most 65535 fit")
            if max(self.value_list) > top:
                raise ValueError(f"value {max(self.value_list)} does not fit in {self.size} bytes")
            return self
        if self.init_value is None or self.min_value is None or self.max_value is None:
            raise ValueError("needs value_list, or init_value, min_value and max_value")
        if self.max_value < self.min_value:
            raise ValueError(f"max_value {self.max_value} is below min_value {self.min_value}")
        if not self.min_value <= self.init_value <= self.max_value:
            raise ValueError(f"init_value {self.init_value} is not within {self.min_value}..{self.max_value}")
        if max(self.max_value, self.step) > top:
            raise ValueError(f"value {max(self.max_value, self.step)} does not fit in {self.size} bytes")
        return self


class RandLimit(Instruction):
    """A pseudo-random variable that starts again from its seed after `limit` values."""

    type: Literal["flow_var_rand_limit"]
    name: str
    size: Size
    limit: Annotated[int, Field(ge=1, le=0xFFFFFFFFFFFFFFFF)]
    seed: U64
    min_value: U64
    max_value: U64
    split_to_cores: bool = True
    next_var: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> RandLimit:
        top = (1 << (8 * self.size)) - 1
        if self.max_value < self.min_value:
            raise ValueError(f"max_value {self.max_value} is below min_value {self.min_value}")
        if max(self.max_value, self.limit) > top:
            raise ValueError(f"value {max(self.max_value, self.limit)} does not fit in {self.size} bytes")
        return self


class TupleVar(Instruction):
    """Client address and port that walk together: NAME.ip, NAME.port, NAME.flow_limit."""

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
    """Write the bits of a variable that the mask selects, after adding and shifting."""

    type: Literal["write_mask_flow_var"]
    name: str
    pkt_offset: U16
    pkt_cast_size: Literal[1, 2, 4]
    mask: U32
    shift: Annotated[int, Field(gt=-32, lt=32)]
    add_value: S32 = 0
    is_big_endian: bool = True


class TrimSize(Instruction):
    """Cut the packet to the length that the variable holds."""

    type: Literal["trim_pkt_size"]
    name: str


class FixIpv4(Instruction):
    type: Literal["fix_checksum_ipv4"]
    pkt_offset: U16


class FixHw(Instruction):
    """Checksums that the network card completes: IPv4's own, and TCP's or UDP's over either IP."""

    type: Literal["fix_checksum_hw"]
    l2_len: Annotated[int, Field(ge=14, le=0xFFFF)]
    l3_len: U16
    l4_type: Literal[11, 13, 17]


class FixIcmpv6(Instruction):
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
    """One instruction of the RPC form. Raises BadInput naming `where` and the instruction."""
    kind = data.get("type") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise BadInput(f"{where}: unknown instruction {kind!r}", "use one of: " + ", ".join(_KINDS))
    try:
        return _KINDS[kind].model_validate(data)
    except ValidationError as error:
        raise BadInput(f"{where}: {kind}: {first_fault(error)}", "correct this instruction") from error


def first_fault(error: ValidationError) -> str:
    """The first fault that pydantic found, as `field: what is wrong`."""
    fault = error.errors()[0]
    field = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown field {field!r}"
    if fault["type"] == "missing":
        return f"field {field!r} is missing"
    what = fault["msg"].removeprefix("Value error, ")
    return f"{field}: {what}" if field else what
