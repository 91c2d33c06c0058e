# SPDX-License-Identifier: GPL-2.0-or-later
"""Queries from customers who have a /64 each, and from a few of them who use all of it."""

import random

from trex_stl_lib.api import (
    UDP,
    Ether,
    IPv6,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Packets per second for a share of 1 %. Nominal; only the proportions count.
ONE = 100
#: The networks 2001:2:0:1200::/64 to 2001:2:0:12ff::/64, of which each sixteen are a /60. Customers' hosts.
NETWORKS, NEAR, HOSTS = 256, 16, 8
#: Addresses that one of an attacker's networks sends from until it repeats itself.
ADDRESSES = 3000


class Prefixes:
    """Continuous streams; their shares are in percent."""

    def get_streams(self, direction=0, clients=20, neighbours=10, abuse=70, networks=4, size=128, draw=1, **kwargs):
        """Each packet of the abuse has another address, of one of `networks` networks. Each lies in a /60 of its own,
        and the other fifteen networks of that /60 are the neighbours'. The clients have the remaining networks.

        draw  draws which networks these are, all hosts and all ports
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        blocks = shuffled(chance, range(NETWORKS // NEAR))[:networks]
        bad = [NEAR * block + int(NEAR * chance.random()) for block in blocks]
        near = [net for net in range(NETWORKS) if net // NEAR in blocks and net not in bad]
        far = [net for net in range(NETWORKS) if net // NEAR not in blocks]
        groups = [
            ("clients", clients, homes(chance, far)),
            ("neighbours", neighbours, homes(chance, near)),
            ("abuse", abuse, [(bad[n % networks], address(chance)) for n in range(networks * ADDRESSES)]),
        ]
        return [stream(chance, name, share, hosts, size) for name, share, hosts in groups if share]


def homes(chance, nets):
    """Some hosts in each network, in an order that is drawn."""
    return shuffled(chance, [(net, address(chance)) for net in nets for _ in range(HOSTS)])


def address(chance):
    return int((1 << 32) * chance.random())


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def stream(chance, name, share, hosts, size):
    """A continuous stream from these hosts, in turn."""
    # No UDP checksum: it would have to follow the source address, and only the destination verifies it.
    headers = Ether() / IPv6(src="2001:2:0:1200::1", dst="2001:2:0:1301::53") / UDP(sport=1025, dport=53, chksum=0)
    ports = [1024 + int(64512 * chance.random()) for _ in hosts]
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="network", value_list=[net for net, _ in hosts], size=1, op="inc"),
            STLVmFlowVar(name="host", value_list=[host for _, host in hosts], size=4, op="inc"),
            STLVmFlowVar(name="port", value_list=ports, size=2, op="inc"),
            STLVmWrFlowVar(fv_name="network", pkt_offset="IPv6.src", offset_fixup=7),
            STLVmWrFlowVar(fv_name="host", pkt_offset="IPv6.src", offset_fixup=12),
            STLVmWrFlowVar(fv_name="port", pkt_offset="UDP.sport"),
        ]
    )
    packet = STLPktBuilder(pkt=headers / bytes(size - FCS - len(headers)), vm=vm)
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=share * ONE))


def register():
    return Prefixes()
