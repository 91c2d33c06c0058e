# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: an attack, bystanders between its addresses, and a legitimate network."""

import math
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
#: Packets per second of all streams together. Nominal; only the proportions count.
TOTAL_PPS = 10_000
#: Hosts drawn from the list elsewhere.
PROBES = 1000
#: The list elsewhere: of each two neighbours from here on, the one that a seed draws (`scattered` in templates).
ELSEWHERE, SCATTERED = "10.64.0.0", 2
STRIDE = 389  # prime, so that it reaches every source of a thousand and of four


class Mix:
    """Continuous streams to the same hosts and to any port. A ruleset can tell them apart by nothing but the source
    address."""

    def get_streams(
        self,
        direction=0,
        attacker="198.18.64.1",
        attackers=1000,
        step=13,
        bystander="",
        bystanders=200,
        bystander_step=65,
        beyond=0,
        listed="198.18.128.1",
        listed_hosts=0,
        listed_step=7,
        unlisted_hosts=0,
        unlisted_step=133,
        elsewhere=0,
        destinations=50,
        attack_percent=90,
        size=128,
        draw=1,
        **kwargs,
    ):
        """An attack, bystanders, and 250 hosts of 198.18.10.0/24. Each group has a first address, a number and a step.

        The first bystander is the attacker's neighbour, if no other is named. `draw` draws every fourth bystander:
        another address between two attackers'.
        `beyond` of the bystanders have addresses that a longer list has: behind the last attacker's, and elsewhere.
        `attack_percent` of the packets belong to the attack; the other groups share the rest evenly. If there are
        `listed_hosts`, a third of the attack comes from them, and a third from a few drawn from a list of `elsewhere`
        hosts of 10.0.0.0/8. Half of the bystanders' packets come from the `unlisted_hosts` between the listed ones, and
        from some between and behind those elsewhere. `size` is in bytes on the wire, FCS included.
        Each packet goes to another of the `destinations` than the one before. A packet to the same host would use its
        route, and a drop after routing would look cheap.
        """
        attack_pps = TOTAL_PPS * attack_percent / 100
        rest_pps = (TOTAL_PPS - attack_pps) / 2
        listed_pps = attack_pps / 3 if listed_hosts else 0
        unlisted_pps = rest_pps / 2 if unlisted_hosts else 0
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        nearby = spaced(bystander or str(IPv4Address(attacker) + 1), bystanders, bystander_step)
        unlisted = spaced(str(IPv4Address(listed) + 1), unlisted_hosts, unlisted_step)
        longer = spaced(attacker, attackers + 200, step)[attackers:]
        found, spared = [], []
        if elsewhere:
            every = scattered(elsewhere + 100 + PROBES)
            found = drawn(chance, every[:elsewhere], PROBES)
            # The other one of two, and some behind the end of the list (which is not as long in each exercise).
            spared = [host ^ 1 for host in found[::10]] + drawn(chance, every[-PROBES:], PROBES // 10)
        over = drawn(chance, longer, beyond // 2) + drawn(chance, scattered(PROBES), beyond - beyond // 2)
        groups = [
            ("attack", spaced(attacker, attackers, step), attack_pps - 2 * listed_pps),
            ("listed", spaced(listed, listed_hosts, listed_step), listed_pps),
            ("elsewhere", found, listed_pps),
            ("bystanders", moved(chance, nearby, step) + over, rest_pps - unlisted_pps),
            ("unlisted", moved(chance, unlisted, listed_step) + spared, unlisted_pps),
            ("legitimate", spaced("198.18.10.1", 250, 1), rest_pps),
        ]
        return [stream(chance, *group, destinations, size) for group in groups if group[-1]]


def spaced(first, count, step):
    """`count` addresses from `first` on, `step` apart."""
    return [int(IPv4Address(first)) + step * turn for turn in range(count)]


def moved(chance, hosts, step):
    """These hosts, every fourth of them at another place before the next of the attackers, who are `step` apart."""
    return [host + int((step - 1) * chance.random()) * (turn % 4 == 3) for turn, host in enumerate(hosts)]


def scattered(count):
    """The list elsewhere. No range, mask or remainder has the same addresses."""
    chance, start = random.Random(SCATTERED), int(IPv4Address(ELSEWHERE))
    return [start + 2 * place + (chance.random() < 0.5) for place in range(count)]


def drawn(chance, hosts, count):
    return [hosts[int(len(hosts) * chance.random())] for _ in range(count)]


def stream(chance, name, sources, pps, destinations, size):
    """A continuous stream from these addresses to so many destinations."""
    # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
    headers = Ether() / IP(src="198.18.0.9", dst="198.19.10.1") / UDP(sport=1025, dport=5000, chksum=0)
    packet = headers / bytes(size - FCS - len(headers))
    # In strides of a prime number of sources: those at the end of a list of rules cost more, and every part of the
    # traffic should have its share of both ends.
    turns = range(len(sources) * math.ceil(destinations / len(sources)))
    visited = [sources[turn * STRIDE % len(sources)] for turn in turns]
    reached = [int(IPv4Address("198.19.10.1")) + turn % destinations for turn in turns]
    ports = [1 + int(65535 * chance.random()) for _ in turns]
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=visited, size=4, op="inc"),
            STLVmFlowVar(name="destination", value_list=reached, size=4, op="inc"),
            STLVmFlowVar(name="port", value_list=ports, size=2, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmWrFlowVar(fv_name="destination", pkt_offset="IP.dst"),
            STLVmWrFlowVar(fv_name="port", pkt_offset="UDP.dport"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps))


def register():
    return Mix()
