# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts a profile's streams to the form that TRex's server expects."""

from collections.abc import Mapping, Sequence
from typing import Any

from fwlab.model.errors import BadInput
from fwlab.traffic.checksums import TCP
from fwlab.traffic.headers import IPV4, IPV6, ip_header
from fwlab.traffic.program import FixHw, FixIpv4
from fwlab.traffic.streams import Stream, endless, parse_streams
from fwlab.traffic.varied import MIN_TTL, TTLS

#: Number of the first stream. Number 0 means all streams in TRex's statistics.
FIRST_ID = 1


def server_streams(streams: Sequence[dict[str, Any]], seed: int = 1) -> list[dict[str, Any]]:
    """The parameters of `add_stream` for each enabled stream: `{"stream_id": …, "stream": …}`.

    The server identifies streams by number, not by name. Streams without a random_seed get the one that the frame table
    uses. Header fields that no exercise is about are drawn as in the frame table, though not to the same values.
    Raises BadInput for a profile that ends: TRex would not repeat it.
    """
    parsed = parse_streams(streams)
    _check_endless(parsed)
    return [
        {
            "stream_id": FIRST_ID + stream.index,
            "stream": {
                **streams[stream.index],
                "vm": _varied(stream, streams[stream.index].get("vm", {})),
                "stream_id": FIRST_ID + stream.index,
                "next_stream_id": FIRST_ID + stream.following if stream.following >= 0 else -1,
                "random_seed": stream.random_seed or seed + stream.index,
            },
        }
        for stream in parsed
        if stream.enabled
    ]


def varies_all(streams: Sequence[dict[str, Any]]) -> bool:
    """Whether TRex draws every header field that the frame table draws. It does not number the segments of TCP."""
    return not any(_protocol(stream) == TCP for stream in parse_streams(streams) if stream.enabled)


def _protocol(stream: Stream) -> int | None:
    version, at = ip_header(stream.data)
    return stream.data[at + (9 if version == IPV4 else 6)] if version else None


def _varied(stream: Stream, program: dict[str, Any]) -> dict[str, Any]:
    """The stream's program, which also draws identification and TTL, or flow label and hop limit."""
    version, at = ip_header(stream.data)
    if not version or _protocol(stream) == TCP:
        return program
    number, hops = (at + 4, at + 8) if version == IPV4 else (at + 2, at + 7)
    drawn = [*_random("number", 2, 0, 0xFFFF, number), *_random("hops", 1, MIN_TTL, MIN_TTL + TTLS - 1, hops)]
    own = program.get("instructions", [])
    fixes = any(
        (isinstance(ins, FixIpv4) and ins.pkt_offset == at) or (isinstance(ins, FixHw) and ins.l2_len == at)
        for ins in stream.instructions
    )
    fix = [] if fixes or version == IPV6 else [{"type": "fix_checksum_ipv4", "pkt_offset": at}]
    return {**program, "instructions": [*drawn, *own, *fix]}


def _random(name: str, size: int, low: int, high: int, at: int) -> list[dict[str, Any]]:
    """A random variable, and what writes it into the packet."""
    name = f"fwlab-{name}"
    limits = {"init_value": low, "min_value": low, "max_value": high, "step": 1}
    variable = {"type": "flow_var", "name": name, "size": size, "op": "random", "split_to_cores": True, **limits}
    write = {"type": "write_flow_var", "name": name, "pkt_offset": at, "add_value": 0, "is_big_endian": True}
    return [variable, write]


def counted_streams(streams: Sequence[dict[str, Any]], counts: Mapping[int, int]) -> list[dict[str, Any]]:
    """Turn continuous streams into bursts of `counts` packets (by index in the profile), at the same rates.

    Streams without packets are left out. Raises BadInput for a stream that is already a burst.
    """
    bursts = []
    for item in streams:
        stream, index = item["stream"], item["stream_id"] - FIRST_ID
        if stream["mode"]["type"] != "continuous":
            raise BadInput(
                f"stream {index + 1}: TRex can count the packets of continuous streams only",
                "make the streams of a counted traffic continuous, or use `--engine replay`",
            )
        if counts.get(index):
            mode = {"type": "single_burst", "rate": stream["mode"]["rate"], "total_pkts": counts[index]}
            bursts.append({**item, "stream": {**stream, "mode": mode}})
    return bursts


def _check_endless(streams: Sequence[Stream]) -> None:
    sending = [stream for stream in streams if stream.enabled and not stream.silent]
    if any(endless(stream, streams) for stream in sending):
        return
    raise BadInput(
        "the profile ends, and TRex does not repeat it",
        "make a stream continuous, make the first burst the `next` of the last, or use `--engine replay`",
    )
