# SPDX-License-Identifier: GPL-2.0-or-later
"""A TCP download as a router sees it: trains of full segments, one after the other."""

from trex_stl_lib.api import IP, TCP, Ether, STLPktBuilder, STLStream, STLTXCont

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Packets per second of a whole train. Nominal; only the order counts.
PPS = 10_000


class Train:
    """`segments` segments of one connection; each begins where the one before ends. One stream for each segment."""

    def get_streams(self, direction=0, size=1518, segments=16, **kwargs):
        """`size` bytes on the wire, FCS included. After the last segment the train starts again."""
        gap_us = 1e6 / PPS / segments
        return [
            STLStream(
                packet=STLPktBuilder(pkt=segment(size, number)),
                mode=STLTXCont(pps=PPS),
                isg=number * gap_us,
            )
            for number in range(segments)
        ]


def segment(size, number, src="198.18.128.1", dst="198.19.128.1"):
    """A segment without options and without PUSH: only the sequence number differs from one segment to the next."""
    headers = Ether() / IP(src=src, dst=dst, flags="DF", id=0) / TCP(sport=80, dport=1025)
    payload = size - FCS - len(headers)
    headers[TCP].flags, headers[TCP].ack, headers[TCP].window = "A", 1, 65535
    headers[TCP].seq = 1 + number * payload
    return headers / bytes(payload)


def register():
    return Train()
