# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmark: time to expand 65 536 frames of several profiles. Run it with python -m tests.bench.traffic

Prints one line per profile: seconds to expand the frames, and their number.
The target is one second to expand. Nothing is asserted, because the host may be busy.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from fwlab.traffic import expand
from tests import DATA

FRAMES = 65_536
VECTORS = DATA / "trex-vectors"


def vector(name: str, **changes: Any) -> list[dict[str, Any]]:
    """The streams of one of TRex's profiles, with fields replaced by `changes`."""
    streams = json.loads((VECTORS / f"{name}.json").read_text())["streams"]
    return [{**stream, **changes} for stream in streams]


def continuous(pps: float) -> dict[str, Any]:
    return {"type": "continuous", "rate": {"type": "pps", "value": pps}}


def mix() -> list[dict[str, Any]]:
    """IMIX-like: three sizes at 28, 16 and 4 thousand packets per second, with changing addresses."""
    [stream] = vector("udp_1pkt_range_clients")
    packet = base64.b64decode(stream["packet"]["binary"])
    made = []
    for size, pps in ((60, 28_000), (590, 16_000), (1514, 4_000)):
        longer = {"binary": base64.b64encode(packet[:60].ljust(size, b"x")).decode(), "meta": ""}
        made.append({**stream, "packet": longer, "mode": continuous(pps)})
    return made


def many() -> list[dict[str, Any]]:
    """Thirty streams that send at the same instants."""
    return vector("udp_1pkt_1mac_override", mode=continuous(1000)) * 30


PROFILES = {
    "one address range, IPv4 checksum": vector("udp_1pkt_range_clients"),
    "clients and ports (tuple)": vector("udp_1pkt_tuple_gen_split"),
    "random source, TCP checksum": vector("syn_attack_fix_cs_hw"),
    "repeatable random, cache": vector("udp_1pkt_repeat_random"),
    "three sizes, three rates": mix(),
    "thirty streams, one rate": many(),
    "chain of bursts": vector("burst_3st_loop_x_times", action_count=0),
    "random lengths up to 9 kB": vector("udp_rand_len_9k"),
}


def main() -> None:
    print(f"{'profile':34} {'expand s':>9} {'frames':>7}")
    for name, streams in PROFILES.items():
        start = time.perf_counter()
        frames = expand(streams, limit=FRAMES, complete=True)
        print(f"{name:34} {time.perf_counter() - start:9.3f} {len(frames):7}")


if __name__ == "__main__":
    main()
