# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic about state: a resolver with its questions and answers, a name server with queries, and strangers.

All packets arrive on one link, even the resolver's questions. States and conntrack entries compare addresses and ports:
a question opens one and is sent back where it came from, and its answers match it.
"""

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
    STLVmTupleGen,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
RESOLVER, SERVER = "198.19.10.53", "198.19.10.54"
#: The resolver asks this many name servers, one after the other, from one port. As many hosts of their network forge
#: answers, and send them to the same port.
ASKED, SERVERS, CLIENT = 64, "198.18.53.1", "198.18.128.1"
RESOLVER_PORT = 20_053


class Resolver:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self, direction=0, answers=15, strangers=0, forged=0, queries=0, clients=250, ports=32, size=128, draw=1,
        **kwargs,
    ):  # fmt: skip
        """Each tunable is a number of packets per second, unless it says something else.

        answers    answers to each question; there are ASKED questions per second
        strangers  packets to the resolver that it never asked for
        forged     the same, but they look like answers, from addresses that were not asked
        queries    packets to the name server, from `clients` x `ports` flows
        size       bytes on the wire, FCS included
        draw       draws who of the name servers' network is asked, forges, or is a stranger, and strangers' ports
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance, first = random.Random(draw), int(IPv4Address(SERVERS))
        network = [host for _, host in sorted((chance.random(), first + host) for host in range(254))]
        asked, forgers, others = (network[part * ASKED : (part + 1) * ASKED] for part in range(3))
        question = udp(RESOLVER, SERVERS, RESOLVER_PORT, 53, size)
        answer = udp(SERVERS, RESOLVER, 53, RESOLVER_PORT, size)
        # All answers to a question follow it before the next question.
        repeated = [server for server in asked for _ in range(answers)]
        streams = [
            stream(question, ASKED, field("IP.dst", asked)),
            stream(answer, ASKED * answers, field("IP.src", repeated), isg=1e6 / ASKED / answers / 2, name="answers"),
        ]
        if strangers:
            packet = udp(SERVERS, RESOLVER, 4444, 5060, size)
            program = field("IP.src", others) + closed(chance)
            streams.append(stream(packet, strangers, program, name="strangers"))
        if forged:
            streams.append(stream(answer, forged, field("IP.src", forgers), name="forged"))
        if queries:
            streams.append(stream(udp(CLIENT, SERVER, 1025, 53, size), queries, flows(clients, ports)))
        return streams


def flows(clients, ports):
    """Source addresses and ports of the clients."""
    last = str(IPv4Address(CLIENT) + clients - 1)
    ends = {"ip_min": CLIENT, "ip_max": last, "port_min": 1025, "port_max": 1025 + ports - 1}
    return [
        STLVmTupleGen(name="flow", **ends, limit_flows=clients * ports),
        STLVmWrFlowVar(fv_name="flow.ip", pkt_offset="IP.src"),
        STLVmWrFlowVar(fv_name="flow.port", pkt_offset="UDP.sport"),
    ]


def udp(src, dst, sport, dport, size):
    # No UDP checksum (RFC 768 allows it): it would have to follow the addresses.
    headers = Ether() / IP(src=src, dst=dst) / UDP(sport=sport, dport=dport, chksum=0)
    return headers / bytes(size - FCS - len(headers))


def field(place, values):
    """An address field that takes these values in turn."""
    return [
        STLVmFlowVar(name="address", value_list=values, size=4, op="inc"),
        STLVmWrFlowVar(fv_name="address", pkt_offset=place),
    ]


def closed(chance):
    """Ports that nobody has opened: one to which and one from which each stranger sends."""
    program = []
    for port in ("dport", "sport"):
        values = [1024 + int(19_000 * chance.random()) for _ in range(ASKED)]  # below the resolver's own
        program += [
            STLVmFlowVar(name=port, value_list=values, size=2, op="inc"),
            STLVmWrFlowVar(fv_name=port, pkt_offset=f"UDP.{port}"),
        ]
    return program


def stream(packet, pps, program, isg=0.0, name=None):
    vm = STLScVmRaw([*program, STLVmFixIpv4(offset="IP")])
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps), isg=isg)


def register():
    return Resolver()
