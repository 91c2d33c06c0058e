# SPDX-License-Identifier: GPL-2.0-or-later
"""A connection table that fills up: newcomers come first, then residents, more of them than the table holds.

All packets arrive on one link, even those of servers behind the DUT. Connection tracking compares addresses and ports,
not links.
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
    STLTXMultiBurst,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
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
#: The first address of the clients' network.
FIRST = int(IPv4Address("198.18.64.1"))
#: What residents send for each connection, one after the other: from the client (True) or from the server, and what.
KINDS = {
    "unanswered": [(True, "udp")],
    "answered": [(True, "udp"), (False, "udp")],
    "half-open": [(True, "S")],
    "picked-up": [(True, "A")],
    "established": [(True, "S"), (False, "SA"), (True, "A")],
    "closed": [(True, "S"), (False, "SA"), (True, "A"), (True, "FA"), (False, "FA"), (True, "A")],
}
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
        kind="unanswered",
        greeting="",
        rounds=1,
        hosts=250,
        ports=20,
        size=64,
        draw=1,
        **kwargs,
    ):
        """Newcomers, members, and then residents with `hosts` x `ports` connections, a multiple of 250.

        newcomers  hosts that begin one connection, to the port that residents use, too
        members    hosts that begin `each` connections
        latecomers  hosts that begin one connection while the residents open theirs, one after the other
        kind       what residents send: see KINDS
        greeting   the packet of newcomers and members, if it is another than the residents' first one
        rounds     residents send the same packets so often, all of them before any of them again
        size       bytes of a UDP packet on the wire, FCS included
        draw       draws who of one network is a newcomer, a member, a resident or a latecomer
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        network = [FIRST + place for place in range(3 * max(newcomers, members, hosts))]
        network = [host for _, host in sorted((chance.random(), host) for host in network)]
        newcoming, belonging = network[:newcomers], network[newcomers : newcomers + members]
        residing = network[newcomers + members :][:hosts]
        late = network[newcomers + members + hosts :][:latecomers]
        first = greeting or KINDS[kind][0][1]
        streams, begin = [], 0.0
        if newcomers:
            streams.append(burst("newcomers", first, size, newcoming, 1, begin))
            begin += newcomers / PPS
        if members:
            streams.append(burst("members", first, size, belonging, each, begin))
            begin += members * each / PPS
        packets, flows = KINDS[kind], hosts * ports
        if latecomers:
            seconds = rounds * flows * len(packets) / PPS
            streams.append(burst("latecomers", first, size, late, 1, begin, latecomers / seconds))
        for _ in range(rounds if flows else 0):
            for turn, (from_client, what) in enumerate(packets):
                slot = begin + turn * TOGETHER / PPS
                name = f"residents {len(streams)}" if from_client else None
                streams.append(resident(name, from_client, what, size, residing, ports, slot, len(packets)))
            begin += flows * len(packets) / PPS
        return streams


def burst(name, first, size, sources, ports, begin, pps=PPS):
    """The first packets of connections, `ports` of each source; all sources before the next port."""
    tcp = first != "udp"
    packet, where = framed("198.18.64.1", SERVER, 2000, 443, first, size), "TCP" if tcp else "UDP"
    program = [
        STLVmFlowVar(name="source", value_list=sources, size=4, op="inc", next_var="port", split_to_cores=False),
        STLVmFlowVar(name="port", min_value=2000, max_value=2000 + ports - 1, size=2, op="inc", split_to_cores=False),
        STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
        STLVmWrFlowVar(fv_name="port", pkt_offset=f"{where}.sport"),
    ]
    mode = STLTXSingleBurst(total_pkts=len(sources) * ports, pps=pps)
    return STLStream(name=name, packet=built(packet, program, tcp), mode=mode, isg=begin * 1e6)


def resident(name, from_client, what, size, hosts, ports, begin, turns):
    """One packet of each connection of the residents, in bursts; other packets of the same connections lie between."""
    tcp, where = what != "udp", "UDP" if what == "udp" else "TCP"
    ends = ["198.18.64.1", SERVER, 2000, 443]
    if not from_client:
        ends = [ends[1], ends[0], ends[3], ends[2]]
    place, port = ("IP.src", f"{where}.sport") if from_client else ("IP.dst", f"{where}.dport")
    program = [
        STLVmFlowVar(name="host", value_list=hosts, size=4, op="inc", next_var="port", split_to_cores=False),
        STLVmFlowVar(name="port", min_value=2000, max_value=2000 + ports - 1, size=2, op="inc", split_to_cores=False),
        STLVmWrFlowVar(fv_name="host", pkt_offset=place),
        STLVmWrFlowVar(fv_name="port", pkt_offset=port),
    ]
    packet, bursts = framed(*ends, what, size), len(hosts) * ports // TOGETHER
    # A burst takes half of its time, so that bursts keep their order.
    gap = (turns - 0.5) * TOGETHER / PPS * 1e6
    mode = STLTXMultiBurst(pps=2 * PPS, pkts_per_burst=TOGETHER, ibg=gap, count=bursts)
    return STLStream(name=name, packet=built(packet, program, tcp), mode=mode, isg=begin * 1e6)


def framed(src, dst, sport, dport, what, size):
    if what == "udp":
        # No UDP checksum (RFC 768 allows it): it would have to follow the addresses.
        transport = UDP(sport=sport, dport=dport, chksum=0)
    else:
        seq, ack = NUMBERS[what]
        return Ether() / IP(src=src, dst=dst, flags="DF") / TCP(sport=sport, dport=dport, flags=what, seq=seq, ack=ack)
    headers = Ether() / IP(src=src, dst=dst, flags="DF") / transport
    return headers / bytes(max(0, size - FCS - len(headers)))


def built(packet, program, tcp):
    """The packet with its program, and with checksums that follow from what that changes."""
    fix = STLVmFixChecksumHw(l3_offset="IP", l4_offset="TCP" if tcp else "UDP", l4_type=13 if tcp else 11)
    return STLPktBuilder(pkt=packet, vm=STLScVmRaw([*program, fix]))


def register():
    return Residents()
