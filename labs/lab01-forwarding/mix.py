# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises. Only the destination tells what must arrive from what must not.

All packets of one protocol have the same source, the same ports and the same length.
"""

import random
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
#: Where strangers are: the first and last address of each range, between what is listed, cut off or a customer's.
ELSEWHERE = [
    ("198.19.1.0", "198.19.127.255"),
    ("198.19.192.0", "198.19.199.255"),
    ("198.19.201.0", "198.19.207.255"),
    ("198.19.209.0", "198.19.255.254"),
]


class Mix:
    """Continuous streams. The rates are nominal; only their proportions count."""

    def get_streams(
        self,
        direction=0,
        victim=0,
        neighbours=0,
        listed=0,
        hosts=1024,
        customers=0,
        download=0,
        size=128,
        draw=1,
        **kwargs,
    ):
        """Each tunable is a part of the traffic, in sixteenths. `size` is that of UDP frames on the wire, FCS included.
        `draw` draws a part of those who are beside the victim, or beside listed hosts, and 64 strangers.

        victim      to one host, 198.19.200.66
        neighbours  to the 24 hosts nearest to it, 12 on each side, and to eight others of its /24
        listed      to `hosts` hosts, 13 apart, beginning with 198.19.128.1; as much goes to the hosts next to them,
                    or, instead of every fourth, to another one before the next listed host, and to strangers
        customers   to 256 hosts of 198.19.208.0/24, and to strangers, if nothing is listed
        download    one TCP connection, in trains of sixteen full segments. A quarter of what goes to listed hosts are
                    such segments, too
        """
        if not any((victim, neighbours, listed, customers, download)):
            customers = 16  # the default: customers only
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance, host = random.Random(draw), int(IPv4Address("198.19.200.66"))
        near = [number for number in range(host - 12, host + 13) if number != host]
        rest = [number for number in range(host - 65, host + 189) if number not in (host, *near)]
        others = sorted((chance.random(), number) for number in rest)
        beside = spaced("198.19.128.2", hosts, 13)
        beside = [other + int(12 * chance.random()) * (turn % 4 == 3) for turn, other in enumerate(beside)]
        rest = strangers(chance)
        cut_off = spaced("198.19.128.1", hosts, 13)
        probed = [cut_off[int(hosts * chance.random())] for _ in range(15)] + [host if victim else cut_off[0]]
        by_tcp = listed / 4 if download else 0
        parts = [
            udp([host], victim, size),
            udp([*near, *(number for _, number in others[:8])], neighbours, size),
            udp(cut_off, listed - by_tcp, size),
            udp(spread(rest, beside), listed, size),
            udp(spread([] if listed else rest, spaced("198.19.208.0", 256, 1)), customers, size),
            *(tcp(number, by_tcp, str(IPv4Address(to))) for number, to in enumerate(probed)),
            *(tcp(number, download, "198.19.208.1") for number in range(16)),
        ]
        return [part for part in parts if part is not None]


def spaced(first, count, step):
    """`count` addresses, `step` apart, visited in strides: those at the end of a list of rules cost more, and every
    part of the traffic should have both ends."""
    start = int(IPv4Address(first))
    return [start + step * (turn * STRIDE % count) for turn in range(count)]


def spread(few, many):
    """The few evenly among the many. A full ring takes packets in bursts: of a class that lies together it would take
    too many or too few."""
    placed = ((turn / len(group), address) for group in (few, many) for turn, address in enumerate(group))
    return [address for _, address in sorted(placed)]


def strangers(chance):
    """The first and the last address of each range, and drawn ones."""
    ranges = [range(int(IPv4Address(first)), int(IPv4Address(last)) + 1) for first, last in ELSEWHERE]
    found = [address for each in ranges for address in (each[0], each[-1])]
    return found + [each[int(len(each) * chance.random())] for each in ranges * 14]


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


def tcp(number, sixteenths, destination):
    """One segment of the train. The streams of a train follow each other."""
    if not sixteenths:
        return None
    pps = PPS * sixteenths / 16
    return STLStream(
        packet=STLPktBuilder(pkt=segment(1518, number, SOURCE, destination)),
        mode=STLTXCont(pps=pps),
        isg=number * 1e6 / pps / 16,
    )


def register():
    return Mix()
