# SPDX-License-Identifier: GPL-2.0-or-later
"""Validated streams in TRex's RPC format (the output of `stream.to_json()`), with their `next` streams resolved."""

import base64
import binascii
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from fwlab.model.declared import Strict
from fwlab.model.errors import BadInput
from fwlab.traffic import program
from fwlab.traffic.field_engine import draws, ranged
from fwlab.traffic.program import MIN_LENGTH, AnyInstruction

FCS = 4  # bytes of the frame check sequence
_MIN_GIVEN, _MAX_GIVEN = 14, 9 * 1024 + 22  # packet lengths that TRex accepts, in bytes without FCS
_GAP = 20  # bytes of preamble and interframe gap, which count on layer 1
_LINE_RATE_BPS = 10_000_000_000  # of the link in TRex's simulator; percentages refer to it
_MIN_RATE = 1e-6  # in any unit; a packet in eleven days. A lower rate is a typing error.
_PAUSED_GAP = 0.1  # seconds between two turns of a paused stream
_SAMPLES = 10_000


class Rate(Strict):
    """A stream's rate: packets per second, bits per second of layer 1 or 2, or per cent of the line rate."""

    type: Literal["pps", "bps_L1", "bps_L2", "percentage"]
    value: float

    @model_validator(mode="after")
    def _above_zero(self) -> "Rate":
        if self.value < _MIN_RATE:
            raise ValueError(f"invalid rate {self.value:g} {self.type}; give at least {_MIN_RATE:g}")
        return self


class Mode(Strict):
    """A stream's rate and bursts. `ibg`: gap between bursts in microseconds; `count`: number of bursts."""

    type: Literal["continuous", "single_burst", "multi_burst"]
    rate: Rate
    total_pkts: int = Field(default=0, ge=1, lt=1 << 32)
    pkts_per_burst: int = Field(default=0, ge=1, lt=1 << 32)
    ibg: float = Field(default=0.0, ge=0)
    count: int = Field(default=1, ge=1, lt=1 << 32)

    @model_validator(mode="after")
    def _has_burst(self) -> "Mode":
        if self.type != "continuous" and not self.burst:
            field = "total_pkts" if self.type == "single_burst" else "pkts_per_burst"
            raise ValueError(f"{field} is missing: the number of packets of a burst")
        return self

    @property
    def burst(self) -> int:
        """Packets in one burst; 0 for a continuous stream."""
        return {"continuous": 0, "single_burst": self.total_pkts, "multi_burst": self.pkts_per_burst}[self.type]

    @property
    def bursts(self) -> int:
        """Number of bursts."""
        return self.count if self.type == "multi_burst" else 1


class Packet(Strict):
    """`binary`: the frame without its FCS, in base64. `meta`: a comment."""

    binary: str
    meta: str = ""

    @field_validator("binary")
    @classmethod
    def _decodes(cls, binary: str) -> str:
        try:
            size = len(base64.b64decode(binary, validate=True))
        except (binascii.Error, ValueError) as error:
            raise ValueError("not valid base64") from error
        if not _MIN_GIVEN <= size <= _MAX_GIVEN:
            raise ValueError(f"the packet has {size} bytes, not from {_MIN_GIVEN} to {_MAX_GIVEN}")
        return binary


class Program(Strict):
    """The field engine's program. `cache`: frames made before they repeat (0: no limit).

    Clients from before 2019 send `split_by_var`; TRex ignores it.
    """

    instructions: list[AnyInstruction] = Field(default=[])
    cache: int = Field(default=0, ge=0, le=0xFFFF)
    split_by_var: str = ""


class FlowStats(Strict):
    """TRex's counters of this stream. They mark the packet, and change nothing else that is sent."""

    enabled: bool = False
    stream_id: int | None = None
    vxlan: bool = False
    ieee_1588: bool = False
    rule_type: Literal["stats", "latency", "tpg"] | None = None

    @model_validator(mode="after")
    def _supported(self) -> "FlowStats":
        if self.enabled and (self.rule_type == "tpg" or self.ieee_1588):
            what = "tagged packet groups" if self.rule_type == "tpg" else "IEEE 1588 time stamps"
            raise ValueError(f"{what} are not supported; use STLFlowStats or STLFlowLatencyStats")
        return self


class Stream(Strict):
    """One stream.

    isg    start delay in microseconds
    flags  1: keep the packet's source MAC address; 2: keep its destination; 8: silent"""

    flags: int = 0
    action_count: int = Field(default=0, ge=0)
    enabled: bool = True
    self_start: bool = True
    start_paused: bool = False
    isg: float = Field(default=0.0, ge=0)
    core_id: int = -1
    random_seed: int = Field(default=0, ge=0, lt=1 << 32)
    mode: Mode
    packet: Packet
    vm: Program = Program()
    flow_stats: FlowStats = FlowStats()
    name: str | int | None = None
    next: str | int | None = None
    stream_id: int | None = None
    next_stream_id: int = -1

    @field_validator("core_id")
    @classmethod
    def _there(cls, core: int) -> int:
        if core > 0:
            raise ValueError(f"there is no core {core}: the generator has one, 0")
        return core

    _index: int = PrivateAttr(default=0)
    _following: int = PrivateAttr(default=-1)

    @property
    def index(self) -> int:
        """Position in the profile, from 0."""
        return self._index

    @property
    def following(self) -> int:
        """Index of the stream that starts when this one ends, or -1."""
        return self._following

    @cached_property
    def data(self) -> bytes:
        """The packet before the field engine, padded to 60 bytes."""
        return base64.b64decode(self.packet.binary).ljust(MIN_LENGTH, b"\0")

    @property
    def instructions(self) -> list[AnyInstruction]:
        """The field engine's program."""
        return self.vm.instructions

    @property
    def marks_latency(self) -> bool:
        """Whether this is a latency stream, whose packets carry a trailer."""
        return self.flow_stats.enabled and self.flow_stats.rule_type == "latency"

    @property
    def silent(self) -> bool:
        """Whether the stream takes its turns but sends nothing."""
        return bool(self.flags & 8)

    @property
    def sends(self) -> bool:
        """Whether it sends something in its turns."""
        return self.enabled and not self.silent and not self.start_paused

    @property
    def label(self) -> str:
        """How error messages name the stream."""
        return _label(self._index, self.name)

    @cached_property
    def mean_length(self) -> float:
        """Mean length of its frames in bytes, without frame check sequence."""
        ins = program.trim_variable(self.instructions)
        if ins is None:
            return len(self.data)
        if ins.value_list:
            return sum(ins.value_list) / len(ins.value_list)
        low, high = ins.range(len(self.data))
        if ins.op != "random":
            return (low + high) / 2.0
        # Like TRex, take the mean of a fixed sample of random numbers, which is not the middle of the range.
        sample = ranged(draws(1, _SAMPLES), 0, high - low)
        return low + int(sample.sum()) / _SAMPLES

    @cached_property
    def pps(self) -> float:
        """Its rate in packets per second, based on the mean length of its frames."""
        rate, size = self.mode.rate, self.mean_length + FCS
        if rate.type == "pps":
            return rate.value
        if rate.type == "bps_L2":
            return rate.value / (8 * size)
        layer1 = rate.value if rate.type == "bps_L1" else (rate.value / 100.0) * _LINE_RATE_BPS
        return layer1 * (size / (size + _GAP)) / (8 * size)

    @cached_property
    def gap(self) -> float:
        """Seconds between two turns of a burst."""
        return _PAUSED_GAP if self.start_paused else 1.0 / self.pps


def parse_streams(data: Sequence[Any]) -> list[Stream]:
    """A profile's streams, in order. Raises BadInput naming the stream, instruction or field."""
    if not isinstance(data, Sequence) or isinstance(data, str | bytes) or not data:
        raise BadInput("the profile has no streams", "return at least one STLStream from get_streams")
    streams = [_parse_stream(item, index) for index, item in enumerate(data)]
    _chain(streams)
    return streams


def endless(stream: Stream, streams: Sequence[Stream]) -> bool:
    """Whether the stream never ends: it is continuous, or its chain returns to it without a repeat count.

    streams  the whole profile
    """
    at, seen = stream, set[int]()
    while at.index not in seen and at.following >= 0 and not at.action_count:
        seen.add(at.index)
        at = streams[at.following]
        if at.index == stream.index:
            return True
    return stream.mode.type == "continuous"


def _label(index: int, name: Any) -> str:
    return f"stream {index + 1}" + (f" ({name})" if name is not None else "")


def _parse_stream(data: Any, index: int) -> Stream:
    label = _label(index, data.get("name") if isinstance(data, dict) else None)
    try:
        stream = Stream.model_validate(data)
    except ValidationError as error:
        raise BadInput(f"{label}{_first_error(error)}", "use the format of stream.to_json()") from error
    stream._index = index
    try:
        program.check(stream.data, stream.instructions)
    except ValueError as error:
        raise BadInput(f"{label}, {error}", "correct this instruction") from error
    return stream


def _first_error(error: ValidationError) -> str:
    """The first error that pydantic found: `: field: what is wrong`, or `, instruction 3: type.field: …`."""
    first = error.errors()[0]
    where, loc, what = "", list(first["loc"]), first["msg"].removeprefix("Value error, ")
    if first["type"] == "union_tag_invalid":
        what = f"unknown instruction {first['ctx']['tag']!r}; use one of: {first['ctx']['expected_tags']}"
    elif first["type"] == "extra_forbidden":
        what = f"unknown field {loc.pop()!r}"
    elif first["type"] == "missing":
        what = f"field {loc.pop()!r} is missing"
    if loc[:2] == ["vm", "instructions"] and len(loc) > 2:
        where, loc = f", instruction {int(loc[2]) + 1}", loc[3:]
    return ": ".join([where, *([".".join(map(str, loc))] if loc else []), what])


def _chain(streams: list[Stream]) -> None:
    """Resolve `next` names and numbers. Streams without a number have 1, 2, … in the profile's order."""
    free = iter(range(1, len(streams) + 1))
    numbers: list[Any] = [s.stream_id if s.stream_id is not None else next(free) for s in streams]
    names: list[Any] = [s.name for s in streams]
    for stream in streams:
        if stream.name is not None and names.index(stream.name) < stream.index:
            raise BadInput(f"{stream.label}: the name is used twice", "give each stream another name")
        if numbers.index(numbers[stream.index]) < stream.index:
            what = f"{stream.label}: stream number {numbers[stream.index]} is used twice"
            raise BadInput(what, "give each stream another number")
    for stream in streams:
        wanted, known = (stream.next, names) if stream.next else (stream.next_stream_id, numbers)
        if not stream.next and stream.next_stream_id < 0:
            continue
        if wanted not in known:
            raise BadInput(f"{stream.label}: next stream {wanted!r} does not exist", "give the name of a stream")
        if stream.mode.type == "continuous":
            raise BadInput(f"{stream.label}: a continuous stream cannot have a next stream", "make it a burst")
        target = streams[known.index(wanted)]
        if not target.enabled:
            raise BadInput(f"{stream.label}: next stream {wanted!r} is disabled", "enable it, or name another stream")
        stream._following = target.index
    reached: set[int] = set()
    for stream in streams:
        at = stream.index if stream.self_start and stream.enabled else -1
        while at >= 0 and at not in reached:
            reached.add(at)
            at = streams[at].following
    for stream in streams:
        if stream.enabled and stream.index not in reached:
            what = f"{stream.label}: no stream starts it"
            raise BadInput(what, "set self_start, or name it as the next of another stream")
