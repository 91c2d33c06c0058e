# SPDX-License-Identifier: GPL-2.0-or-later
"""An attack, and the traffic that should survive it: a legitimate network, and bystanders between the attackers."""

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
#: Packets per second for a load of 1. Nominal; only the proportions count.
ONE = 10_000


class Mix:
    """Continuous streams. Their packets differ only in the source address: a ruleset can tell them apart by nothing
    else, and the sink counts them by it. Loads are multiples of the same unit."""

    def get_streams(
        self,
        direction=0,
        attack=1,
        beside=0.1,
        bystanders=0,
        prefixed=0,
        excepted=0,
        attacker="198.18.64.1",
        attackers=1000,
        step=13,
        target="198.19.10.1",
        size=128,
        draw=1,
        **kwargs,
    ):
        """`attack` is the load of `attackers` addresses, `step` apart, against `target`; `beside` that of 200 hosts of
        198.18.10.0/24.

        `bystanders` is the load of the addresses next to every fifth attacker's; `draw` moves every fourth of them to
        another address before the next attacker's. `prefixed` is that of attackers in
        ten prefixes, 198.18.128.0/24 and the following, and `excepted` that of one host in each of them. `size` is in
        bytes on the wire, FCS included.
        """
        nearby = moved(draw, spaced(str(IPv4Address(attacker) + 1), attackers // 5, 5 * step), step)
        groups = [
            ("legitimate", spaced("198.18.10.1", 200, 1), beside, "198.19.10.1"),
            ("attack", spaced(attacker, attackers, step), attack, target),
            ("bystanders", nearby, bystanders, "198.19.10.1"),
            ("prefixed", spaced("198.18.128.1", 640, 4), prefixed, "198.19.10.1"),
            ("excepted", spaced("198.18.128.7", 10, 256), excepted, "198.19.10.1"),
        ]
        return [stream(name, hosts, load, size, to) for name, hosts, load, to in groups if load]


def spaced(first, count, step):
    """`count` addresses from `first` on, `step` apart."""
    return [int(IPv4Address(first)) + step * turn for turn in range(count)]


def moved(draw, hosts, step):
    """These hosts, every fourth of them at another place before the next of the attackers, who are `step` apart."""
    # The generator must not depend on the version of Python: random() is the one function that never changes.
    chance = random.Random(draw)
    return [host + int((step - 1) * chance.random()) * (turn % 4 == 3) for turn, host in enumerate(hosts)]


def stream(name, sources, load, size, target):
    """A continuous stream from these addresses to `target`."""
    # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
    headers = Ether() / IP(src="198.18.0.9", dst=target) / UDP(sport=1025, dport=5000, chksum=0)
    packet = headers / bytes(size - FCS - len(headers))
    stride = strides(len(sources))
    # Not in order: sources at the end of a list of rules cost more, and every part of the traffic should have its
    # share of both ends.
    visited = [sources[turn * stride % len(sources)] for turn in range(len(sources))]
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=visited, size=4, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=load * ONE))


def strides(sources):
    """A stride of about 0.4 `sources` that reaches each of them before it returns to the first."""
    step = max(1, round(0.39 * sources))
    while any(step % factor == 0 and sources % factor == 0 for factor in range(2, step + 1)):
        step += 1
    return step


def register():
    return Mix()
