# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts a profile's streams to the form that TRex's server expects."""

from collections.abc import Mapping, Sequence
from typing import Any

from fwlab.model.errors import BadInput
from fwlab.traffic.streams import Stream, endless, parse_streams

#: Number of the first stream. Number 0 means all streams in TRex's statistics.
FIRST_ID = 1


def server_streams(streams: Sequence[dict[str, Any]], seed: int = 1) -> list[dict[str, Any]]:
    """The parameters of `add_stream` for each enabled stream: `{"stream_id": …, "stream": …}`.

    The server identifies streams by number, not by name. Streams without a random_seed get the one that the frame table
    uses, so that all engines send the same packets. Raises BadInput for a profile that ends: TRex would not repeat it.
    """
    parsed = parse_streams(streams)
    _check_endless(parsed)
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
