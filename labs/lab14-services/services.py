# SPDX-License-Identifier: GPL-2.0-or-later
"""Datagrams of clients to services, one flow after another, and to other ports of the same addresses."""

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

#: Packets per second for a share of 1 %. Nominal; only the proportions count.
ONE = 100
#: Where clients live, and how many of them send.
HOMES, CLIENTS = int(IPv4Address("198.18.64.0")), 4000
#: Sources until they repeat themselves, a prime number: each port then meets another client.
SOURCES = 3989
#: The services' port, and bytes of payload: the shortest frame has 64, of which 46 are headers and check sequence.
PORT, SHORTEST = 53, 18


class Services:
    """Continuous streams; their shares are in percent."""

    def get_streams(
        self, direction=0, first="198.19.128.1", services=10, left_out=0, turns=59999, others=0, joined=0, draw=1,
        **kwargs,
    ):  # fmt: skip
        """Datagrams to services among `services` addresses from `first` on, from `turns` ports in all.

        left_out  one in this number of addresses is no service (0: none)
        others    the share of datagrams to other ports of the services
        joined    the share of datagrams to the service whose endpoint joins: the last one, which has no others then
        draw      draws clients, ports, and the order of services
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        homes = shuffled(chance, [HOMES + number for number in range(1, 1 << 14) if 0 < number % 256 < 255])
        start = int(IPv4Address(first))
        every = [start + n for n in range(services) if not left_out or n % left_out != left_out - 1]
        known, last = (every[:-1], every[-1:]) if joined else (every, [])
        groups = [
            ("clients", 100 - others - joined, homes[:CLIENTS], known, [PORT]),
            ("others", others, homes[CLIENTS : CLIENTS + 1000], known, [443, 853, 5353, 8053]),
            ("joining", joined, homes[CLIENTS + 1000 : CLIENTS + 2000], last, [PORT]),
        ]
        return [
            stream(chance, name, share, hosts, targets, ports, turns * share // 100)
            for name, share, hosts, targets, ports in groups
            if share
        ]


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def stream(chance, name, share, hosts, targets, ports, turns):
    """A continuous stream. Each packet is from the next client and port, to the next service in drawn order."""
    fields = {
        "source": (4, [hosts[int(len(hosts) * chance.random())] for _ in range(min(turns, SOURCES))], "IP.src"),
        "sport": (2, [1024 + int(64512 * chance.random()) for _ in range(turns)], "UDP.sport"),
        "target": (4, shuffled(chance, targets), "IP.dst"),
        "dport": (2, ports, "UDP.dport"),
    }
    program = []
    for field, (size, values, place) in fields.items():
        program += [
            STLVmFlowVar(name=field, value_list=values, size=size, op="inc"),
            STLVmWrFlowVar(fv_name=field, pkt_offset=place),
        ]
    # No UDP checksum (RFC 768 allows it): it would have to follow the addresses.
    headers = Ether() / IP(src="198.18.64.1", dst="198.19.128.1", flags="DF") / UDP(sport=1024, dport=PORT, chksum=0)
    packet = STLPktBuilder(pkt=headers / bytes(SHORTEST), vm=STLScVmRaw([*program, STLVmFixIpv4(offset="IP")]))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=share * ONE))


def register():
    return Services()
