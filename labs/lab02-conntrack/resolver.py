# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: a resolver that asks and is answered, a name server that is asked, and strangers.

Everything comes in by one link, what the resolver asks as well. Connection tracking knows addresses and ports, not
links: the question opens an entry and goes back where it came from, and the answers find it.
"""

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

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4
RESOLVER, SERVER = "198.19.10.53", "198.19.10.54"
#: As many name servers elsewhere does the resolver ask, one after the other, from one port.
ASKED = 64
RESOLVER_PORT = 20_053


class Resolver:
    """Continuous streams; their rates (packets per second) are nominal, only the proportion counts.

    Each question is followed by all of its answers before the next is asked.
    """

    def get_streams(
        self,
        direction=0,
        answers=15,
        strangers=128,
        forged=0,
        queries=0,
        clients=250,
        ports=32,
        blocked=0,
        size=128,
        **kwargs,
    ):
        """answers    packets that answer one question; ASKED questions are asked in a second
        strangers  packets to the resolver that it never asked for
        forged     such packets from the port of a name server, 53
        queries    packets to the name server, from `clients` x `ports` flows
        blocked    packets to the name server from a network that is on a blacklist
        size       bytes on the wire, FCS included
        """
        streams = []
        if answers:
            gap_us = 1e6 / ASKED / answers
            servers = [address("198.18.53.1") + number for number in range(ASKED)]
            question = udp(RESOLVER, "198.18.53.1", RESOLVER_PORT, 53, size)
            answer = udp("198.18.53.1", RESOLVER, 53, RESOLVER_PORT, size)
            repeated = [server for server in servers for _ in range(answers)]
            streams.append(stream(question, ASKED, field("IP.dst", servers)))
            streams.append(stream(answer, ASKED * answers, field("IP.src", repeated), isg=gap_us / 2))
        if strangers:
            streams.append(stream(udp("198.18.67.1", RESOLVER, 4444, 5060, size), strangers, hosts("198.18.67.1")))
        if forged:
            streams.append(stream(udp("198.18.66.1", RESOLVER, 53, 5060, size), forged, hosts("198.18.66.1")))
        if blocked:
            streams.append(stream(udp("198.18.100.1", SERVER, 1025, 53, size), blocked, hosts("198.18.100.1")))
        if queries:
            flows = STLVmTupleGen(
                name="flow",
                ip_min="198.18.128.1",
                ip_max=text(address("198.18.128.1") + clients - 1),
                port_min=1025,
                port_max=1025 + ports - 1,
                limit_flows=clients * ports,
            )
            writes = [
                STLVmWrFlowVar(fv_name="flow.ip", pkt_offset="IP.src"),
                STLVmWrFlowVar(fv_name="flow.port", pkt_offset="UDP.sport"),
            ]
            streams.append(stream(udp("198.18.128.1", SERVER, 1025, 53, size), queries, [flows, *writes]))
        return streams


def udp(src, dst, sport, dport, size):
    # No UDP checksum (RFC 768 allows it): it would have to follow the addresses.
    headers = Ether() / IP(src=src, dst=dst) / UDP(sport=sport, dport=dport, chksum=0)
    return headers / bytes(size - FCS - len(headers))


def field(place, values):
    """An address that takes these values in turn."""
    return [
        STLVmFlowVar(name="address", value_list=values, size=4, op="inc"),
        STLVmWrFlowVar(fv_name="address", pkt_offset=place),
    ]


def hosts(first):
    """As many sources as the resolver asks servers."""
    return field("IP.src", [address(first) + number for number in range(ASKED)])


def stream(packet, pps, program, isg=0.0):
    vm = STLScVmRaw([*program, STLVmFixIpv4(offset="IP")])
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps), isg=isg)


def address(dotted):
    a, b, c, d = (int(part) for part in dotted.split("."))
    return a << 24 | b << 16 | c << 8 | d


def text(number):
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def register():
    return Resolver()
