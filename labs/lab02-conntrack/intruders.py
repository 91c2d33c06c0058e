# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that must not reach the web servers: to other ports than 80, some of them from port 80."""

import random

from trex_stl_lib.api import IP, TCP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

#: Bytes of the shortest frame, without its check sequence.
SHORTEST = 60
#: A client's SYN on Linux: its window and its options. What intrudes must not be told by them.
WINDOW, OPTIONS = 64240, [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (0, 0)), ("NOP", None), ("WScale", 7)]
#: Ports from which clients connect, and closed ones.
OWN, CLOSED = range(1024, 65536), range(81, 65536)


class Intruders:
    """Streams in turn. Their rate is nominal."""

    def get_streams(self, direction=0, draw=1, **kwargs):
        """SYNs from a client's port and from port 80, and a UDP packet, each to a port of a web server other than 80.

        `draw` draws which of the clients' addresses they come from, all ports, and what a client draws.
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        wanted = [
            syn(chance, one_of(OWN, chance)),
            syn(chance, 80),
            UDP(sport=80, dport=one_of(CLOSED, chance)),
        ]
        return [
            STLStream(
                name=f"intruders {number}",
                packet=STLPktBuilder(pkt=sent(f"198.18.32.{1 + int(254 * chance.random())}", transport)),
                mode=STLTXCont(pps=10),
                isg=number * 1e5 / 3,
            )
            for number, transport in enumerate(wanted)
        ]


def syn(chance, own):
    """As a client sends it, from this port; TCP's clock has a time of its own for each connection."""
    now = int(2**31 * chance.random())
    options = [(name, (now, 0) if name == "Timestamp" else value) for name, value in OPTIONS]
    return TCP(sport=own, dport=one_of(CLOSED, chance), flags="S", window=WINDOW, options=options)


def one_of(ports, chance):
    return ports[int(len(ports) * chance.random())]


def sent(source, transport):
    headers = Ether() / IP(src=source, dst="198.19.32.1", flags="DF") / transport
    return headers / bytes(max(0, SHORTEST - len(headers)))


def register():
    return Intruders()
