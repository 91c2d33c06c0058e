# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic about state: a resolver with its questions and answers, a name server with queries, and strangers.

All packets arrive on one link, even the resolver's questions. States and conntrack entries compare addresses and ports:
a question opens one and is sent back where it came from, and its answers match it.
"""

import random
from ipaddress import IPv4Address, IPv4Network

from scapy.layers.inet import ICMP
from trex_stl_lib.api import (
    IP,
    TCP,
    UDP,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixChecksumHw,
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
#: The network of both servers, and ports that are closed, in addition to drawn ones.
NEAR, EDGES = IPv4Network("198.19.10.0/24"), (1, 22, 52, 53, 54, 1023, 1024, RESOLVER_PORT, 65_535)


class Resolver:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self, direction=0, answers=15, strangers=0, forged=0, queries=0, clients=250, ports=32, size=128, draw=1,
        **kwargs,
    ):  # fmt: skip
        """Each tunable is a number of packets per second, unless it says something else.

        answers    answers to each question; there are ASKED questions per second
        strangers  packets that nobody has asked for: see `unasked`
        forged     the same, but they look like answers, from addresses that were not asked
        queries    packets to the name server, from `clients` x `ports` flows
        size       bytes on the wire, FCS included
        draw       draws who of the name servers' network is asked, forges, or is a stranger, and where strangers send
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance, first = random.Random(draw), int(IPv4Address(SERVERS))
        network = [host for _, host in sorted((chance.random(), first + host) for host in range(254))]
        asked, forgers, others = network[:ASKED], network[ASKED : 2 * ASKED], network[2 * ASKED :]
        question = udp(RESOLVER, SERVERS, RESOLVER_PORT, 53, size)
        answer = udp(SERVERS, RESOLVER, 53, RESOLVER_PORT, size)
        # All answers to a question follow it before the next question.
        repeated = [server for server in asked for _ in range(answers)]
        streams = [
            stream(question, ASKED, field("IP.dst", asked)),
            stream(answer, ASKED * answers, field("IP.src", repeated), isg=1e6 / ASKED / answers / 2, name="answers"),
        ]
        if strangers:
            streams += unasked(chance, others, strangers, size)
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


def field(place, values, size=4):
    """A field that takes these values in turn, an address unless it has another size."""
    return [
        STLVmFlowVar(name=place, value_list=values, size=size, op="inc"),
        STLVmWrFlowVar(fv_name=place, pkt_offset=place),
    ]


def unasked(chance, hosts, rate, size):
    """UDP to any port of the resolver, to all but one of the name server, and to port 53 of other hosts, never from
    port 53; SYNs to any port of both servers; and ICMP echoes.
    """
    resolver, server = int(IPv4Address(RESOLVER)), int(IPv4Address(SERVER))
    near = drawn(chance, [host for host in range(int(NEAR[1]), int(NEAR[-1])) if host != server])
    syn = Ether() / IP(src=SERVERS, dst=RESOLVER) / TCP(sport=4444, dport=5060, flags="S")
    echo = Ether() / IP(src=SERVERS, dst=RESOLVER) / ICMP()
    datagram = udp(SERVERS, RESOLVER, 4444, 5060, size)
    kinds = (
        (datagram, "UDP", [resolver], closed(chance)),
        (datagram, "UDP", [server], closed(chance, but=53)),
        (datagram, "UDP", near, [53]),
        (syn, "TCP", [resolver, resolver, server, server], closed(chance)),
        (echo, None, [resolver, server], []),
    )
    each, streams = len(hosts) // len(kinds), []
    for number, (packet, layer, servers, to) in enumerate(kinds):
        values = {"IP.src": hosts[number * each : (number + 1) * each], "IP.dst": servers}
        values |= {f"{layer}.dport": to, f"{layer}.sport": closed(chance, but=53)} if layer else {}
        # A list begins again after `each` packets, as the others do.
        cycles = {place: [listed[turn % len(listed)] for turn in range(each)] for place, listed in values.items()}
        program = [
            one for place, listed in cycles.items() for one in field(place, listed, 4 if place.startswith("IP") else 2)
        ]
        fix = [STLVmFixChecksumHw(l3_offset="IP", l4_offset="TCP", l4_type=13)] if layer == "TCP" else []
        streams.append(stream(packet, rate / len(kinds), [*program, *fix], name=f"strangers {number}"))
    return streams


def drawn(chance, values):
    """The values in a drawn order."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def closed(chance, but=0):
    """Ports that nobody has opened, in a drawn order."""
    free = [1 + int(65_535 * chance.random()) for _ in range(16)]
    return drawn(chance, [port for port in (*EDGES, *free) if port != but])


def stream(packet, pps, program, isg=0.0, name=None):
    vm = STLScVmRaw([*program, STLVmFixIpv4(offset="IP")])
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps), isg=isg)


def register():
    return Resolver()
