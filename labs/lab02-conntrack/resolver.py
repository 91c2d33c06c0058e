# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: a resolver with its questions and answers, a name server with queries, and strangers.

All packets arrive on one link, even the resolver's questions. Connection tracking compares addresses and ports, not
links: a question opens an entry and is sent back where it came from, and its answers match the entry.
"""

import random
from ipaddress import IPv4Address
from itertools import islice

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
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Behind the firewall.
NETWORK = int(IPv4Address("198.19.10.0"))
RESOLVER, SERVER, DESK = NETWORK + 53, NETWORK + 54, NETWORK + 60
#: In front of it. No other host is drawn from the networks of the link and of those that are listed, nor next to these.
OUTSIDE = int(IPv4Address("198.18.0.0"))
SERVERS, QUARANTINE, SHUT = (OUTSIDE + 256 * network for network in (53, 80, 100))
TAKEN = {0, 53, 79, 80, 81, 99, 100, 101, 160}
#: The resolver asks this many name servers, one after the other, from one port. As many hosts of their network forge
#: answers.
ASKED, RESOLVER_PORT = 64, 20_053
#: Blacklisted hosts: LISTED of them APART from each other, and OTHERS elsewhere, of which SENDING send.
NEAR, LISTED, APART = OUTSIDE + 256 * 160 + 2, 32, 3
AWAY, OTHERS, SENDING = int(IPv4Address("10.0.0.1")), 168, 160
#: Answers to each question that the desk asks a web server.
CALLS = 3
#: The name server answers only these clients and ports, so that all of its traffic fits into one table of frames.
REPLIED, REPLIED_PORTS = 100, 32
#: Hosts behind the firewall that ask somebody by UDP, as many that do by TCP and by ICMP, and the ports that they ask.
VISITORS, SERVICES = 16, (53, 443)
#: All ports, the low ones, and those from which hosts ask: none is the resolver's.
PORTS, LOW, OWN = range(1, 65536), range(1, 1024), range(20_100, 65536)
#: Where strangers always knock.
DOORS = {
    UDP: [(RESOLVER, 53), (SERVER, 52), (SERVER, 54), (RESOLVER, RESOLVER_PORT), (DESK, 53)],
    TCP: [(SERVER, 53), (RESOLVER, 53), (RESOLVER, 22), (SERVER, 22), (DESK, 443)],
}
#: TCP's flags, where a frame has them, and those of strangers, in turn.
SYN, SYN_ACK, ACK, FLAGS_AT = 2, 18, 16, 14 + 20 + 13
TRIED = [SYN] * 8 + [SYN_ACK, ACK] * 4
#: Types and codes of ICMP. The errors are about a packet that nobody has sent.
ECHO, REPLY = (8, 0), (0, 0)
MESSAGES, ERRORS = [ECHO, REPLY, (13, 0), (14, 0), (17, 0), (3, 1), (3, 3), (11, 0)], (3, 11)


class Resolver:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self,
        direction=0,
        answers=15,
        strangers=128,
        forged=0,
        visits=0,
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
        strangers  packets that nobody asked for, to any host: half of UDP, a quarter each of TCP and ICMP
        forged     the same, but they look like answers, from addresses that were not asked
        visits     questions of other hosts, a third each of UDP, TCP and ICMP, and as many answers
        calls      questions of the desk to web servers; each has CALLS answers
        queries    packets to the name server, from `clients` x `ports` flows
        replies    packets of the name server to REPLIED x REPLIED_PORTS of those flows
        probes     packets from those clients to other ports of the name server
        blocked    packets to the name server from blacklisted hosts: half from a network, half from hosts
        size       bytes on the wire, FCS included
        draw       draws who of the name servers' network is asked, forges, or is a stranger; all other hosts, but for
                   the resolver, the name server and the desk; and all ports but the resolver's
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        network = shuffled(chance, spaced(SERVERS + 1, 254, 1))
        servers, forgers, others = (network[part * ASKED : (part + 1) * ASKED] for part in range(3))
        rest = network[3 * ASKED :]
        far = [host for host in spaced(OUTSIDE, 65536, 1) if host // 256 % 256 not in TAKEN and 0 < host % 256 < 255]
        far = iter(shuffled(chance, far))
        others += islice(far, ASKED)
        pinging = shuffled(chance, rest[:VISITORS] + list(islice(far, VISITORS)))
        # Two of them are next to the quarantine.
        visited = [QUARANTINE - 2, QUARANTINE + 257, *rest[VISITORS : 2 * VISITORS], *islice(far, 2 * VISITORS - 2)]
        behind = [host for host in spaced(NETWORK + 1, 254, 1) if host not in (RESOLVER, SERVER, DESK)]
        behind = shuffled(chance, behind)
        visitors = [
            (host, other, one_of(OWN, chance), SERVICES[turn // 3 % 2])
            for turn, (host, other) in enumerate(zip([DESK, *behind], shuffled(chance, visited), strict=False))
        ]
        desk_port, own = one_of(OWN, chance), shuffled(chance, OWN)[:ports]
        asking = next_to_listed(chance, clients) if blocked else list(islice(far, clients))
        streams = []
        if answers:
            question, answer = (RESOLVER, SERVERS + 1, RESOLVER_PORT, 53), (SERVERS + 1, RESOLVER, 53, RESOLVER_PORT)
            streams += conversations(question, answer, servers, answers, size, "answers")
        if visits:
            for turn, kind in enumerate((UDP, TCP, ICMP)):
                streams += exchange(kind, visitors[turn::3], visits / 3, size)
        if strangers:
            first = []
            if forged:  # from port 53 of hosts that were asked: to other ports, or asked by somebody else
                first = [(host, RESOLVER, 53, RESOLVER_PORT + turn) for turn, host in enumerate(servers[:4], 1)]
                first += [(host, RESOLVER, 53, RESOLVER_PORT) for _, host, _, port in visitors[::3] if port == 53][:4]
            if calls:
                first += [(host, DESK, 443, desk_port) for host in others[:4]]
            first += knocks(chance, UDP, others, servers, behind)
            streams.append(listed("strangers 1", UDP, first[:ASKED], strangers / 2, size))
            rows = knocks(chance, TCP, others, servers, behind)[:ASKED]
            streams.append(listed("strangers 2", TCP, rows, strangers / 4, size, TRIED))
            for turn, kind in enumerate(MESSAGES):
                to = shuffled(chance, [RESOLVER, RESOLVER, SERVER, behind[turn]])
                rows = list(zip(pinging[turn :: len(MESSAGES)], to, strict=False))
                streams.append(message(f"icmp {turn}", kind, rows, strangers / 4 / len(MESSAGES), size))
        if forged:
            rows = [(host, RESOLVER, 53, RESOLVER_PORT) for host in forgers]
            streams.append(listed("forged 1", UDP, rows, forged * 3 / 4, size))
            asked = zip(forgers, visitors[::3], strict=False)
            rows = [(liar, host, port, own_port) for liar, (host, _, own_port, port) in asked]
            streams.append(listed("forged 2", UDP, rows, forged / 4, size))
        if calls:
            asked = shuffled(chance, spaced(QUARANTINE + 1, 254, 1))[:calls]
            call, back = (DESK, QUARANTINE + 1, desk_port, 443), (QUARANTINE + 1, DESK, 443, desk_port)
            streams += conversations(call, back, asked, CALLS, size)
        if blocked:
            packet = framed(UDP, (SHUT + 1, SERVER, own[0], 53), size)
            shut = shuffled(chance, spaced(SHUT + 1, 254, 1))[:ASKED]
            streams.append(stream(packet, blocked / 2, field("IP.src", shut)))
            blacklist = shuffled(chance, spaced(NEAR, LISTED, APART)) + shuffled(chance, spaced(AWAY, OTHERS, 2))
            blacklist = field("IP.src", blacklist[: LISTED + SENDING])
            streams.append(stream(packet, blocked / 2, blacklist, name="blocked hosts"))
        if queries:
            query = framed(UDP, (asking[0], SERVER, own[0], 53), size)
            streams.append(stream(query, queries, flows(asking, own, "IP.src", "UDP.sport"), name="queries"))
        if replies:
            reply = framed(UDP, (SERVER, asking[0], 53, own[0]), size)
            some = flows(asking[:REPLIED], own[:REPLIED_PORTS], "IP.dst", "UDP.dport")
            streams.append(stream(reply, replies, some))
        for turn, kind in enumerate((UDP, TCP) if probes else ()):
            ports = [port for port in drawn_ports(chance, 2 * ASKED) if port != 53][:ASKED]
            rows = [(host, SERVER, one_of(PORTS, chance), port) for host, port in zip(asking, ports, strict=False)]
            streams.append(listed(f"strangers {3 + turn}", kind, rows, probes / 2, size, TRIED))
        return streams


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def one_of(values, chance):
    return values[int(len(values) * chance.random())]


def drawn_ports(chance, count):
    """Half of them are low."""
    return [one_of((LOW, PORTS)[turn % 2], chance) for turn in range(count)]


def next_to_listed(chance, count):
    """Hosts that are on no list: those next to a list's ends, and others between and around what is listed."""
    near, away = spaced(NEAR, LISTED, APART), spaced(AWAY, OTHERS, 2)
    first = [near[0] - 1, near[-1] + 1, near[-1] + 2, away[-1] + 1, away[-1] + 2, SHUT - 2, SHUT + 257]
    around = {*spaced(NEAR, 250, 1), *spaced(AWAY, 510, 1), *spaced(SHUT - 255, 253, 1), *spaced(SHUT + 257, 254, 1)}
    return shuffled(chance, first + shuffled(chance, sorted(around - {*near, *away, *first}))[: count - len(first)])


def knocks(chance, kind, others, asked, behind):
    """Source, destination and ports of packets that nobody asked for: to DOORS first, then to any port of any host."""
    hosts, rows = [RESOLVER, RESOLVER, SERVER], []
    drawn = [(one_of([*hosts, one_of(behind, chance)], chance), port) for port in drawn_ports(chance, 2 * ASKED)]
    for turn, (host, port) in enumerate(DOORS[kind] + drawn):
        source = one_of(others if port == RESOLVER_PORT else others + asked, chance)
        own = one_of(SERVICES, chance) if turn % 3 == 2 else one_of(PORTS, chance)
        # The name server has one port for everybody. To the resolver from port 53: see `forged`.
        if kind is TCP or ((host, port) != (SERVER, 53) and (host, own) != (RESOLVER, 53)):
            rows.append((source, host, own, port))
    return rows


def conversations(question, answer, asked, answers, size, name=None):
    """All answers to a question follow it before the next question. All questions are asked within a second."""
    gap_us = 1e6 / len(asked) / answers
    repeated = [server for server in asked for _ in range(answers)]
    question, answer = framed(UDP, question, size), framed(UDP, answer, size)
    return [
        stream(question, len(asked), field("IP.dst", asked)),
        stream(answer, len(asked) * answers, field("IP.src", repeated), isg=gap_us / 2, name=name),
    ]


def exchange(kind, visitors, pps, size):
    """A question and an answer of each; many packets come between."""
    rows = [(host, other, own, port) for host, other, own, port in visitors]
    back = [(other, host, port, own) for host, other, own, port in visitors]
    name, later = f"answers {kind.__name__}", 1e6 / pps / 2
    if kind is ICMP:
        return [message(None, ECHO, rows, pps, size), message(name, REPLY, back, pps, size, later)]
    return [listed(None, kind, rows, pps, size), listed(name, kind, back, pps, size, [SYN_ACK], later)]


def flows(hosts, ports, place, port):
    """Each of these addresses with each of these ports, in packets that they send or receive."""
    return [
        STLVmFlowVar(name="host", value_list=hosts, size=4, op="inc", next_var="port", split_to_cores=False),
        STLVmFlowVar(name="port", value_list=ports, size=2, op="inc", split_to_cores=False),
        STLVmWrFlowVar(fv_name="host", pkt_offset=place),
        STLVmWrFlowVar(fv_name="port", pkt_offset=port),
    ]


def framed(kind, ends, size):
    """A packet from one address to another, from one port to another."""
    src, dst, sport, dport = ends
    # No UDP checksum (RFC 768 allows it): it would have to follow the addresses.
    transport = UDP(sport=sport, dport=dport, chksum=0) if kind is UDP else TCP(sport=sport, dport=dport, ack=1)
    headers = Ether() / IP(src=str(IPv4Address(src)), dst=str(IPv4Address(dst))) / transport
    return headers / bytes(size - FCS - len(headers))


def listed(name, kind, rows, pps, size, flags=(SYN,), isg=0.0):
    """A stream of these sources, destinations and ports, in turn."""
    program = []
    for place, values in zip(("IP.src", "IP.dst", "sport", "dport"), zip(*rows, strict=True), strict=True):
        program += field(place if "." in place else f"{kind.__name__}.{place}", list(values))
    if kind is TCP:
        program += field(FLAGS_AT, [flags[turn % len(flags)] for turn in range(len(rows))])
    return stream(framed(kind, rows[0], size), pps, program, isg=isg, name=name)


def message(name, kind, rows, pps, size, isg=0.0):
    """A stream of ICMP messages of this type and code, from these sources to these destinations in turn."""
    packet = Ether() / IP(src=str(IPv4Address(rows[0][0])), dst=str(IPv4Address(rows[0][1])))
    # scapy would set the times of a timestamp message to the time of day.
    packet /= ICMP(type=kind[0], code=kind[1], ts_ori=0, ts_rx=0, ts_tx=0)
    if kind[0] in ERRORS:
        packet /= IP(src=str(IPv4Address(RESOLVER)), dst=str(IPv4Address(rows[0][0]))) / UDP(sport=1025, dport=53)
    packet /= bytes(size - FCS - len(packet))
    sources, destinations = ([row[end] for row in rows] for end in (0, 1))
    return stream(packet, pps, field("IP.src", sources) + field("IP.dst", destinations), isg=isg, name=name)


def field(place, values):
    """A field that takes these values in turn."""
    size = 1 if place == FLAGS_AT else 4 if "IP." in place else 2
    return [
        STLVmFlowVar(name=str(place), value_list=values, size=size, op="inc"),
        STLVmWrFlowVar(fv_name=str(place), pkt_offset=place),
    ]


def spaced(first, count, step):
    return [first + step * number for number in range(count)]


def stream(packet, pps, program, isg=0.0, name=None):
    tcp = STLVmFixChecksumHw(l3_offset="IP", l4_offset="TCP", l4_type=13)
    vm = STLScVmRaw([*program, tcp if packet.haslayer(TCP) else STLVmFixIpv4(offset="IP")])
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=pps), isg=isg)


def register():
    return Resolver()
