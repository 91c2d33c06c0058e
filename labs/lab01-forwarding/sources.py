# SPDX-License-Identifier: GPL-2.0-or-later
"""A flood from listed hosts, hosts between them, and hosts to whom the way back leads through the other link."""

import random
from ipaddress import IPv4Address

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
SIZE = 128  # bytes on the wire, FCS included
PPS = 10_000  # of a sixteenth. Nominal; only the proportions count.
STRIDE = 389  # prime, so that it reaches every host of a list
#: Sixteen packets are three of the flood, six of its neighbours and seven of the customers with two ways.
SHARES = {"flooding": 3, "regular": 6, "detour": 7}
#: Sixteens before all streams begin again: each host of the shortest stream comes three times.
ROUNDS = 64
#: Each packet of a round goes to a host of its own. Otherwise some of the flood passes a loose filter: one packet of a
#: batch may take the route of another that goes to the same host, without a look at its source (ip_route_use_hint in
#: net/ipv4/route.c; that this is why is untested).
DESTINATIONS = 16 * ROUNDS


class Sources:
    """Continuous streams. Only the source address tells them apart."""

    def get_streams(self, direction=0, first="198.18.224.1", count=64, step=13, draw=1, **kwargs):
        """Three packets of sixteen come from `count` hosts that begin with `first` and are `step` apart.

        `draw` draws every fourth of the hosts between them, all whose route leads elsewhere, and the destinations.
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        flooding = [int(IPv4Address(first)) + step * place for place in range(count)]
        near = [host + 1 + below(chance, step - 1) * (place % 4 == 3) for place, host in enumerate(flooding)]
        far = int(IPv4Address("198.19.240.0"))
        detour = [far + 16 * place + below(chance, 16) for place in range(count)]
        hosts = {"flooding": flooding, "regular": near, "detour": detour}
        to = [host for _, host in sorted((chance.random(), host) for host in range(DESTINATIONS))]
        streams = []
        for name, share in SHARES.items():
            mine, to = to[: share * ROUNDS], to[share * ROUNDS :]
            streams.append(stream(name, hosts[name], [int(IPv4Address("198.19.100.0")) + host for host in mine]))
        return streams


def below(chance, number):
    return int(number * chance.random())


def stream(name, hosts, reached):
    """From these hosts in turn, to these destinations."""
    headers = Ether() / IP(src="198.18.224.1", dst="198.19.100.1") / UDP(sport=1025, dport=5000, chksum=0)
    packet = headers / bytes(SIZE - FCS - len(headers))
    visited = [hosts[turn * STRIDE % len(hosts)] for turn in range(len(reached))]
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=visited, size=4, op="inc"),
            STLVmFlowVar(name="destination", value_list=reached, size=4, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmWrFlowVar(fv_name="destination", pkt_offset="IP.dst"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=PPS * SHARES[name]))


def register():
    return Sources()
