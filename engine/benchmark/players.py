# SPDX-License-Identifier: GPL-2.0-or-later
"""The senders: the replay engine with both drivers, and other generators as fast as their manuals describe."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwlab.generator.frame_table import write_table
from fwlab.model.topology import Topology

#: Frame tables on the generator and their number of frames: about as many as a lab's tables have, one as most other
#: generators send, and more than the host's near caches hold.
TABLES = {"/var/tmp/bench.tbl": 4096, "/var/tmp/one.tbl": 1, "/var/tmp/large.tbl": 65_536}
TABLE, ONE, LARGE = TABLES
ENGINE = "/var/tmp/fwlab-replay"
LINK = "generator-dut"
#: One frame repeated, handed to the driver 128 at a time: pktgen's least work per frame. Its documentation recommends
#: both settings for speed; higher values were no faster.
_SAME = "'clone_skb 100000' 'burst 128' 'src_min 198.18.0.5' 'dst_min 198.19.0.5' 'dst_max 198.19.0.5'"
#: Random addresses, which change with every burst of 64 frames.
_RANDOM = (
    "'burst 64' 'flag IPSRC_RND' 'flag IPDST_RND' 'src_min 198.18.0.0' 'src_max 198.18.255.255' "
    "'dst_min 198.19.0.0' 'dst_max 198.19.255.255'"
)
_PKTGEN = """modprobe pktgen && cd /proc/net/pktgen && echo reset > pgctrl && echo add_device {dev} > kpktgend_0
for word in 'pkt_size {size}' 'count 0' 'delay 0' 'dst_mac {mac}' {options}; do echo "$word" > {dev} || exit; done
(sleep {seconds}; echo stop > pgctrl) & echo start > pgctrl; grep -o '[0-9]*pps' {dev}"""
#: One frame from a ring that the kernel reads; a small ring stays in the CPU's caches.
_TRAFGEN = """echo '{{ eth(da={mac}, sa={own}), ipv4(saddr=198.18.0.5, daddr=198.19.0.5, ttl=64), udp(sp=9, dp=9),
 fill(0, {fill}) }}' > /run/bench.cfg
timeout -s INT {seconds} trafgen --cpus 1 --ring-size 1MiB --out {dev} --in /run/bench.cfg | grep outgoing"""


@dataclass(frozen=True)
class Player:
    """`command(size, seconds)`, run on the generator, sends frames of `size` bytes flat out and prints its own counts,
    which `own` parses.
    """

    name: str
    about: str
    command: Callable[[int, float], str]
    own: Callable[[str], dict[str, Any]]


def players(topology: Topology) -> list[Player]:
    """The programs to compare, in the order in which a round runs them."""
    near, far = topology.end(LINK, "generator"), topology.end(LINK, "dut")
    link = {"dev": near.dev, "mac": far.mac, "own": near.mac}

    def replay(driver: str, table: str = TABLE) -> Callable[[int, float], str]:
        return lambda size, seconds: f"{ENGINE} --dev {near.dev} --table {table} --driver {driver} --duration {seconds}"

    def pktgen(options: str) -> Callable[[int, float], str]:
        return lambda size, seconds: _PKTGEN.format(size=size, seconds=seconds, options=options, **link)

    def trafgen(size: int, seconds: float) -> str:
        return _TRAFGEN.format(fill=size - 42, seconds=seconds, **link)

    return [
        Player("replay", "--driver virtio, 4096 different frames", replay("virtio"), _replay_own),
        Player("replay-one", "--driver virtio, one frame", replay("virtio", ONE), _replay_own),
        Player("replay-large", "--driver virtio, 65 536 different frames", replay("virtio", LARGE), _replay_own),
        Player("replay-xdp", "--driver xdp, the same frames", replay("xdp"), _replay_own),
        Player("pktgen", "clone_skb 100000, burst 128, one frame", pktgen(_SAME), _pktgen_own),
        Player("pktgen-random", "burst 64, random addresses", pktgen(_RANDOM), _pktgen_own),
        Player("trafgen", "--ring-size 1MiB, one frame", trafgen, lambda said: {"said": " ".join(said.split())}),
    ]


def _replay_own(said: str) -> dict[str, Any]:
    report = json.loads(said.splitlines()[-1])
    return {name: report[name] for name in ("driver", "attempted", "sent", "ring_full", "duration_s")}


def _pktgen_own(said: str) -> dict[str, Any]:
    return {"own_pps": int(said.rsplit(maxsplit=1)[-1].removesuffix("pps"))}


def make_table(path: Path, size: int, frames_wanted: int, topology: Topology) -> None:
    """Write a table of UDP frames with random addresses within the lab's two networks."""
    ends = topology.links[LINK].ends
    head = bytes.fromhex((ends["dut"].mac + ends["generator"].mac).replace(":", "") + "0800")
    chance, frames = random.Random(1), []
    for _ in range(frames_wanted):
        source, target = (0xC6120000 + chance.randrange(65_536), 0xC6130000 + chance.randrange(65_536))
        address = struct.pack("!BBHHHBBHII", 0x45, 0, size - 14, 0, 0, 64, 17, 0, source, target)
        total = sum(struct.unpack("!10H", address))
        total = (total & 0xFFFF) + (total >> 16)
        check = struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)
        frame = head + address[:10] + check + address[12:] + struct.pack("!HHHH", 9, 9, size - 34, 0)
        frames.append(frame.ljust(size, b"\0"))
    write_table(path, frames)
