# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that must not reach the web servers: to other ports than 80, some of them from port 80."""

import random

from trex_stl_lib.api import IP, TCP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

#: Bytes of the shortest frame, without its check sequence.
SHORTEST = 60


class Intruders:
    """Three streams in turn. Their rate is nominal."""

    def get_streams(self, direction=0, draw=1, **kwargs):
        """A SYN from any port, a SYN from port 80 and a UDP packet, each to a port of a web server other than 80.

        `draw` draws which of the clients' addresses they come from, and the ports.
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        own, other = (1025 + int(64_000 * chance.random()) for _ in range(2))
        wanted = [TCP(sport=own, dport=22, flags="S"), TCP(sport=80, dport=22, flags="S"), UDP(sport=80, dport=other)]
        return [
            STLStream(
                name=f"intruders {number}",
                packet=STLPktBuilder(pkt=padded(f"198.18.32.{1 + int(254 * chance.random())}", transport)),
                mode=STLTXCont(pps=10),
                isg=number * 1e5 / 3,
            )
            for number, transport in enumerate(wanted)
        ]


def padded(source, transport):
    headers = Ether() / IP(src=source, dst="198.19.32.1") / transport
    return headers / bytes(max(0, SHORTEST - len(headers)))


def register():
    return Intruders()
