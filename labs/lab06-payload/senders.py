# SPDX-License-Identifier: GPL-2.0-or-later
"""A crowd of a thousand hosts in a few networks, and clients in many other networks."""

import random

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
#: Packets per second for a load of 1. Nominal; only the proportions count.
ONE = 10_000
#: 198.18.0.0.
BASE = 0xC6120000


class Senders:
    """Continuous streams. Loads are multiples of the same unit; hosts of a stream send in turn."""

    def get_streams(self, direction=0, crowd=0.9, clients=0.08, neighbours=0.02, place=16, draw=0, size=128, **kwargs):
        """All addresses lie in 198.18.0.0/16; `size` is in bytes on the wire, FCS included.

        crowd       1000 hosts: 250 of each network of a /22, the one of this `place` among all
        clients     200 hosts: 2 of each of a hundred networks, from 198.18.128.0/24 on; with `draw`, networks and hosts
                    are drawn by it
        neighbours  16 hosts: 4 of each network of the crowd
        """
        nets, inside = list(range(128, 228)), [[10, 11]] * 100
        if draw:
            # The generator must not depend on the version of Python: random() is the one function that never changes.
            chance = random.Random(draw)
            others = [(chance.random(), net) for net in range(4, 256) if net // 4 != place]
            nets = [net for _, net in sorted(others)][:100]
            inside = [[1 + int(125 * chance.random()), 126 + int(125 * chance.random())] for _ in nets]
        hosts = {
            "crowd": [256 * (4 * place + turn % 4) + 1 + turn // 4 for turn in range(1000)],
            "clients": [256 * nets[turn % 100] + inside[turn % 100][turn // 100] for turn in range(200)],
            "neighbours": [256 * (4 * place + turn % 4) + 251 + turn // 4 for turn in range(16)],
        }
        loads = {"crowd": crowd, "clients": clients, "neighbours": neighbours}
        return [stream(name, hosts[name], load, size) for name, load in loads.items() if load]


def stream(name, hosts, load, size):
    # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
    headers = Ether() / IP(src="198.18.64.1", dst="198.19.10.1") / UDP(sport=1025, dport=5000, chksum=0)
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=[BASE + host for host in hosts], size=4, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    packet = STLPktBuilder(pkt=headers / bytes(size - FCS - len(headers)), vm=vm)
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=load * ONE))


def register():
    return Senders()
