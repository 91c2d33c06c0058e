# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic about state: a resolver with its questions and answers, a name server with queries, and strangers.

All packets arrive on one link, even the resolver's questions. States and conntrack entries compare addresses and ports:
a question opens one and is sent back where it came from, and its answers match it.
"""

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
#: The resolver asks this many name servers, one after the other, from one port. They have every second address of their
#: network. Forged answers come from the addresses between them, and go to the same port.
ASKED, FIRST_ASKED, FIRST_FORGER = 64, "198.18.53.2", "198.18.53.3"
RESOLVER_PORT = 20_053
STRANGER, CLIENT = "198.18.67.1", "198.18.128.1"


class Resolver:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self, direction=0, answers=15, strangers=0, forged=0, queries=0, clients=250, ports=32, size=128, **kwargs
    ):
        """Each tunable is a number of packets per second, unless it says something else.

        answers    answers to each question; there are ASKED questions per second
        strangers  packets to the resolver that it never asked for
        forged     the same, but they look like answers, from addresses that were not asked
        queries    packets to the name server, from `clients` x `ports` flows
        size       bytes on the wire, FCS included
        """
        asked = spaced(FIRST_ASKED, 2)
        question = udp(RESOLVER, FIRST_ASKED, RESOLVER_PORT, 53, size)
        answer = udp(FIRST_ASKED, RESOLVER, 53, RESOLVER_PORT, size)
        # All answers to a question follow it before the next question.
        repeated = [server for server in asked for _ in range(answers)]
        streams = [
            stream(question, ASKED, field("IP.dst", asked)),
            stream(answer, ASKED * answers, field("IP.src", repeated), isg=1e6 / ASKED / answers / 2),
        ]
        if strangers:
            packet = udp(STRANGER, RESOLVER, 4444, 5060, size)
            streams.append(stream(packet, strangers, field("IP.src", spaced(STRANGER, 1))))
        if forged:
            packet = udp(FIRST_FORGER, RESOLVER, 53, RESOLVER_PORT, size)
            streams.append(stream(packet, forged, field("IP.src", spaced(FIRST_FORGER, 2))))
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


def spaced(first, step):
    """ASKED addresses."""
    return [int(IPv4Address(first)) + step * number for number in range(ASKED)]


def stream(packet, pps, program, isg=0.0):
    vm = STLScVmRaw([*program, STLVmFixIpv4(offset="IP")])
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps), isg=isg)


def register():
    return Resolver()
