# SPDX-License-Identifier: GPL-2.0-or-later
"""Validated streams in TRex's RPC format (the output of `stream.to_json()`), with their `next` streams resolved."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, PrivateAttr, ValidationError

from fwlab.model.declared import Strict
from fwlab.model.errors import BadInput
from fwlab.traffic.instructions import Instruction, first_error, parse_instruction

SHORTEST, LONGEST = 14, 9 * 1024 + 22  # packet lengths that TRex accepts, in bytes without the frame check sequence
SHORTEST_SENT = 60  # bytes; shorter packets are padded with zeros

SLOWEST = 1e-6  # in any unit; a packet in eleven days. A lower rate is a typing error.

_MODES = ("continuous", "single_burst", "multi_burst")
_RATES = ("pps", "bps_L1", "bps_L2", "percentage")


class Rate(Strict):
    """A stream's rate: packets per second, bits per second of layer 1 or 2, or per cent of the line rate."""

    type: Literal["pps", "bps_L1", "bps_L2", "percentage"]
    value: float


class Mode(Strict):
    """A stream's rate and bursts. `ibg`: gap between bursts in microseconds; `count`: number of bursts."""

    type: Literal["continuous", "single_burst", "multi_burst"]
    rate: Rate
    total_pkts: int | None = Field(default=None, ge=1, lt=1 << 32)
    pkts_per_burst: int | None = Field(default=None, ge=1, lt=1 << 32)
    ibg: float = Field(default=0.0, ge=0)
    count: int = Field(default=1, ge=1, lt=1 << 32)

    @property
    def burst(self) -> int:
        """Packets in one burst; 0 for a continuous stream."""
        if self.type == "continuous":
            return 0
        return (self.total_pkts if self.type == "single_burst" else self.pkts_per_burst) or 0


class Packet(Strict):
    """`binary`: the frame without its FCS, in base64. `meta`: a comment."""

    binary: str
    meta: str = ""


class Program(Strict):
    """The field engine's program. `cache`: frames made before they repeat (0: no limit).

    Clients from before 2019 send `split_by_var`; TRex ignores it.
    """

    instructions: list[Any] = Field(default=[])
    cache: int = Field(default=0, ge=0, le=0xFFFF)
    split_by_var: str = ""


class FlowStats(Strict):
    """TRex's counters of this stream. They do not change what is sent."""

    enabled: bool = False
    stream_id: int | None = None
    vxlan: bool = False
    ieee_1588: bool = False
    rule_type: Literal["stats", "latency", "tpg"] | None = None


class Stream(Strict):
    """One stream.

    isg    start delay in microseconds
    flags  1: keep the packet's source MAC address; 2: keep its destination; 8: silent
    """

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

    _index: int = PrivateAttr(default=0)
    _id: int = PrivateAttr(default=0)
    _following: int = PrivateAttr(default=-1)
    _data: bytes = PrivateAttr(default=b"")
    _instructions: list[Instruction] = PrivateAttr(default_factory=list)

    @property
    def index(self) -> int:
        """Position in the profile, from 0."""
        return self._index

    @property
    def id(self) -> int:
        """TRex's number of the stream, which determines the order of TRex's stream table."""
        return self._id

    @property
    def following(self) -> int:
        """Index of the stream that starts when this one ends, or -1."""
        return self._following

    @property
    def data(self) -> bytes:
        """The packet before the field engine, padded to 60 bytes."""
        return self._data

    @property
    def instructions(self) -> list[Instruction]:
        """The field engine's program, validated."""
        return self._instructions

    @property
    def sequenced(self) -> bool:
        """Whether this is a latency stream: it numbers its packets, so it stays on one core."""
        return self.flow_stats.enabled and self.flow_stats.rule_type == "latency"

    @property
    def silent(self) -> bool:
        """Whether the stream takes its turns but sends nothing."""
        return bool(self.flags & 8)

    @property
    def label(self) -> str:
        """How error messages name the stream."""
        name = f" ({self.name})" if self.name is not None else ""
        return f"stream {self._index + 1}{name}"


def parse_streams(data: Sequence[Any]) -> list[Stream]:
    """A profile's streams, in order. Raises BadInput naming the stream, instruction or field."""
    if not isinstance(data, Sequence) or isinstance(data, str | bytes) or not data:
        raise BadInput("the profile has no streams", "return at least one STLStream from get_streams")
    streams = [_parse_stream(item, index) for index, item in enumerate(data)]
    _number(streams)
    _chain(streams)
    return streams


def _parse_stream(data: Any, index: int) -> Stream:
    where = f"stream {index + 1}"
    if not isinstance(data, dict):
        raise BadInput(f"{where}: not a JSON object", "use the format of stream.to_json()")
    if data.get("name") is not None:
        where += f" ({data['name']})"
    mode = _object(data, "mode")
    rate = _object(mode, "rate")
    if "type" in mode and mode["type"] not in _MODES:
        raise BadInput(f"{where}: unknown mode {mode['type']!r}", "use one of: " + ", ".join(_MODES))
    if "type" in rate and rate["type"] not in _RATES:
        raise BadInput(f"{where}: unknown rate {rate['type']!r}", "use one of: " + ", ".join(_RATES))
    try:
        stream = Stream.model_validate(data)
    except ValidationError as error:
        raise BadInput(f"{where}: {first_error(error)}", "use the format of stream.to_json()") from error
    if not stream.mode.rate.value >= SLOWEST:
        raise BadInput(
            f"{where}: invalid rate {stream.mode.rate.value:g} {stream.mode.rate.type}",
            "give a rate above zero" if stream.mode.rate.value <= 0 else f"give a rate of at least {SLOWEST:g}",
        )
    if not stream.mode.burst and stream.mode.type != "continuous":
        field = "total_pkts" if stream.mode.type == "single_burst" else "pkts_per_burst"
        raise BadInput(f"{where}: field 'mode.{field}' is missing", "give the number of packets of a burst")
    if stream.flow_stats.enabled and (stream.flow_stats.rule_type == "tpg" or stream.flow_stats.ieee_1588):
        what = "tagged packet groups" if stream.flow_stats.rule_type == "tpg" else "IEEE 1588 time stamps"
        raise BadInput(f"{where}: {what} are not supported", "use STLFlowStats or STLFlowLatencyStats")
    if stream.sequenced and stream.core_id >= 0:
        raise BadInput(f"{where}: a latency stream cannot be pinned to a core", "omit core_id")
    stream._index = index
    stream._data = _decode(stream.packet.binary, where)
    stream._instructions = [
        parse_instruction(item, f"{where}, instruction {number}")
        for number, item in enumerate(stream.vm.instructions, start=1)
    ]
    return stream


def _object(data: dict[str, Any], field: str) -> dict[str, Any]:
    value = data.get(field)
    return value if isinstance(value, dict) else {}


def _decode(binary: str, where: str) -> bytes:
    try:
        data = base64.b64decode(binary, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"{where}: packet.binary is not valid base64", "use the format of stream.to_json()") from error
    if not SHORTEST <= len(data) <= LONGEST:
        raise BadInput(f"{where}: the packet has {len(data)} bytes", f"give it from {SHORTEST} to {LONGEST} bytes")
    return data.ljust(SHORTEST_SENT, b"\0")


def _number(streams: list[Stream]) -> None:
    """Number the streams without a number 1, 2, … in the profile's order."""
    free = 1
    for stream in streams:
        if stream.stream_id is not None:
            stream._id = stream.stream_id
        else:
            stream._id, free = free, free + 1
    numbers = [stream.id for stream in streams]
    for stream in streams:
        if numbers.count(stream.id) > 1:
            raise BadInput(
                f"{stream.label}: stream number {stream.id} is used twice", "give each stream a number of its own"
            )


def _chain(streams: list[Stream]) -> None:
    names: dict[str | int, int] = {}
    for stream in streams:
        if stream.name is not None:
            if stream.name in names:
                raise BadInput(f"{stream.label}: the name is used twice", "give each stream a name of its own")
            names[stream.name] = stream.index
    ids = {stream.id: stream.index for stream in streams}
    for stream in streams:
        if stream.next:
            target, shown = names.get(stream.next), stream.next
        elif stream.next_stream_id >= 0:
            target, shown = ids.get(stream.next_stream_id), stream.next_stream_id
        else:
            continue
        if target is None:
            raise BadInput(f"{stream.label}: next stream {shown!r} does not exist", "give the name of a stream")
        if stream.mode.type == "continuous":
            raise BadInput(f"{stream.label}: a continuous stream cannot have a next stream", "make it a burst")
        if not streams[target].enabled:
            raise BadInput(f"{stream.label}: next stream {shown!r} is disabled", "enable it, or name another stream")
        if streams[target].sequenced != stream.sequenced:
            raise BadInput(
                f"{stream.label}: a latency stream and another stream cannot follow each other",
                "chain streams of one kind",
            )
        if streams[target].core_id != stream.core_id:
            raise BadInput(f"{stream.label}: its next stream runs on another core", "give both the same core_id")
        stream._following = target
    reached = {stream.index for stream in streams if stream.self_start and stream.enabled}
    todo = list(reached)
    while todo:
        target = streams[todo.pop()].following
        if target >= 0 and target not in reached:
            reached.add(target)
            todo.append(target)
    for stream in streams:
        if stream.enabled and stream.index not in reached:
            raise BadInput(
                f"{stream.label}: no stream starts it", "set self_start, or name it as the next of another stream"
            )


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
