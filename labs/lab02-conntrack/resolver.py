# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: a resolver with its questions and answers, a name server with queries, and strangers.

All packets arrive on one link, even the resolver's questions. Connection tracking compares addresses and ports, not
links: a question opens an entry and is sent back where it came from, and its answers match the entry.
"""

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
    STLVmTupleGen,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
RESOLVER, SERVER, DESK = "198.19.10.53", "198.19.10.54", "198.19.10.60"
#: The resolver asks this many name servers, one after the other, from one port. As many hosts of their network forge
#: answers, and send them to the same port. Blocked hosts have addresses APART from each other.
ASKED, SERVERS, APART = 64, "198.18.53.1", 3
RESOLVER_PORT = 20_053
ELSEWHERE, OTHERS = "10.0.0.1", 168
#: Answers to each question that the desk asks a web server.
CALLS = 3
#: The name server answers only these clients and ports, so that all of its traffic fits into one table of frames.
REPLIED, REPLIED_PORTS = 100, 32


class Resolver:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self,
        direction=0,
        answers=15,
        strangers=128,
        forged=0,
        calls=0,
        queries=0,
        clients=250,
        ports=32,
        replies=0,
        probes=0,
        blocked=0,
        size=128,
        draw=1,
        **kwargs,
    ):
        """Each tunable is a number of packets per second, unless it says something else.

        answers    answers to each question; there are ASKED questions per second
        strangers  packets to the resolver that it never asked for
        forged     the same, but they look like answers, from addresses that were not asked
        calls      questions of another host to web servers; each has CALLS answers
        queries    packets to the name server, from `clients` x `ports` flows
        replies    packets of the name server to REPLIED x REPLIED_PORTS of those flows
        probes     packets from those clients to other ports of the name server
        blocked    packets to the name server from blacklisted hosts: half from a network, half from hosts: those
                   between the clients, and as many that are drawn from OTHERS elsewhere
        size       bytes on the wire, FCS included
        draw       draws who of the name servers' network is asked, forges, or is a stranger; those clients; and the
                   ports of strangers and probes
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        network = shuffled(chance, spaced(SERVERS, 254, 1))
        servers, forgers, others = (network[part * ASKED : (part + 1) * ASKED] for part in range(3))
        streams = []
        if answers:
            question = udp(RESOLVER, SERVERS, RESOLVER_PORT, 53, size)
            answer = udp(SERVERS, RESOLVER, 53, RESOLVER_PORT, size)
            streams += conversations(question, answer, servers, answers, "answers")
        if strangers:
            anywhere = field("IP.src", others) + closed(chance)
            streams.append(stream(udp(SERVERS, RESOLVER, 4444, 5060, size), strangers, anywhere, name="strangers 1"))
        if forged:
            lie = udp(SERVERS, RESOLVER, 53, RESOLVER_PORT, size)
            streams.append(stream(lie, forged, field("IP.src", forgers), name="forged"))
        if calls:
            call = udp(DESK, "198.18.80.1", 40_443, 443, size)
            back = udp("198.18.80.1", DESK, 443, 40_443, size)
            streams += conversations(call, back, spaced("198.18.80.1", calls, 1), CALLS)
        if blocked:
            streams.append(stream(udp("198.18.100.1", SERVER, 1025, 53, size), blocked / 2, hosts("198.18.100.1")))
            beside = spaced("198.18.160.2", clients // 2, APART)
            listed = beside + shuffled(chance, spaced(ELSEWHERE, OTHERS, 2))[: len(beside)]
            packet = udp("198.18.160.2", SERVER, 1025, 53, size)
            streams.append(stream(packet, blocked / 2, field("IP.src", listed), name="blocked hosts"))
        if queries and blocked:
            around = {*spaced("198.18.160.1", APART * clients, 1), *spaced(ELSEWHERE, 2 * OTHERS, 1)}
            around -= {*beside, *spaced(ELSEWHERE, OTHERS, 2)}
            asking = field("IP.src", shuffled(chance, sorted(around))[:clients])
            streams.append(stream(udp("198.18.160.1", SERVER, 1025, 53, size), queries, asking, name="queries"))
        elif queries:
            query = udp("198.18.128.1", SERVER, 1025, 53, size)
            streams.append(stream(query, queries, flows(clients, ports, "IP.src", "UDP.sport"), name="queries"))
        if replies:
            reply = udp(SERVER, "198.18.128.1", 53, 1025, size)
            streams.append(stream(reply, replies, flows(REPLIED, REPLIED_PORTS, "IP.dst", "UDP.dport")))
        if probes:
            anywhere = hosts("198.18.128.1") + closed(chance)
            packet = udp("198.18.128.1", SERVER, 1025, 5060, size)
            streams.append(stream(packet, probes, anywhere, name="strangers 2"))
        return streams


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def conversations(question, answer, asked, answers, name=None):
    """All answers to a question follow it before the next question. All questions are asked within a second."""
    gap_us = 1e6 / len(asked) / answers
    repeated = [server for server in asked for _ in range(answers)]
    return [
        stream(question, len(asked), field("IP.dst", asked)),
        stream(answer, len(asked) * answers, field("IP.src", repeated), isg=gap_us / 2, name=name),
    ]


def flows(clients, ports, place, port):
    """Addresses and ports of the clients, in packets that they send or receive."""
    return [
        STLVmTupleGen(
            name="flow",
            ip_min="198.18.128.1",
            ip_max=text(address("198.18.128.1") + clients - 1),
            port_min=1025,
            port_max=1025 + ports - 1,
            limit_flows=clients * ports,
        ),
        STLVmWrFlowVar(fv_name="flow.ip", pkt_offset=place),
        STLVmWrFlowVar(fv_name="flow.port", pkt_offset=port),
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
    """Ports that nobody has opened: one to which and one from which each of ASKED hosts sends."""
    program = []
    for port in ("dport", "sport"):
        values = [1024 + int(19_000 * chance.random()) for _ in range(ASKED)]  # below the resolver's own
        program += [
            STLVmFlowVar(name=port, value_list=values, size=2, op="inc"),
            STLVmWrFlowVar(fv_name=port, pkt_offset=f"UDP.{port}"),
        ]
    return program


def hosts(first):
    """ASKED source addresses."""
    return field("IP.src", spaced(first, ASKED, 1))


def spaced(first, count, step):
    return [address(first) + step * number for number in range(count)]


def stream(packet, pps, program, isg=0.0, name=None):
    vm = STLScVmRaw([*program, STLVmFixIpv4(offset="IP")])
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps), isg=isg)


def address(dotted):
    a, b, c, d = (int(part) for part in dotted.split("."))
    return a << 24 | b << 16 | c << 8 | d


def text(number):
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def register():
    return Resolver()
