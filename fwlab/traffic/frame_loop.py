# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame table: the frames that an engine must repeat to send a profile's traffic without end.

They go only to addresses that are reserved for benchmarking (RFC 2544, RFC 5180).
"""

import ipaddress
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fwlab.model.errors import BadInput
from fwlab.traffic.expand import SIMULATOR_MACS, play
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import IPV4, read_headers, within
from fwlab.traffic.program import Counter, FlowVar, RandLimit, TupleVar, trim_variable
from fwlab.traffic.streams import Stream, endless, parse_streams

TABLE_FRAMES = 65_536
LAB_PREFIXES = ("198.18.0.0/15", "2001:2::/48")
#: Sources only: hosts of blacklists that are longer than the lab's networks. Answers to them never leave the host,
#: because the nodes' only other network is QEMU's own, and restricted.
LISTED_PREFIXES = ("10.0.0.0/8",)
_MULTICAST = ("224.0.0.0/4", "ff00::/8")
_HINT = "use addresses in " + " or ".join(LAB_PREFIXES)
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
    max_frames: int = TABLE_FRAMES,
    first: int | None = None,
) -> Table:
    """The frame table of a profile, with complete checksums. A profile that ends is repeated from its start.

    streams        the profile's streams, each as returned by `stream.to_json()`
    macs           destination and source MAC address of streams without their own
    seed           seed of random variables in streams without a random_seed
    max_frames     maximum number of frames
    first          build only the first frames of the table, which is not exact then

    Raises BadInput if a stream uses addresses outside the lab, or needs more than `max_frames`: for a longer burst,
    or for all values of a variable that counts.
    """
    profile = parse_streams(streams)
    enabled = [s for s in profile if s.enabled]
    steady = [s for s in enabled if s.sends and s.mode.type == "continuous"]
    if steady and len(steady) == len(enabled):
        limit, exact = _loop(steady, max_frames)
        profile = [_in_step(stream) for stream in profile]
    else:
        exact = not any(endless(s, profile) for s in enabled)
        limit = max_frames + 1 if exact else max_frames
    if first is not None and first < limit:
        limit, exact = first, False
    frames = play(profile, limit=limit, macs=macs, complete=True, seed=seed)
    if not len(frames):
        raise BadInput("the profile sends nothing", "enable a stream")
    if len(frames) > max_frames:
        raise BadInput(f"the profile sends more frames than the table holds ({max_frames})", "use shorter bursts")
    check_addresses(frames)
    return Table(frames, _loop_ns(frames, steady), exact)


def _in_step(stream: Stream) -> Stream:
    """The stream as if it had always been running: its start delay becomes a phase within one gap."""
    return stream.model_copy(update={"isg": stream.isg % (1e6 / stream.pps)})


def _loop(streams: Sequence[Stream], max_frames: int) -> tuple[int, bool]:
    """The number of frames until continuous streams repeat, and whether the table holds them."""
    exact = [Fraction(s.pps).limit_denominator(_FINEST) for s in streams]
    rates = [max(rate, Fraction(1, _FINEST)) for rate in exact]
    total = sum(rates)
    for stream, rate in zip(streams, rates, strict=True):
        drawn = {ins.name for ins in stream.instructions if isinstance(ins, RandLimit)}
        for name, values in _ranges(stream).items():
            needed = math.ceil(values * total / rate)
            if needed > max_frames and name not in drawn:  # of random values, some are as good as all
                raise BadInput(
                    f"{stream.label}: {values} values of {name!r} need {needed} frames, "
                    f"but the table holds {max_frames}",
                    "narrow the variable's range, or make it random",
                )
    shares = [rate / total for rate in rates]
    # the smallest size in which each stream's share is an integer and a multiple of the stream's own period
    size = math.lcm(*((_period(s) / share).numerator for s, share in zip(streams, shares, strict=True)))
    random = any(isinstance(ins, FlowVar) and ins.op == "random" for s in streams for ins in s.instructions)
    if size > max_frames:
        return max_frames, False
    return (max_frames // size * size if random else size), not random


def _ranges(stream: Stream) -> dict[str, int]:
    """The number of frames after which each variable begins again by itself; of random ones only the repeatable."""
    ranges: dict[str, int] = {}
    trimming = trim_variable(stream.instructions)
    for ins in stream.instructions if not stream.vm.cache else []:
        if isinstance(ins, FlowVar) and ins.op != "random":
            low, high = ins.range(len(stream.data) if ins is trimming else None)
            size = high - low + 1
            ranges[ins.name] = size // math.gcd(size, ins.step)
        elif isinstance(ins, RandLimit):
            ranges[ins.name] = ins.limit
        elif isinstance(ins, TupleVar):
            ranges[f"{ins.name}.ip"] = ins.ip_max - ins.ip_min + 1
    return ranges


def _period(stream: Stream) -> int:
    """The number of frames after which all variables begin again; those of a chain multiply."""
    if stream.vm.cache:
        return stream.vm.cache
    ranges, periods, chain = _ranges(stream), [1], 1
    follower: str | None = None
    for ins in stream.instructions:
        if isinstance(ins, TupleVar):
            ports = ins.port_max - ins.port_min + 1
            periods.append(ins.limit_flows or ranges[f"{ins.name}.ip"] * ports)
        elif isinstance(ins, Counter) and ins.name in ranges:
            chain = ranges[ins.name] * (chain if follower == ins.name else 1)
            periods.append(chain)
            follower = ins.next_var
    return math.lcm(*periods)


def _loop_ns(frames: Frames, steady: Sequence[Stream]) -> int:
    """Time from the first frame of a loop to the first of the next: at least 1 ns after the last frame."""
    last = int(frames.times_ns[-1])
    if steady:
        pps = sum(s.pps for s in steady)
        sent = sum(int((frames.stream == s.index).sum()) for s in steady)
        return max(round(sent / pps * 1e9), last + 1)
    gap = (last - int(frames.times_ns[0])) // max(len(frames) - 1, 1)
    return last + max(gap, 1)


def check_addresses(frames: Frames) -> None:
    """Raises BadInput naming stream, frame and address if an IP address is outside the lab's prefixes, or if a
    destination (IP or Ethernet) is a multicast address. A source may also be one that blacklists name."""
    headers = read_headers(frames)

    def among(addresses: np.ndarray, prefixes: tuple[str, ...]) -> np.ndarray:
        return np.asarray(np.any([within(headers.version, addresses, prefix) for prefix in prefixes], axis=0))

    has_ip = headers.version != 0
    for what, addresses, wrong, kind in (
        ("destination", headers.dst, among(headers.dst, _MULTICAST), "is a multicast address"),
        ("source", headers.src, has_ip & ~among(headers.src, LAB_PREFIXES + LISTED_PREFIXES), "is not a lab address"),
        ("destination", headers.dst, has_ip & ~among(headers.dst, LAB_PREFIXES), "is not a lab address"),
    ):
        if wrong.any():
            at = int(wrong.argmax())
            size = 4 if headers.version[at] == IPV4 else 16
            address = ipaddress.ip_address(addresses[at][:size].tobytes())
            raise BadInput(f"{_label(frames, at)}: {what} {address} {kind}", _HINT)
    if headers.group_mac.any():
        at = int(headers.group_mac.argmax())
        mac = frames[at][:6].hex(":")
        raise BadInput(
            f"{_label(frames, at)}: destination {mac} is a multicast address",
            "remove the Ethernet destination from the profile",
        )


def _label(frames: Frames, at: int) -> str:
    return f"{frames.labels[int(frames.stream[at])]}, frame {at + 1}"
