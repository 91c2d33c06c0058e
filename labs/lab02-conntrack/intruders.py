# SPDX-License-Identifier: GPL-2.0-or-later
"""What the web servers are not to get: packets to other ports, some of them from port 80."""

from trex_stl_lib.api import IP, TCP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

#: As long as a frame is at least, without its check sequence.
SHORTEST = 60


class Intruders:
    """Three streams in turn; their rate is nominal."""

    def get_streams(self, direction=0, **kwargs):
        """A SYN from any port, a SYN from port 80 and a UDP packet, each to another port of a web server."""
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
