# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile's streams as TRex's server takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fwlab.model.errors import BadInput
from fwlab.traffic.streams import Stream, parse_streams

#: Stream 0 of TRex's statistics is everybody's; numbers begin here.
FIRST_ID = 1


def server_streams(streams: Sequence[dict[str, Any]], seed: int = 1) -> list[dict[str, Any]]:
    """`{"stream_id": …, "stream": …}` for each enabled stream, for `add_stream`.

    The server knows streams by number, not by name. A random variable without a seed of its own gets one, which is
    the frame table's: both engines draw the same. Raises BadInput for a profile that ends, since TRex plays it once.
    """
    parsed = parse_streams(streams)
    _refuse_ending(parsed)
    return [
        {
            "stream_id": FIRST_ID + stream.index,
            "stream": {
                **streams[stream.index],
                "stream_id": FIRST_ID + stream.index,
                "next_stream_id": FIRST_ID + stream.following if stream.following >= 0 else -1,
                "random_seed": stream.random_seed or seed + stream.index,
            },
        }
        for stream in parsed
        if stream.enabled
    ]


def counted_streams(streams: Sequence[dict[str, Any]], counts: Mapping[int, int]) -> list[dict[str, Any]]:
    """The server's streams as bursts of so many packets each (by place in the profile, from 0), at the same rates.

    A stream that gets none is left out. Raises BadInput for one that sends in bursts already.
    """
    found = []
    for item in streams:
        stream, index = item["stream"], item["stream_id"] - FIRST_ID
        if stream["mode"]["type"] != "continuous":
            raise BadInput(
                f"stream {index + 1}: TRex counts packets of continuous streams only",
                "make the streams of a counted traffic continuous, or take `--engine replay`",
            )
        if counts.get(index):
            mode = {"type": "single_burst", "rate": stream["mode"]["rate"], "total_pkts": counts[index]}
            found.append({**item, "stream": {**stream, "mode": mode}})
    return found


def _refuse_ending(streams: Sequence[Stream]) -> None:
    sending = [stream for stream in streams if stream.enabled and not stream.silent]
    if any(stream.mode.type == "continuous" or _comes_back(stream, streams) for stream in sending):
        return
    raise BadInput(
        "the profile ends, and TRex plays it only once",
        "make a stream continuous, let its last burst's `next` be the first, or take `--engine replay`",
    )


def _comes_back(stream: Stream, streams: Sequence[Stream]) -> bool:
    """Whether a chain of bursts leads back to this stream and never counts down."""
    at, seen = stream, set()
    while at.index not in seen and at.following >= 0 and not at.action_count:
        seen.add(at.index)
        at = streams[at.following]
        if at.index == stream.index:
            return True
    return False
