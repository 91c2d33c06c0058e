# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises on rules: packets to block, their neighbours, and a legitimate network.

Packets of one stream differ only in source address and destination port. The sink tells the classes apart by these two
fields and the protocol (lab.yml, `classes`).
"""

import random
from ipaddress import IPv4Address

from trex_stl_lib.api import (
    IP,
    TCP,
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
SIZE = 128  # bytes on the wire, FCS included
#: Packets per second of all streams together. Nominal; only the proportions count.
TOTAL_PPS = 10_000
STRIDE = 389  # prime, so that it reaches every flow of a list
#: The first port of the rules on UDP, and of those on TCP. No rule closes a port from FREE on.
UDP_PORT, TCP_PORT, FREE = 2000, 4000, 5000
#: Where TCP's flags are, and what they say: a rule on TCP drops a SYN, data and a last segment alike.
FLAGS, SEGMENTS = 47, (0x02, 0x10, 0x18, 0x11, 0x04)
#: The number of neighbouring flows, and how many of them are TCP. A port that a rule closes for one protocol is open
#: to the other.
NEIGHBOUR_FLOWS, BY_TCP = 400, 40
#: The most rules on UDP whose hosts have neighbours.
WITH_NEIGHBOURS = 20
#: Legitimate hosts that send to many ports each.
SENDERS = 254


def hosts(first, count, step):
    """`count` addresses that begin with `first` and are `step` apart."""
    return [int(IPv4Address(first)) + step * place for place in range(count)]


def legitimate(chance, ports):
    """Hosts on no list: fifty with one flow each, or SENDERS that send to as many ports as this, in a drawn order."""
    if not ports:
        return [(address, 443) for address in hosts("198.18.10.1", 50, 1)]
    flows = [(address, FREE + port) for port in range(ports) for address in hosts("198.18.10.1", SENDERS, 1)]
    return sorted(flows, key=lambda _: chance.random())


def spread(flows, count):
    """`count` of these flows, spread evenly from the first to the last."""
    return [flows[place * len(flows) // count] for place in range(count)]


def below(chance, number):
    """A whole number below this one. random() is the one function that no version of Python changes."""
    return int(number * chance.random())


def free_ports(chance, count):
    """Ports that no rule closes, some of them below those of the rules."""
    low = [1 + below(chance, UDP_PORT - 1) for _ in range(count)]
    return [port if chance.random() < 0.5 else FREE + below(chance, 60_000) for port in low]


def services(chance, first, step, tcp, udp):
    """Flows to block by rules of one address and one port each: on TCP, on UDP; and neighbours of both."""
    sources = hosts(first, tcp + udp, step)
    by_tcp = [(source, TCP_PORT + place) for place, source in enumerate(sources[:tcp])]
    by_udp = [(source, UDP_PORT + place) for place, source in enumerate(sources[tcp:])]
    known = spread(by_udp, min(udp, WITH_NEIGHBOURS))
    others = [(source, port) for source, own in known for port in [own - 1, own + 1, *free_ports(chance, 6)]]
    wrong = [(source, port + place % 2) for place, (source, port) in enumerate(by_tcp)]
    beside = others + spread(wrong, NEIGHBOUR_FLOWS - BY_TCP - len(others))
    free = [(sources[below(chance, tcp)], port) for port in free_ports(chance, BY_TCP - len(known) - 10)]
    foreign = [(by_tcp[place][0], by_tcp[place - 1][1]) for place in (below(chance, tcp) for _ in range(10))]
    others_by_tcp = [flow for turn in zip(known, free + foreign, strict=True) for flow in turn]
    return {"blocked": by_udp, "blocked-tcp": by_tcp}, {"neighbours udp": beside, "neighbours tcp": others_by_tcp}


def ports(chance, first, step, servers, closed):
    """Flows from each of some hosts to each of some ports. The neighbours: the same hosts at other ports, others."""
    sources = hosts(first, servers, step)
    blocked = [(source, UDP_PORT + place) for source in sources for place in range(closed)]
    around = [UDP_PORT - 1, UDP_PORT + closed]
    elsewhere = [(source, port) for source in sources for port in around + free_ports(chance, 5)]
    beside = [(source + 1 + below(chance, step - 1), UDP_PORT + below(chance, closed)) for source in sources]
    by_tcp = [blocked[below(chance, len(blocked))] for _ in range(BY_TCP)]
    by_udp = spread(elsewhere + beside, NEIGHBOUR_FLOWS - BY_TCP)
    return {"blocked": blocked}, {"neighbours udp": by_udp, "neighbours tcp": by_tcp}


def listed(chance, first, step, count):
    """Flows of listed addresses to any port. The neighbours have addresses between theirs."""
    sources = hosts(first, count, step)
    beside = [source + 1 + below(chance, step - 1) for source in spread(sources, NEIGHBOUR_FLOWS)]
    return {"blocked": anywhere(chance, sources)}, {"neighbours": anywhere(chance, beside)}


def anywhere(chance, sources):
    """Flows of these hosts, half of them to one port."""
    free = free_ports(chance, len(sources))
    return [(source, free[place] if place % 2 else 443) for place, source in enumerate(sources)]


class Mix:
    """Continuous streams, named after the classes that the sink counts."""

    def get_streams(
        self,
        direction=0,
        first="198.18.64.1",
        step=13,
        tcp=0,
        udp=0,
        servers=0,
        closed=0,
        count=1000,
        many=0,
        draw=1,
        order=1,
        **kwargs,
    ):
        """Either `tcp` and `udp` rules of a host and a port, `servers` hosts with `closed` ports, or `count` hosts.

        The addresses begin with `first` and are `step` apart. Nine packets of ten are to be blocked; neighbours and the
        legitimate network share the rest. With `many`, nine of ten are legitimate: SENDERS hosts send to as many ports
        each, in an order that `order` draws. `draw` draws the neighbours.
        """
        chance = random.Random(draw)
        if udp:
            blocked, neighbours = services(chance, first, step, tcp, udp)
        elif servers:
            blocked, neighbours = ports(chance, first, step, servers, closed)
        else:
            blocked, neighbours = listed(chance, first, step, count)
        most, rest = (5, 90) if many else (90, 5)
        rare = {name: most / 2 if many else 5 for name in blocked if name != "blocked"}
        shares = {"blocked": most - sum(rare.values()), **rare}
        return [
            *(stream(name, flows, shares[name]) for name, flows in blocked.items()),
            *(stream(name, flows, 5 * len(flows) / NEIGHBOUR_FLOWS) for name, flows in neighbours.items()),
            stream("legitimate", legitimate(random.Random(order), many), rest),
        ]


def stream(name, flows, percent):
    """A continuous stream, one flow after the other, in strides: each part of a list has its share of both ends.

    It is of TCP if its name ends so.
    """
    layer = TCP if name.endswith("tcp") else UDP
    visited = [flows[turn * STRIDE % len(flows)] for turn in range(len(flows))]
    # All packets have the same checksum: none in UDP (RFC 768), in TCP one that the firewall does not verify.
    transport = UDP(sport=1025, dport=443, chksum=0) if layer is UDP else TCP(sport=1025, dport=443, flags="S")
    headers = Ether() / IP(src="198.18.0.1", dst="198.19.10.1") / transport
    packet = headers / bytes(SIZE - FCS - len(headers))
    segments = list(SEGMENTS) if layer is TCP else []
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=[source for source, _ in visited], size=4, op="inc"),
            STLVmFlowVar(name="port", value_list=[port for _, port in visited], size=2, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmWrFlowVar(fv_name="port", pkt_offset="UDP.dport" if layer is UDP else "TCP.dport"),
            *(STLVmFlowVar(name="flags", value_list=values, size=1, op="inc") for values in [segments] if values),
            *(STLVmWrFlowVar(fv_name="flags", pkt_offset=FLAGS) for values in [segments] if values),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    mode = STLTXCont(pps=TOTAL_PPS * percent / 100)
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def register():
    return Mix()
