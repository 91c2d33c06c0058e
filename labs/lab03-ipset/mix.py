# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: an attack, bystanders between its addresses, and a legitimate network."""

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

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4
#: Packets per second of the three streams together. Nominal: only their proportion counts.
TOTAL_PPS = 10_000
STRIDE = 389  # prime, so that it meets every source of a thousand


class Mix:
    """Three continuous streams. Only the source port tells an attacker's packet from a bystander's,
    and that for the sink alone: a blacklist knows addresses."""

    def get_streams(
        self,
        direction=0,
        attacker="198.18.64.1",
        attackers=1000,
        bystander="198.18.64.8",
        bystanders=1000,
        step=13,
        attack_percent=90,
        size=128,
        **kwargs,
    ):
        """`attackers` and `bystanders` addresses, each `step` apart, and 250 hosts of 198.18.10.0/24.

        `attack_percent` of the packets come from the attackers; the others share the rest evenly.
        `size` is in bytes on the wire, FCS included.
        """
        attack_pps = TOTAL_PPS * attack_percent / 100
        rest_pps = (TOTAL_PPS - attack_pps) / 2
        return [
            stream(attacker, attackers, step, 1025, attack_pps, size),
            stream(bystander, bystanders, step, 1026, rest_pps, size),
            stream("198.18.10.1", 250, 1, 1027, rest_pps, size),
        ]


def stream(source, sources, step, sport, pps, size):
    """A continuous stream from `sources` addresses, `step` apart, to one destination."""
    # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
    headers = Ether() / IP(src=source, dst="198.19.10.1") / UDP(sport=sport, dport=5000, chksum=0)
    packet = headers / bytes(size - FCS - len(headers))
    if sources == 1:
        return STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=pps))
    first = int(IPv4Address(source))
    # In strides of a prime number of sources: a list of rules costs more for those at its end, and any stretch of
    # the traffic that the DUT happens to take in should have its share of both ends.
    visited = [first + step * (turn * STRIDE % sources) for turn in range(sources)]
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=visited, size=4, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps))


def register():
    return Mix()
