# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame table: the frames that an engine must repeat to send a profile's traffic without end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fwlab.model.errors import BadInput
from fwlab.traffic.addresses import check_addresses
from fwlab.traffic.expand import expand
from fwlab.traffic.field_check import trim_variable
from fwlab.traffic.frames import Frames
from fwlab.traffic.instructions import FlowVar, RandLimit, TupleVar
from fwlab.traffic.packet_setup import SIMULATOR_MACS
from fwlab.traffic.rates import packets_per_second
from fwlab.traffic.streams import Stream, endless, parse_streams
from fwlab.traffic.variables import padded, trimmed

TABLE_FRAMES = 65_536
_FINEST = 1_000_000  # largest denominator of the fractions that approximate the rates


@dataclass(frozen=True)
class Table:
    """The frames of one loop.

    loop_ns  duration of the loop at the profile's own rates
    exact    whether the repeated loop equals the endless profile; otherwise the table was cut to its maximum size
    """

    frames: Frames
    loop_ns: int
    exact: bool


def build_table(
    streams: Sequence[Any],
    *,
    macs: tuple[bytes, bytes] = SIMULATOR_MACS,
    seed: int = 1,
    most: int = TABLE_FRAMES,
    first: int | None = None,
) -> Table:
    """The frame table of a profile, with complete checksums. A profile that ends is repeated from its start.

    streams        the profile's streams, each as returned by `stream.to_json()`
    macs           destination and source MAC address of streams without their own
    seed           seed of random variables in streams without a random_seed
    most           maximum number of frames
    first          so many frames of the table are enough; it is not exact then

    Raises BadInput if a stream uses addresses outside the lab, or needs more than `most` frames: for a longer burst, or
    for all values of a variable that takes them in turn.
    """
    profile = parse_streams(streams)
    parsed = [s for s in profile if s.enabled]
    sending = [s for s in parsed if not s.start_paused and not s.silent]
    steady = [s for s in sending if s.mode.type == "continuous"]
    if steady and len(steady) == len(parsed):
        limit, exact = _loop(steady, most)
        streams = [_in_step(data) for data in streams]
    else:
        exact = not any(endless(s, profile) for s in parsed)
        limit = most + 1 if exact else most
    if first is not None and first < limit:
        limit, exact = first, False
    frames = expand(streams, limit=limit, macs=macs, complete=True, seed=seed)
    if not len(frames):
        raise BadInput("the profile sends nothing", "enable a stream")
    if len(frames) > most:
        raise BadInput(f"the profile sends more frames than the table holds ({most})", "use shorter bursts")
    check_addresses(frames)
    return Table(frames, _loop_ns(frames, steady), exact)


def _in_step(data: dict[str, Any]) -> dict[str, Any]:
    """The stream as if it had always been running: its start delay becomes a phase within one gap."""
    stream = parse_streams([data])[0]
    gap_us = 1e6 / packets_per_second(stream)
    return {**data, "isg": stream.isg % gap_us}


def _loop(streams: Sequence[Stream], most: int) -> tuple[int, bool]:
    """The number of frames until continuous streams repeat, and whether the table holds them."""
    exact = [Fraction(packets_per_second(s)).limit_denominator(_FINEST) for s in streams]
    rates = [max(rate, Fraction(1, _FINEST)) for rate in exact]
    total = sum(rates)
    turns = [math.lcm(*_periods(s)) if _periods(s) else 1 for s in streams]
    for stream, rate in zip(streams, rates, strict=True):
        drawn = {ins.name for ins in stream.instructions if isinstance(ins, RandLimit)}
        for name, values in _ranges(stream).items():
            needed = math.ceil(values * total / rate)
            if needed > most and name not in drawn:  # of random values, some are as good as all
                raise BadInput(
                    f"{stream.label}: {values} values of {name!r} need {needed} frames, but the table holds {most}",
                    "narrow the variable's range, or make it random",
                )
    shares = [rate / total for rate in rates]
    # the smallest size in which each stream's share is an integer and a multiple of the stream's own period
    size = math.lcm(*((Fraction(turn) / share).numerator for turn, share in zip(turns, shares, strict=True)))
    random = any(isinstance(ins, FlowVar) and ins.op == "random" for s in streams for ins in s.instructions)
    if size > most:
        return most, False
    return (most // size * size if random else size), not random


def _ranges(stream: Stream) -> dict[str, int]:
    """The number of frames after which each variable begins again by itself."""
    ranges: dict[str, int] = {}
    trimming = trim_variable(stream.instructions)
    for ins in stream.instructions:
        if isinstance(ins, FlowVar) and ins.op != "random":
            ranges[ins.name] = _steps(ins, len(stream.data) if ins.name == trimming else None)
        elif isinstance(ins, RandLimit):
            ranges[ins.name] = ins.limit
        elif isinstance(ins, TupleVar):
            ranges[f"{ins.name}.ip"] = ins.ip_max - ins.ip_min + 1
    return ranges if not stream.vm.cache else {}


def _periods(stream: Stream) -> list[int]:
    """The period of each variable in frames; a chained variable has the product of the periods."""
    if stream.vm.cache:
        return [stream.vm.cache]
    periods, ranges = [], _ranges(stream)
    chain = 1
    expected: str | None = None
    for ins in stream.instructions:
        if isinstance(ins, TupleVar):
            clients, ports = ranges[f"{ins.name}.ip"], ins.port_max - ins.port_min + 1
            periods.append(ins.limit_flows or clients * ports)
        elif isinstance(ins, FlowVar | RandLimit) and ins.name in ranges:
            chain = ranges[ins.name] * (chain if expected == ins.name else 1)
            periods.append(chain)
            expected = ins.next_var
    return periods


def _steps(ins: FlowVar, longest: int | None) -> int:
    if ins.value_list is not None:
        size = len(ins.value_list)
    else:
        low, high = trimmed(*padded(ins), longest)
        size = high - low + 1
    return size // math.gcd(size, ins.step)


def _loop_ns(frames: Frames, steady: Sequence[Stream]) -> int:
    """Time from the first frame of a loop to the first of the next: at least 1 ns after the last frame."""
    last = int(frames.times_ns[-1])
    if steady:
        pps = sum(packets_per_second(s) for s in steady)
        sent = sum(int((frames.stream == s.index).sum()) for s in steady)
        return max(round(sent / pps * 1e9), last + 1)
    gap = (last - int(frames.times_ns[0])) // max(len(frames) - 1, 1)
    return last + max(gap, 1)
