# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises. Only the destination tells what must arrive from what must not.

All packets of one protocol have the same source, the same ports and the same length.
"""

from ipaddress import IPv4Address

from train import PPS, segment
from trex_stl_lib.api import (
    IP,
    UDP,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Source of all these packets. The cases have other sources.
SOURCE = "198.18.10.1"
STRIDE = 389  # odd, so that it reaches each of 1024


class Mix:
    """Continuous streams. The rates are nominal; only their proportions count."""

    def get_streams(self, direction=0, victim=0, neighbours=0, listed=0, customers=0, download=0, size=128, **kwargs):
        """Each tunable is a part of the traffic, in sixteenths. `size` is that of UDP frames on the wire, FCS included.

        victim      to one host, 198.19.200.66
        neighbours  to the 32 hosts nearest to it, 16 on each side
        listed      to 1024 hosts, 13 apart, beginning with 198.19.128.1; as much goes to the 1024 hosts next to them
        customers   to 256 hosts of 198.19.208.0/24
        download    one TCP connection, in trains of sixteen full segments
        """
        if not any((victim, neighbours, listed, customers, download)):
            customers = 16  # the default: customers only
        host = int(IPv4Address("198.19.200.66"))
        parts = [
            udp([host], victim, size),
            udp([*range(host - 16, host), *range(host + 1, host + 17)], neighbours, size),
            udp(spaced("198.19.128.1", 1024, 13), listed, size),
            udp(spaced("198.19.128.2", 1024, 13), listed, size),
            udp(spaced("198.19.208.0", 256, 1), customers, size),
            *(tcp(number, download) for number in range(16)),
        ]
        return [part for part in parts if part is not None]


def spaced(first, count, step):
    """`count` addresses, `step` apart, visited in strides: those at the end of a list of rules cost more, and every
    part of the traffic should have both ends."""
    start = int(IPv4Address(first))
    return [start + step * (turn * STRIDE % count) for turn in range(count)]


def udp(destinations, sixteenths, size):
    """A stream to these addresses in turn; None for no sixteenths."""
    if not sixteenths:
        return None
    headers = Ether() / IP(src=SOURCE, dst=str(IPv4Address(destinations[0])))
    headers /= UDP(sport=1025, dport=5000, chksum=0)
    packet = headers / bytes(size - FCS - len(headers))
    mode = STLTXCont(pps=PPS * sixteenths)
    if len(destinations) == 1:
        return STLStream(packet=STLPktBuilder(pkt=packet), mode=mode)
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="destination", value_list=destinations, size=4, op="inc"),
            STLVmWrFlowVar(fv_name="destination", pkt_offset="IP.dst"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def tcp(number, sixteenths):
    """One segment of the train. The streams of a train follow each other."""
    if not sixteenths:
        return None
    pps = PPS * sixteenths / 16
    return STLStream(
        packet=STLPktBuilder(pkt=segment(1518, number, SOURCE, "198.19.208.1")),
        mode=STLTXCont(pps=pps),
        isg=number * 1e6 / pps / 16,
    )


def register():
    return Mix()
