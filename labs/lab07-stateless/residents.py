# SPDX-License-Identifier: GPL-2.0-or-later
"""A connection table that fills up: newcomers come first, then residents, more of them than the table holds.

All packets arrive on one link, even those of servers behind the DUT. Connection tracking compares addresses and ports,
not links.
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
    STLTXMultiBurst,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Packets per second. Nominal; only the order of packets counts.
PPS = 100_000
#: The DUT takes up to 64 packets at a time, and looks all of them up before it enters any. So other connections come
#: between a connection's first packet and its answer, as they do on a real line.
TOGETHER = 250
SERVER = "198.19.10.80"
#: The server's network, and the ports that clients choose.
NEAR, CLIENTS = IPv4Network("198.19.10.0/24"), range(1024, 65_536)
#: Closed ports that are always among others: the first, the last, those next to the open one, and services' own.
EDGES = (1, 22, 53, 80, 442, 444, 65_535)
#: The first address of the clients' network.
FIRST = int(IPv4Address("198.18.64.1"))
#: What residents send for each connection, one after the other: from the client (True) or from the server, and what.
KINDS = {
    "unanswered": [(True, "udp")],
    "answered": [(True, "udp"), (False, "udp")],
    "icmp": [(True, "echo")],
    "half-open": [(True, "S")],
    "picked-up": [(True, "A")],
    "established": [(True, "S"), (False, "SA"), (True, "A")],
    "closed": [(True, "S"), (False, "SA"), (True, "A"), (True, "FA"), (False, "FA"), (True, "A")],
}
#: Bytes of the fields that change.
SIZES = {"client": 4, "port": 2, "server": 4, "to": 2}
#: Sequence and acknowledgement numbers of both ends, by packet.
NUMBERS = {"S": (0, 0), "SA": (0, 1), "A": (1, 1), "FA": (1, 1)}


class Residents:
    """Bursts, one after the other."""

    def get_streams(
        self,
        direction=0,
        newcomers=960,
        members=0,
        each=8,
        latecomers=0,
        intruders=0,
        kind="unanswered",
        greeting="",
        rounds=1,
        hosts=250,
        ports=20,
        size=64,
        own_ports=0,
        draw=1,
        **kwargs,
    ):
        """Newcomers, members, and then residents with `hosts` x `ports` connections, a multiple of 250.

        newcomers  hosts that begin one connection, to the port that residents use, too
        members    hosts that begin `each` connections
        latecomers  hosts that open a connection as residents do, one after the other, while the residents open theirs
        intruders  hosts that send a SYN to a closed port in the meantime, as many with UDP, as many with a SYN to port
                   443 of the server's neighbours, and as many with an ICMP echo
        kind       what residents send: see KINDS
        greeting   the packet of newcomers and members, if it is another than the residents' first one
        rounds     residents send the same packets so often, all of them before any of them again
        size       bytes of a UDP packet on the wire, FCS included
        own_ports  1: clients of every kind have the same drawn ports; 0: the residents' begin with 2000, and newcomers
                   have that one
        draw       draws who of one network is a newcomer, a member, a resident or a latecomer, and the ports
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        network = [FIRST + place for place in range(3 * max(newcomers, members, hosts))]
        network = [host for _, host in sorted((chance.random(), host) for host in network)]
        pool = drawn(chance, CLIENTS)[:ports] if own_ports else list(range(2000, 2000 + ports))
        parts = iter(network)
        newcoming, belonging, residing, late = (
            [next(parts) for _ in range(count)] for count in (newcomers, members, hosts, latecomers)
        )
        first, packets = greeting or KINDS[kind][0][1], KINDS[kind]
        streams, begin, flows = [], 0.0, hosts * ports
        for name, who, count in (("newcomers", newcoming, 1), ("members", belonging, each)):
            if who:
                values = {"client": who, "port": pool if own_ports else pool[:count]}
                streams.append(burst(name, True, first, size, values, len(who) * count, begin))
                begin += len(who) * count / PPS
        seconds = rounds * flows * len(packets) / PPS
        for turn, (from_client, what) in enumerate(packets if latecomers else []):
            name = f"latecomers {turn}" if from_client else None
            values, slot = {"client": late, "port": pool}, begin + turn * TOGETHER / PPS
            streams.append(burst(name, from_client, what, size, values, len(late), slot, len(late) / seconds))
        if intruders:
            streams += intruding(chance, parts, intruders, size, begin, seconds)
        for _ in range(rounds if flows else 0):
            for turn, (from_client, what) in enumerate(packets):
                slot = begin + turn * TOGETHER / PPS
                name = f"residents {len(streams)}" if from_client else None
                streams.append(resident(name, from_client, what, size, residing, pool, slot, len(packets)))
            begin += flows * len(packets) / PPS
        return streams


def drawn(chance, values):
    """The values in a drawn order."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def intruding(chance, hosts, count, size, begin, seconds):
    """What nobody has asked for: SYNs and UDP to closed ports, SYNs to port 443 of other hosts, and ICMP echoes."""
    server = int(IPv4Address(SERVER))
    around = drawn(chance, [host for host in range(int(NEAR[1]), int(NEAR[-1])) if host != server])
    kinds = (
        ("S", {"server": [server], "to": closed(chance, EDGES, count)}),
        ("udp", {"server": [server], "to": closed(chance, (443, *EDGES), count)}),
        ("S", {"server": around, "to": [443]}),
        ("echo", {"server": [server]}),
    )
    streams = []
    for number, (what, values) in enumerate(kinds):
        values["client"] = [next(hosts) for _ in range(count)]
        if what != "echo":
            values["port"] = drawn(chance, CLIENTS)[:count]
        slot = begin + number * seconds / count / len(kinds)
        streams.append(burst(f"intruders {number}", True, what, size, values, count, slot, count / seconds))
    return streams


def closed(chance, edges, count):
    """`count` closed ports, `edges` among them, in a drawn order."""
    others = [port for port in drawn(chance, range(1, 65_536)) if port != 443]
    return drawn(chance, [*edges, *others][:count])


def burst(name, from_client, what, size, values, packets, begin, pps=PPS):
    """Packets in which the fields take these values in turn, each field for itself."""
    program = [STLVmFlowVar(name=one, value_list=listed, size=SIZES[one], op="inc") for one, listed in values.items()]
    mode = STLTXSingleBurst(total_pkts=packets, pps=pps)
    return stream(name, from_client, what, size, program, mode, begin)


def resident(name, from_client, what, size, hosts, ports, begin, turns):
    """One packet of each connection of the residents, in bursts; other packets of the same connections lie between."""
    client, port = {"name": "client", "value_list": hosts, "size": 4}, {"name": "port", "value_list": ports, "size": 2}
    # An echo request has no port: its identifier stays as it is, and the hosts differ.
    chained = [client] if what == "echo" else [client | {"next_var": "port"}, port]
    program = [STLVmFlowVar(**fields, op="inc", split_to_cores=False) for fields in chained]
    # A burst takes half of its time, so that bursts keep their order.
    gap, bursts = (turns - 0.5) * TOGETHER / PPS * 1e6, len(hosts) * len(ports) // TOGETHER
    mode = STLTXMultiBurst(pps=2 * PPS, pkts_per_burst=TOGETHER, ibg=gap, count=bursts)
    return stream(name, from_client, what, size, program, mode, begin)


def framed(src, dst, sport, dport, what, size):
    if what == "echo":
        transport = ICMP()
    elif what == "udp":
        # No UDP checksum (RFC 768 allows it): it would have to follow the addresses.
        transport = UDP(sport=sport, dport=dport, chksum=0)
    else:
        seq, ack = NUMBERS[what]
        return Ether() / IP(src=src, dst=dst, flags="DF") / TCP(sport=sport, dport=dport, flags=what, seq=seq, ack=ack)
    headers = Ether() / IP(src=src, dst=dst, flags="DF") / transport
    return headers / bytes(max(0, size - FCS - len(headers)))


def stream(name, from_client, what, size, program, mode, begin):
    """A stream of packets from the clients or to them; `program`: the variables client, port, server and to."""
    layer = {"udp": "UDP", "echo": "ICMP"}.get(what, "TCP")
    ends = ("198.18.64.1", SERVER, 2000, 443) if from_client else (SERVER, "198.18.64.1", 443, 2000)
    places = ("IP.src", f"{layer}.sport", "IP.dst", f"{layer}.dport")
    places = places if from_client else places[2:] + places[:2]
    fields = dict(zip(("client", "port", "server", "to"), places, strict=True))
    written = [STLVmWrFlowVar(fv_name=one.name, pkt_offset=fields[one.name]) for one in program]
    # Checksums follow from what the program changes; that of ICMP does not.
    fix = STLVmFixIpv4(offset="IP")
    if layer != "ICMP":
        fix = STLVmFixChecksumHw(l3_offset="IP", l4_offset=layer, l4_type=13 if layer == "TCP" else 11)
    packet = STLPktBuilder(pkt=framed(*ends, what, size), vm=STLScVmRaw([*program, *written, fix]))
    return STLStream(name=name, packet=packet, mode=mode, isg=begin * 1e6)


def register():
    return Residents()
