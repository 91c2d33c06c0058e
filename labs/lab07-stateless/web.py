# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of a web server behind the DUT: visitors, its own look-ups and downloads, and what nobody asked for.

All packets arrive on one link, even those of the server. They are sent back where they came from.
"""

import random
from ipaddress import IPv4Address, IPv4Network

from scapy.layers.inet import ICMP
from scapy.utils import checksum
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
SERVER, BRANCH = "198.19.10.80", "198.19.64.80"
#: The networks behind the DUT: all, but for the DUT's own link; the server's, and the branch's.
BEHIND, OWN_LINK = IPv4Network("198.19.0.0/16"), IPv4Network("198.19.0.0/30")
NEAR, BRANCHES = IPv4Network("198.19.10.0/24"), IPv4Network("198.19.64.0/18")
#: Ports from which the server asks name servers and fetches updates.
ASKING, FETCHING = 40_053, 40_443
#: Visitors, name servers, mirrors with updates; each conversation begins once in a second.
VISITORS, NAMES, MIRRORS = 64, 32, 16
#: Packets of an open conversation, each way.
IN, OUT = 20, 10
#: The first of so many addresses that hosts have, and the checksum of all ICMP errors.
FIRST, HOSTS, ICMP_CHECKSUM = int(IPv4Address("198.18.1.0")), 0xFF00, 0x5A5A
TOO_BIG = ICMP(type=3, code=4, nexthopmtu=1400)
#: Sequence and acknowledgement numbers, by flags.
NUMBERS = {"S": (0, 0), "SA": (0, 1), "A": (1, 1), "FA": (1, 1)}
#: Packets of each kind that nobody asked for.
KIND = 32
#: Ports that are among them: the first and the last, those next to 443 and to bounds of ranges, and services' own.
EDGES = (1, 22, 53, 80, 442, 443, 444, 1023, 1024, 32_767, 32_768, ASKING, FETCHING, 65_535)
#: Flags of a SYN, without and with ECN; of segments with data, and of a connection's last ones; and of a scanner's.
OPENING, FULL, CLOSING, SCANNED = ("S", "SEC"), ("A", "PA"), ("FA", "A", "R", "RA"), ("A", "F", "R", "SA", "FPU", "")
#: ICMP types that are always among others, and codes of type 3 other than "fragmentation needed".
TYPES, UNREACHABLE = (0, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18), (0, 1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13)
#: IPIP, IPv6, GRE, ESP, AH, DCCP, SCTP and UDP-Lite.
PROTOCOLS = (4, 41, 47, 50, 51, 33, 132, 136)
#: Where ICMP's type and code, TCP's flags and IP's protocol are.
ICMP_TYPE, FLAGS, PROTOCOL = 34, 47, 23


class Web:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self, direction=0, own=1, asked=1, scan=0, errors=64, unasked=0, small=0, large=0, large_size=1400, fits=0,
        size=128, draw=1, **kwargs,
    ):  # fmt: skip
        """Visitors and, unless `own` is 0, the server's packets and what answers them; and the following.

        asked   0: no visitors
        scan    segments without SYN to closed ports, and UDP from port 53 to other ports than the one that asked
        unasked  every other kind of packet that must not get in, so many of each: see `others`; and as many of visitors
                and mirrors with every kind of segment, from the ends of their range of ports, too
        errors  ICMP "fragmentation needed" for the server, and as many redirects; also SYN and UDP packets to ports
                where nobody waits
        small   packets to the branch behind the tunnel
        large   the same with `large_size` bytes on the wire
        fits    bytes on the wire of the largest packet that the tunnel carries: half of the small packets have as many,
                half of the large ones have one more, and all go to hosts of the whole branch; 0: all go to one host
        size    bytes on the wire of UDP packets and of segments with data, FCS included
        draw    draws all hosts from 198.18.1.0 on, and the ports that they choose
        """
        crowd = Crowd(draw)
        visitors, streams = crowd.hosts(VISITORS), []
        if asked:
            streams += visits(visitors, own, size)
        if own:
            streams += lookups(crowd.hosts(NAMES), size) + downloads(crowd.hosts(MIRRORS), size)
        if errors:
            streams += icmp(crowd, visitors[0], errors) + uninvited(crowd, errors, size)
        servers = [int(IPv4Address(SERVER))] + (crowd.branch() if fits else [])
        if scan:
            streams += scans(crowd, scan, size, servers)
        if unasked:
            streams += others(crowd, visitors[0], unasked, size, servers)
            streams += every_segment(crowd, unasked, size, own)
        if fits:
            return streams + to_branch(crowd, small, large, large_size, fits)
        for name, rate, length in (("small", small, size), ("large", large, large_size)):
            if rate:
                streams.append(tcp(name, crowd.hosts(64), BRANCH, 443, "A", rate, length))
        return streams


class Crowd:
    """Hosts and their ports, drawn one after the other."""

    def __init__(self, draw):
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        self.chance = random.Random(draw)
        self.taken = set()

    def hosts(self, count, port=None):
        """So many hosts with a port each: this one, or one that the host chose."""
        found = []
        while len(found) < count:
            host = FIRST + int(self.chance.random() * HOSTS)
            if host not in self.taken:
                self.taken.add(host)
                found.append((host, port or 1024 + int(self.chance.random() * 64512)))
        return found

    def closed(self):
        """A closed port for each of 64 hosts."""
        return [444 + int(self.chance.random() * 32_000) for _ in range(64)]

    def hosts_at(self, ports):
        """A host for each of these ports."""
        return [(host, port) for (host, _), port in zip(self.hosts(len(ports)), ports, strict=True)]

    def visiting(self):
        """Hosts with ports of their range, its ends and the neighbours of other bounds among them."""
        edges = [port for port in EDGES if port >= 1024]
        return self.hosts_at(edges) + self.hosts(KIND - len(edges))

    def mixed(self, values):
        """The values in a drawn order."""
        return [value for _, value in sorted((self.chance.random(), value) for value in values)]

    def ports(self, last=65_535, without=()):
        """Ports up to the last one, in any order: EDGES, and drawn ones, half of these below 1024."""
        found = [port for port in EDGES if port <= last and port not in without]
        while len(found) < KIND:
            low, high = ((1, 1023), (1024, last))[len(found) % 2]
            port = low + int(self.chance.random() * (high - low + 1))
            found += [port] if port not in without else []
        return self.mixed(found)

    def within(self, network, count):
        """Addresses in a network: the first, the last, and drawn ones."""
        drawn = [int(network[0]) + int(self.chance.random() * network.num_addresses) for _ in range(count - 2)]
        return [int(network[0]), int(network[-1]), *drawn]

    def branch(self):
        """Hosts of the branch."""
        return self.mixed(self.within(BRANCHES, KIND))

    def elsewhere(self):
        """Hosts behind the DUT that offer nothing: around the server, next to the branch's network, anywhere."""
        server, first, last = (int(address) for address in (IPv4Address(SERVER), BRANCHES[0], BRANCHES[-1]))
        found = [server - 1, server + 1, first - 1, last + 1, *self.within(NEAR, 12), *self.within(BEHIND, 64)]
        used = IPv4Network(SERVER), OWN_LINK, BRANCHES
        free = [host for host in found if not any(IPv4Address(host) in network for network in used)]
        return self.mixed(free[:KIND])


def visits(visitors, own, size):
    """Visitors' segments, after their SYN and the server's answer."""
    gap = 1e6 / VISITORS
    streams = [
        tcp("visitors 1", visitors, SERVER, 443, "S", VISITORS, size),
        tcp("visitors 2", repeated(visitors, IN), SERVER, 443, "A", VISITORS * IN, size, isg=gap * 0.3),
    ]
    if own:
        streams += [
            tcp(None, visitors, SERVER, 443, "SA", VISITORS, size, isg=gap * 0.1, back=True),
            tcp(None, repeated(visitors, OUT), SERVER, 443, "A", VISITORS * OUT, size, isg=gap * 0.35, back=True),
        ]
    return streams


def lookups(names, size):
    names = [(host, 53) for host, _ in names]
    return [
        udp(None, names, ASKING, NAMES, size, back=True),
        udp("replies", names, ASKING, NAMES, size, isg=1e6 / NAMES / 2),
    ]


def downloads(mirrors, size):
    mirrors, gap = [(host, 443) for host, _ in mirrors], 1e6 / MIRRORS
    return [
        tcp(None, mirrors, SERVER, FETCHING, "S", MIRRORS, size, back=True),
        tcp("downloads 1", mirrors, SERVER, FETCHING, "SA", MIRRORS, size, isg=gap * 0.1),
        tcp(None, mirrors, SERVER, FETCHING, "A", MIRRORS, size, isg=gap * 0.2, back=True),
        tcp("downloads 2", repeated(mirrors, 4), SERVER, FETCHING, "A", MIRRORS * 4, size, isg=gap * 0.3),
    ]


def icmp(crowd, visitor, rate):
    """Errors of routers on the way, about one of the server's segments to this visitor; and redirects of other hosts.

    The checksum of ICMP does not cover the sender's address.
    """
    redirect = ICMP(type=5, code=1, gw="198.18.90.99")
    return [
        stream(name, framed() / alike(error / quoted(visitor)), rate, {"IP.src": [host for host, _ in crowd.hosts(64)]})
        for name, error in (("too-big", TOO_BIG), ("redirects", redirect))
    ]


def quoted(visitor):
    """Of a segment of the server's to this visitor, what an error says."""
    host, port = visitor
    packet = IP(src=SERVER, dst=str(IPv4Address(host)), flags="DF", len=1500)
    return bytes(packet / TCP(sport=443, dport=port, flags="A", seq=1))[:28]


def alike(error):
    """The error, with a checksum that does not follow from its type.

    The sequence number that it quotes, at the end of the packet, makes up for it.
    """
    data = bytes(error)
    data = data[:2] + bytes(2) + data[4:-2] + bytes(2)
    rest = (checksum(data) - ICMP_CHECKSUM) % 0xFFFF
    return ICMP(data[:2] + ICMP_CHECKSUM.to_bytes(2, "big") + data[4:-2] + rest.to_bytes(2, "big"))


def uninvited(crowd, rate, size):
    """Connections to closed ports, connections from port 443 to the port that fetches, and UDP from other than 53."""
    return [
        tcp("probes", crowd.hosts(64), SERVER, 22, "S", rate, size, to=crowd.closed()),
        tcp("callers", crowd.hosts(64, 443), SERVER, FETCHING, "S", rate, size),
        udp("strangers", crowd.hosts(64), ASKING, rate, size),
    ]


def scans(crowd, rate, size, servers):
    """Segments of no connection, to closed ports, from an ordinary port and from 443; and UDP from 53.

    From 443 and from 53 they go to ports below 32768: from there on, the server may have asked from any.
    """
    found = []
    for number, (flags, length) in enumerate(((FULL, size), (SCANNED, 0), (FULL, size), (SCANNED, 0)), 1):
        from_mirror = number > 2
        hosts = crowd.hosts(KIND, 443 if from_mirror else None)
        ports = crowd.ports(32_767 if from_mirror else 65_535, without=(443,))
        found.append(segments(f"scan {number}", hosts, at(servers, ports), flags, rate, length))
    to = at(servers, crowd.ports(32_767))
    return [*found, datagrams("liars", crowd.hosts(KIND, 53), to, rate, size)]


def others(crowd, visitor, rate, size, servers):
    """SYNs to any closed port, from any port, and to port 443 of other hosts. UDP to any port from any but 53, and from
    53 to other hosts. ICMP of any type, and other protocols.
    """
    shut = [at(servers, crowd.ports(without=(443,))) for _ in range(2)]
    elsewhere = [[(host, port) for host in crowd.elsewhere()] for port in (443, ASKING)]
    strangers = crowd.hosts_at(crowd.ports(without=(53,)))
    return [
        segments("probes 2", crowd.hosts_at(crowd.ports(without=(443,))), shut[0], OPENING, rate),
        segments("probes 3", crowd.hosts(KIND), elsewhere[0], OPENING, rate),
        segments("callers 2", crowd.hosts(KIND, 443), shut[1], OPENING, rate),
        datagrams("strangers 2", strangers, at(servers, crowd.ports()), rate, size),
        datagrams("strangers 3", crowd.hosts(KIND, 53), elsewhere[1], rate, size),
        *messages(crowd, visitor, rate, servers),
        protocols(crowd, rate, servers),
    ]


def every_segment(crowd, rate, size, own):
    """Visits and downloads with every kind of segment."""
    visitors, mirrors = crowd.visiting(), crowd.hosts(KIND, 443)
    web, fetching = ([(int(IPv4Address(SERVER)), port)] for port in (443, FETCHING))
    streams = conversations(("visitors", None), (visitors, web), rate, size)
    if own:
        return streams + conversations((None, "downloads"), (fetching, mirrors), rate, size)
    return [stream for stream in streams if stream.name]


def conversations(names, ends, rate, size):
    """Connections from the first ends to the second; the names of both ends' streams."""
    said = (
        (0, OPENING, 0, 0.0),
        (1, ("SA",), 0, 0.1),
        (0, FULL, size, 0.3),
        (1, FULL, size, 0.5),
        (1, CLOSING, 0, 0.7),
        (0, CLOSING, 0, 0.8),
    )
    return [
        segments(
            f"{names[by]} {number}" if names[by] else None,
            ends[by],
            ends[1 - by],
            flags,
            rate,
            length,
            isg=when / rate * 1e6,
        )
        for number, (by, flags, length, when) in enumerate(said, 3)
    ]


def to_branch(crowd, small, large, large_size, fits):
    """Segments to the branch: the shortest, the longest that fits, the shortest that does not, and longer ones."""
    halves = (
        ("small 1", small / 2, (*OPENING, *CLOSING), 0),
        ("small 2", small / 2, FULL, fits),
        ("large 1", large / 2, FULL, fits + 1),
        ("large 2", large / 2, FULL, large_size),
    )
    return [
        segments(name, crowd.visiting(), [(host, 443) for host in crowd.branch()], flags, rate, length)
        for name, rate, flags, length in halves
    ]


def messages(crowd, visitor, rate, servers):
    """ICMP that looks like "fragmentation needed", but for the type and the code."""
    types = [(kind, 0) for kind in TYPES]
    while len(types) < KIND // 2:
        kind, code = int(crowd.chance.random() * 256), int(crowd.chance.random() * 16)
        types += [(kind, code)] if kind != 3 else []
    error, found = bytes(TOO_BIG / quoted(visitor)), []
    for name, kinds in (("others 1", types), ("unreachables", [(3, code) for code in UNREACHABLE])):
        of_kind = [bytes(alike(bytes([kind, code]) + error[2:])) for kind, code in kinds]
        packet, at_end = framed() / ICMP(of_kind[0]), ICMP_TYPE + len(of_kind[0]) - 2
        values = {
            "IP.src": [host for host, _ in crowd.hosts(KIND)],
            "IP.dst": [host for host, _ in at(servers, range(KIND))],
            ICMP_TYPE: in_turn([int.from_bytes(data[:2], "big") for data in of_kind]),
            at_end: in_turn([int.from_bytes(data[-2:], "big") for data in of_kind]),
        }
        found.append(stream(name, packet, rate, values))
    return found


def protocols(crowd, rate, servers):
    """Packets that are not of TCP, UDP or ICMP, with the ports of a visitor's where these have ports."""
    values = {
        "IP.src": [host for host, _ in crowd.hosts(KIND)],
        "IP.dst": [host for host, _ in at(servers, range(KIND))],
        PROTOCOL: in_turn(PROTOCOLS),
    }
    packet = framed() / (b"\xc0\x00\x01\xbb" + bytes(32))  # from 49152 to 443
    return stream("others 2", packet, rate, values)


def at(servers, ports):
    """These ports, of servers in turn; half of them of the first one."""
    more = [host for other in servers[1:] for host in (servers[0], other)] or servers
    return [(more[place % len(more)], port) for place, port in enumerate(ports)]


def segments(name, sources, ends, flags, pps, size=0, isg=0.0):
    """Segments from these hosts and ports to those, with these flags in turn."""
    seq, ack = NUMBERS[flags[0]]
    packet = padded(framed() / TCP(sport=2000, dport=443, flags="A", seq=seq, ack=ack), size)
    bits = [sum(1 << "FSRPAUEC".index(flag) for flag in combined) for combined in flags]
    return stream(name, packet, pps, {**between("TCP", sources, ends), FLAGS: in_turn(bits)}, isg)


def in_turn(values):
    """Each value twice, where every other packet goes to another server."""
    return [values[place // 2 % len(values)] for place in range(KIND)]


def datagrams(name, sources, ends, pps, size):
    packet = padded(framed() / UDP(sport=2000, dport=53), size)
    return stream(name, packet, pps, between("UDP", sources, ends))


def between(layer, sources, ends):
    """What the fields with addresses and ports take in turn."""
    return {
        "IP.src": [host for host, _ in sources],
        f"{layer}.sport": [port for _, port in sources],
        "IP.dst": [host for host, _ in ends],
        f"{layer}.dport": [port for _, port in ends],
    }


def tcp(name, hosts, server, port, flags, pps, size, isg=0.0, *, back=False, to=None):
    """Segments of these hosts to a server's port, or to one each; `back`: the server's to them."""
    seq, ack = NUMBERS[flags]
    headers = framed(server, back) / TCP(**ends(port, back), flags=flags, seq=seq, ack=ack)
    return stream(name, padded(headers, size) if flags == "A" else headers, pps, taken("TCP", hosts, back, to), isg)


def udp(name, hosts, port, pps, size, isg=0.0, *, back=False, to=None):
    packet = padded(framed(SERVER, back) / UDP(**ends(port, back)), size)
    return stream(name, packet, pps, taken("UDP", hosts, back, to), isg)


def ends(port, back):
    return {"sport": port, "dport": 2000} if back else {"sport": 2000, "dport": port}


def taken(layer, hosts, back, to):
    """What the fields with a host's address and port take in turn, and that with the server's port."""
    address, port = ("IP.dst", f"{layer}.dport") if back else ("IP.src", f"{layer}.sport")
    values = {address: [host for host, _ in hosts], port: [number for _, number in hosts]}
    return {**values, f"{layer}.dport": to} if to else values


def framed(server=SERVER, back=False):
    host = "198.18.32.1"
    return Ether() / (IP(src=server, dst=host, flags="DF") if back else IP(src=host, dst=server, flags="DF"))


def padded(headers, size):
    return headers / bytes(max(0, size - FCS - len(headers)))


def repeated(values, times):
    return [value for value in values for _ in range(times)]


def stream(name, packet, pps, values, isg=0.0):
    """A continuous stream; `values`: what fields, or bytes at a place, take in turn."""
    program = []
    for number, (field, listed) in enumerate(values.items()):
        size = 4 if field in ("IP.src", "IP.dst") else 1 if field in (FLAGS, PROTOCOL) else 2
        program += [
            STLVmFlowVar(name=f"value{number}", value_list=listed, size=size, op="inc"),
            STLVmWrFlowVar(fv_name=f"value{number}", pkt_offset=field),
        ]
    layers = [layer for layer in ("TCP", "UDP") if f"{layer}.sport" in values or f"{layer}.dport" in values]
    fix = [STLVmFixChecksumHw(l3_offset="IP", l4_offset=one, l4_type=13 if one == "TCP" else 11) for one in layers]
    packet = STLPktBuilder(pkt=packet, vm=STLScVmRaw([*program, *(fix or [STLVmFixIpv4(offset="IP")])]))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=pps), isg=isg)


def register():
    return Web()
