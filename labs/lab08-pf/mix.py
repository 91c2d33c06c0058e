# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises on rules: packets to block, their neighbours, and a legitimate network.

Packets of one stream differ only in source address and destination port. The sink tells the classes apart by these two
fields as well (lab.yml, `classes`).
"""

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
OPEN_PORTS = [22, 80, 443, 1999, 5201, 8080, 33_000]
#: The first port of the rules on UDP, and of those on TCP.
UDP_PORT, TCP_PORT = 2000, 4000
NEIGHBOUR_FLOWS = 400


def hosts(first, count, step):
    """`count` addresses that begin with `first` and are `step` apart."""
    return [int(IPv4Address(first)) + step * place for place in range(count)]


def legitimate():
    """Hosts on no list."""
    return [(address, 443) for address in hosts("198.18.10.1", 50, 1)]


def spread(flows, count):
    """At most `count` of these flows, spread evenly from the first to the last."""
    return [flows[place * len(flows) // count] for place in range(count)] if len(flows) > count else flows


def services(first, step, tcp, udp):
    """Flows to block by rules of one address and one port each: on TCP, on UDP; and neighbours of both, on UDP."""
    sources = hosts(first, tcp + udp, step)
    by_tcp = [(source, TCP_PORT + place) for place, source in enumerate(sources[:tcp])]
    by_udp = [(source, UDP_PORT + place) for place, source in enumerate(sources[tcp:])]
    others = [(source, port) for source, own in by_udp for port in [own + 1, *OPEN_PORTS]]
    wrong = [(source, port + 1) for source, port in by_tcp]
    return {"blocked": by_udp, "blocked-tcp": by_tcp}, others + spread(wrong, 240)


def ports(first, step, servers, closed):
    """Flows from each of some hosts to each of some ports. The neighbours: the same hosts at other ports, others."""
    sources = hosts(first, servers, step)
    blocked = [(source, UDP_PORT + place) for source in sources for place in range(closed)]
    elsewhere = [(source, port) for source in sources for port in [UDP_PORT + closed, *OPEN_PORTS]]
    beside = [(source + 1, UDP_PORT + place) for place, source in enumerate(sources[:closed])]
    return {"blocked": blocked}, spread(elsewhere + beside, NEIGHBOUR_FLOWS)


def listed(first, step, count):
    """Flows of listed addresses to any port. The neighbours have the addresses around theirs."""
    sources = hosts(first, count, step)
    around = sorted({source + way for source in sources for way in (-1, 1)} - set(sources))
    anywhere = [(source, OPEN_PORTS[place % len(OPEN_PORTS)]) for place, source in enumerate(sources)]
    return {"blocked": anywhere}, [(source, 443) for source in spread(around, NEIGHBOUR_FLOWS)]


class Mix:
    """Continuous streams, named after the classes that the sink counts."""

    def get_streams(
        self, direction=0, first="198.18.64.1", step=13, tcp=0, udp=0, servers=0, closed=0, count=1000, **kwargs
    ):
        """Either `tcp` and `udp` rules of a host and a port, `servers` hosts with `closed` ports, or `count` hosts.

        The addresses begin with `first` and are `step` apart. Nine packets of ten are to be blocked; neighbours and the
        legitimate network share the rest.
        """
        if udp:
            blocked, neighbours = services(first, step, tcp, udp)
        elif servers:
            blocked, neighbours = ports(first, step, servers, closed)
        else:
            blocked, neighbours = listed(first, step, count)
        rare = {name: 5 for name in blocked if name != "blocked"}
        shares = {"blocked": 90 - sum(rare.values()), **rare}
        return [
            *(
                stream(name, flows, shares[name], TCP if name == "blocked-tcp" else UDP)
                for name, flows in blocked.items()
            ),
            stream("neighbours", neighbours, 5, UDP),
            stream("legitimate", legitimate(), 5, UDP),
        ]


def stream(name, flows, percent, layer):
    """A continuous stream, one flow after the other, in strides: each part of a list has its share of both ends."""
    visited = [flows[turn * STRIDE % len(flows)] for turn in range(len(flows))]
    # All packets have the same checksum: none in UDP (RFC 768), in TCP one that the firewall does not verify.
    transport = UDP(sport=1025, dport=443, chksum=0) if layer is UDP else TCP(sport=1025, dport=443, flags="S")
    headers = Ether() / IP(src="198.18.0.1", dst="198.19.10.1") / transport
    packet = headers / bytes(SIZE - FCS - len(headers))
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=[source for source, _ in visited], size=4, op="inc"),
            STLVmFlowVar(name="port", value_list=[port for _, port in visited], size=2, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmWrFlowVar(fv_name="port", pkt_offset="UDP.dport" if layer is UDP else "TCP.dport"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    mode = STLTXCont(pps=TOTAL_PPS * percent / 100)
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def register():
    return Mix()
