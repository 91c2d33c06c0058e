# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that must not reach the web servers: to other ports than 80, some of them from port 80."""

from trex_stl_lib.api import IP, TCP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

#: Bytes of the shortest frame, without its check sequence.
SHORTEST = 60


class Intruders:
    """Three streams in turn. Their rate is nominal."""

    def get_streams(self, direction=0, **kwargs):
        """A SYN from any port, a SYN from port 80 and a UDP packet, each to a port of a web server other than 80."""
        wanted = [TCP(sport=1025, dport=22, flags="S"), TCP(sport=80, dport=22, flags="S"), UDP(sport=80, dport=5000)]
        return [
            STLStream(packet=STLPktBuilder(pkt=padded(transport)), mode=STLTXCont(pps=10), isg=number * 1e5 / 3)
            for number, transport in enumerate(wanted)
        ]


def padded(transport):
    headers = Ether() / IP(src="198.18.68.1", dst="198.19.32.1") / transport
    return headers / bytes(max(0, SHORTEST - len(headers)))


def register():
    return Intruders()
