# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of a web server behind the DUT: visitors, its own look-ups and downloads, and what nobody asked for.

All packets arrive on one link, even those of the server. They are sent back where they came from.
"""

import random
from ipaddress import IPv4Address

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
#: Ports from which the server asks name servers and fetches updates.
ASKING, FETCHING = 40_053, 40_443
#: Visitors, name servers, mirrors with updates; each conversation begins once in a second.
VISITORS, NAMES, MIRRORS = 64, 32, 16
#: Packets of an open conversation, each way.
IN, OUT = 20, 10
#: The first of so many addresses that hosts have, and the checksum of all ICMP errors.
FIRST, HOSTS, ICMP_CHECKSUM = int(IPv4Address("198.18.1.0")), 0xFF00, 0x5A5A
#: Sequence and acknowledgement numbers, by flags.
NUMBERS = {"S": (0, 0), "SA": (0, 1), "A": (1, 1), "F": (1, 0)}


class Web:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self, direction=0, own=1, asked=1, scan=0, errors=64, small=0, large=0, large_size=1400, size=128, draw=1,
        **kwargs,
    ):  # fmt: skip
        """Visitors and, unless `own` is 0, the server's packets and what answers them; and the following.

        asked   0: no visitors
        scan    segments without SYN to closed ports, and UDP from port 53 to other ports than the one that asked
        errors  ICMP "fragmentation needed" for the server, and as many redirects; also SYN and UDP packets to ports
                where nobody waits
        small   packets to the branch behind the tunnel
        large   the same with `large_size` bytes on the wire
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
        if scan:
            streams += scans(crowd, scan, size)
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
        """A closed port for each of 64 hosts. From 32768 on, the server may have asked from any."""
        return [444 + int(self.chance.random() * 32_000) for _ in range(64)]


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
    host, port = visitor
    quoted = IP(src=SERVER, dst=str(IPv4Address(host)), flags="DF", len=1500)
    quoted /= TCP(sport=443, dport=port, flags="A", seq=1)
    about = bytes(quoted)[:28]
    too_big, redirect = ICMP(type=3, code=4, nexthopmtu=1400), ICMP(type=5, code=1, gw="198.18.90.99")
    return [
        stream(name, framed() / alike(error / about), rate, crowd.hosts(64), "IP.src", None)
        for name, error in (("too-big", too_big), ("redirects", redirect))
    ]


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


def scans(crowd, rate, size):
    """Segments of no connection, to closed ports, from an ordinary port and from 443; and UDP from 53."""
    usual = crowd.hosts(64)
    mirrored = [(host, 443) for host, _ in usual]
    return [
        tcp("scan 1", usual, SERVER, 22, "A", rate, size, to=crowd.closed()),
        tcp("scan 2", usual, SERVER, 22, "F", rate, size, to=crowd.closed()),
        tcp("scan 3", mirrored, SERVER, 22, "A", rate, size, to=crowd.closed()),
        tcp("scan 4", mirrored, SERVER, 22, "SA", rate, size, to=crowd.closed()),
        udp("liars", crowd.hosts(64, 53), 161, rate, size, to=crowd.closed()),
    ]


def tcp(name, hosts, server, port, flags, pps, size, isg=0.0, *, back=False, to=None):
    """Segments of these hosts to a server's port, or to one each; `back`: the server's to them."""
    seq, ack = NUMBERS[flags]
    headers = framed(server, back) / TCP(**ends(port, back), flags=flags, seq=seq, ack=ack)
    return stream(name, padded(headers, size) if flags == "A" else headers, pps, hosts, *fields("TCP", back), isg, to)


def udp(name, hosts, port, pps, size, isg=0.0, *, back=False, to=None):
    packet = padded(framed(SERVER, back) / UDP(**ends(port, back)), size)
    return stream(name, packet, pps, hosts, *fields("UDP", back), isg, to)


def ends(port, back):
    return {"sport": port, "dport": 2000} if back else {"sport": 2000, "dport": port}


def fields(layer, back):
    """Where a host and its port are."""
    return ("IP.dst", f"{layer}.dport") if back else ("IP.src", f"{layer}.sport")


def framed(server=SERVER, back=False):
    host = "198.18.32.1"
    return Ether() / (IP(src=server, dst=host, flags="DF") if back else IP(src=host, dst=server, flags="DF"))


def padded(headers, size):
    return headers / bytes(max(0, size - FCS - len(headers)))


def repeated(values, times):
    return [value for value in values for _ in range(times)]


def stream(name, packet, pps, hosts, address, port, isg=0.0, to=None):
    """A continuous stream in which these hosts, with their ports, take turns; `to`: the port to which each sends."""
    program = [
        STLVmFlowVar(name="address", value_list=[host for host, _ in hosts], size=4, op="inc"),
        STLVmWrFlowVar(fv_name="address", pkt_offset=address),
    ]
    if port is None:
        program.append(STLVmFixIpv4(offset="IP"))
    else:
        layer = port.split(".")[0]
        program += [
            STLVmFlowVar(name="port", value_list=[port for _, port in hosts], size=2, op="inc"),
            STLVmWrFlowVar(fv_name="port", pkt_offset=port),
            *(STLVmFlowVar(name="to", value_list=ports, size=2, op="inc") for ports in [to] if ports),
            *(STLVmWrFlowVar(fv_name="to", pkt_offset=f"{layer}.dport") for ports in [to] if ports),
            STLVmFixChecksumHw(l3_offset="IP", l4_offset=layer, l4_type=13 if layer == "TCP" else 11),
        ]
    packet = STLPktBuilder(pkt=packet, vm=STLScVmRaw(program))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=pps), isg=isg)


def register():
    return Web()
