# SPDX-License-Identifier: GPL-2.0-or-later
"""Flows of a few customers whose source the firewall has to translate: many to one server, and some to others."""

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

#: The customers' network, of which CUSTOMERS hosts send.
NETWORK, CUSTOMERS = int(IPv4Address("198.18.112.0")), 12
#: The server that most of them use, and the network of others.
GATEWAY, AROUND, SERVERS, PORT = int(IPv4Address("198.19.32.53")), int(IPv4Address("198.19.48.0")), 48, 4500
#: Flows to the others: each of the servers has equally many.
ELSEWHERE = 2400
#: Ports of clients, and bytes of payload: the shortest frame has 64 bytes, of which 46 are headers and check sequence.
OWN, SHORTEST = range(1024, 65536), 18


class Ports:
    """Two continuous streams. Each flow has one packet before any has another."""

    def get_streams(self, direction=0, calls=3048, draw=1, **kwargs):
        """`calls` flows to one server, a multiple of CUSTOMERS.

        `draw` draws who sends, from which ports, and the other servers.
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        customers = [NETWORK + host for host in shuffled(chance, range(1, 255))[:CUSTOMERS]]
        servers = [AROUND + host for host in shuffled(chance, range(1, 255))[:SERVERS]]
        ports = shuffled(chance, OWN)
        return [
            stream("calls", calls, {"client": customers, "port": ports[:calls], "server": [GATEWAY]}),
            stream("elsewhere", ELSEWHERE, {"client": customers, "port": ports[-ELSEWHERE:], "server": servers}),
        ]


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def stream(name, flows, ends):
    """`flows` packets in a second, each with the next client, port and server."""
    # No UDP checksum (RFC 768 allows it): it would have to follow the addresses.
    headers = Ether() / IP(src="198.18.112.1", dst="198.19.32.53", flags="DF") / UDP(sport=1024, dport=PORT, chksum=0)
    places = {"client": "IP.src", "port": "UDP.sport", "server": "IP.dst"}
    program = [
        STLVmFlowVar(name=end, value_list=values, size=2 if end == "port" else 4, op="inc", split_to_cores=False)
        for end, values in ends.items()
    ]
    program += [STLVmWrFlowVar(fv_name=end, pkt_offset=place) for end, place in places.items()]
    packet = STLPktBuilder(pkt=headers / bytes(SHORTEST), vm=STLScVmRaw([*program, STLVmFixIpv4(offset="IP")]))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=flows))


def register():
    return Ports()
