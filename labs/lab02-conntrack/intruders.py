# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that must not reach the web servers, to other ports than 80, and SYNs to hosts that are closed or not."""

import random
from ipaddress import IPv4Address

from trex_stl_lib.api import IP, TCP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

#: Bytes of the shortest frame, without its check sequence.
SHORTEST = 60
#: A client's SYN on Linux: its window and its options. What intrudes must not be told by them.
WINDOW, OPTIONS = 64240, [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (0, 0)), ("NOP", None), ("WScale", 7)]
#: Ports from which clients connect, and closed ones on both sides of the open one.
OWN, BELOW, ABOVE = range(1024, 65536), range(1, 80), range(81, 65536)
SERVERS = range(int(IPv4Address("198.19.32.1")), int(IPv4Address("198.19.32.15")))
TEN = [int(IPv4Address("198.19.48.5")) + 13 * place for place in range(10)]


class Intruders:
    """Streams in turn. Their rate is nominal."""

    def get_streams(self, direction=0, draw=1, **kwargs):
        """SYNs from a client's port and from port 80 to other ports of the web servers, and UDP packets, one of them to
        port 80. Then SYNs to port 80 of ten closed hosts, and of a host between each and the next.

        `draw` draws which of the clients' addresses they come from, which server they go to, all ports, the hosts
        between, and what a client draws.
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        intruders = [
            syn(chance, one_of(OWN, chance), one_of(BELOW, chance)),
            syn(chance, one_of(OWN, chance), one_of(ABOVE, chance)),
            syn(chance, 80, one_of(ABOVE, chance)),
            UDP(sport=80, dport=one_of(ABOVE, chance)),
            UDP(sport=one_of(OWN, chance), dport=80),
        ]
        wanted = [(f"intruders {n}", one_of(SERVERS, chance), packet) for n, packet in enumerate(intruders)]
        for number, host in enumerate(TEN):
            other = host + 1 + int(12 * chance.random())
            wanted.append((f"closed {number}", host, syn(chance, one_of(OWN, chance), 80)))
            wanted.append((f"others {number}", other, syn(chance, one_of(OWN, chance), 80)))
        return [
            STLStream(
                name=name,
                packet=STLPktBuilder(pkt=sent(f"198.18.32.{1 + int(254 * chance.random())}", host, transport)),
                mode=STLTXCont(pps=10),
                isg=number * 1e5 / len(wanted),
            )
            for number, (name, host, transport) in enumerate(wanted)
        ]


def syn(chance, own, port):
    """As a client sends it, from this port; TCP's clock has a time of its own for each connection."""
    now = int(2**31 * chance.random())
    options = [(name, (now, 0) if name == "Timestamp" else value) for name, value in OPTIONS]
    return TCP(sport=own, dport=port, flags="S", window=WINDOW, options=options)


def one_of(ports, chance):
    return ports[int(len(ports) * chance.random())]


def sent(source, host, transport):
    headers = Ether() / IP(src=source, dst=str(IPv4Address(host)), flags="DF") / transport
    return headers / bytes(max(0, SHORTEST - len(headers)))


def register():
    return Intruders()
