# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: what must arrive and what must not, told apart by where it goes."""

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

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4
STRIDE = 389  # odd, so that it meets every one of 1024


class Mix:
    """Continuous streams. The rates are nominal: only their proportions count."""

    def get_streams(self, direction=0, victim=0, neighbours=0, listed=0, customers=0, download=0, size=128, **kwargs):
        """Each tunable is a part of the traffic, in sixteenths; `size` is that of UDP on the wire, FCS included.

        victim      to one host, 198.19.200.66
        neighbours  to the 32 hosts from 198.19.200.96 on
        listed      to 1024 hosts, 13 apart from 198.19.128.1 on; as much goes to as many bystanders between them
        customers   to 256 hosts of 198.19.208.0/24
        download    one TCP connection, in trains of sixteen full segments
        """
        if not any((victim, neighbours, listed, customers, download)):
            customers = 16  # without tunables it is the customers' alone
        parts = [
            udp("198.19.200.66", 1, 1, 1024, victim, size),
            udp("198.19.200.96", 32, 1, 1025, neighbours, size),
            udp("198.19.128.1", 1024, 13, 1026, listed, size),
            udp("198.19.128.8", 1024, 13, 1027, listed, size),
            udp("198.19.208.0", 256, 1, 1028, customers, size),
            *(tcp(number, download) for number in range(16)),
        ]
        return [part for part in parts if part is not None]


def udp(first, count, step, sport, sixteenths, size):
    """A stream to `count` addresses, `step` apart; None if it has no part of the traffic."""
    if not sixteenths:
        return None
    headers = Ether() / IP(src="198.18.128.1", dst=first) / UDP(sport=sport, dport=5000, chksum=0)
    packet = headers / bytes(size - FCS - len(headers))
    mode = STLTXCont(pps=PPS * sixteenths)
    if count == 1:
        return STLStream(packet=STLPktBuilder(pkt=packet), mode=mode)
    start = int(IPv4Address(first))
    # In strides, for a list of rules costs more for those at its end: any stretch of the traffic has both ends.
    visited = [start + step * (turn * STRIDE % count) for turn in range(count)]
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="destination", value_list=visited, size=4, op="inc"),
            STLVmWrFlowVar(fv_name="destination", pkt_offset="IP.dst"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def tcp(number, sixteenths):
    """One segment of the train; the streams of a train follow each other."""
    if not sixteenths:
        return None
    pps = PPS * sixteenths / 16
    return STLStream(
        packet=STLPktBuilder(pkt=segment(1518, number, dst="198.19.208.1")),
        mode=STLTXCont(pps=pps),
        isg=number * 1e6 / pps / 16,
    )


def register():
    return Mix()
