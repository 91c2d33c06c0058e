# SPDX-License-Identifier: GPL-2.0-or-later
"""Short ways to write streams in TRex's RPC form, for the tests of traffic."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from fwlab.traffic import Frames, expand

SOURCE, DESTINATION = "198.18.0.9", "198.19.0.9"


def packet(size: int = 60, src: str = SOURCE, dst: str = DESTINATION) -> bytes:
    """A UDP packet of `size` bytes between lab addresses."""
    ethernet = Ether(dst="00:00:00:01:00:00", src="00:00:00:02:00:00")
    return bytes(ethernet / IP(src=src, dst=dst) / UDP(sport=1025, dport=12) / bytes(size - 42))


def undrawn(frames: Frames) -> np.ndarray:
    """The bytes of IPv4 frames, with zeros where a seed draws, and in the checksums that depend on it."""
    whole = frames.matrix(int(frames.lengths.max()))
    for part in (slice(18, 20), 22, slice(24, 26)):
        whole[:, part] = 0
    tcp = whole[:, 23] == 6
    for part in (slice(38, 46), slice(50, 52)):
        whole[tcp, part] = 0
    return whole


def rate(value: float, kind: str = "pps") -> dict[str, Any]:
    return {"type": kind, "value": value}


def continuous(value: float = 1000, kind: str = "pps") -> dict[str, Any]:
    return {"type": "continuous", "rate": rate(value, kind)}


def burst(packets: int, value: float = 1000) -> dict[str, Any]:
    return {"type": "single_burst", "total_pkts": packets, "rate": rate(value)}


def stream(*instructions: dict[str, Any], data: bytes | None = None, **fields: Any) -> dict[str, Any]:
    """One stream. The default `mode` is continuous at 1000 packets per second."""
    binary = base64.b64encode(packet() if data is None else data).decode()
    form = {"mode": continuous(), "packet": {"binary": binary, "meta": ""}}
    return {**form, "vm": {"instructions": list(instructions)}, **fields}


def one_each(*packets: tuple[str | None, Any]) -> Frames:
    """One frame for each pair of stream name and scapy packet, in order."""
    streams = [
        stream(data=bytes(layer), mode=burst(1), isg=float(n), name=name) for n, (name, layer) in enumerate(packets)
    ]
    return expand(streams, limit=len(packets))


def variable(name: str = "v", low: int = 1, high: int = 5, **fields: Any) -> dict[str, Any]:
    """A flow_var over a range or `value_list`. The default counts up in two bytes."""
    form: dict[str, Any] = {"type": "flow_var", "name": name, "size": 2, "op": "inc", "step": 1}
    if "value_list" not in fields:
        start = high if fields.get("op") == "dec" else low
        form |= {"init_value": start, "min_value": low, "max_value": high}
    return {**form, **fields}


def write(name: str = "v", at: int = 44, **fields: Any) -> dict[str, Any]:
    return {
        "type": "write_flow_var",
        "name": name,
        "pkt_offset": at,
        "add_value": 0,
        "is_big_endian": True,
        **fields,
    }
