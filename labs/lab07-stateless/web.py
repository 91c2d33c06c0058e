# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of a web server behind the DUT: visitors, its own look-ups and downloads, and what nobody asked for.

All packets arrive on one link, even those of the server. They are sent back where they came from.
"""

from ipaddress import IPv4Address

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
SERVER, BRANCH = "198.19.10.80", "198.19.64.80"
#: Ports from which the server asks name servers and fetches updates.
ASKING, FETCHING = 40_053, 40_443
#: Visitors, name servers, mirrors with updates; each conversation begins once in a second.
VISITORS, NAMES, MIRRORS = 64, 32, 16
#: Packets of an open conversation, each way.
IN, OUT = 20, 10
#: Sequence and acknowledgement numbers, by flags.
NUMBERS = {"S": (0, 0), "SA": (0, 1), "A": (1, 1), "F": (1, 0)}


class Web:
    """Continuous streams. Their rates (packets per second) are nominal; only the proportions count."""

    def get_streams(
        self, direction=0, own=1, asked=1, scan=0, errors=64, small=0, large=0, large_size=1400, size=128, **kwargs
    ):
        """Visitors and, unless `own` is 0, the server's packets and what answers them; and the following.

        asked   0: no visitors
        scan    segments without SYN to closed ports, and UDP from port 53 to other ports than the one that asked
        errors  ICMP "fragmentation needed" for the server, and as many redirects; also SYN and UDP packets to ports
                where nobody waits
        small   packets to the branch behind the tunnel
        large   the same with `large_size` bytes on the wire
        size    bytes on the wire of UDP packets and of segments with data, FCS included
        """
        streams = []
        if asked:
            streams += visits(own, size)
        if own:
            streams += lookups(size) + downloads(size)
        if errors:
            streams += icmp(errors) + uninvited(errors, size)
        if scan:
            streams += scans(scan, size)
        for name, first, rate, length in (
            ("small", "198.18.40.1", small, size),
            ("large", "198.18.41.1", large, large_size),
        ):
            if rate:
                streams.append(tcp(first, BRANCH, 2000, 443, "A", rate, hosts(first, 64), length, name=name))
        return streams


def visits(own, size):
    """Visitors' segments, after their SYN and the server's answer."""
    first, each = "198.18.32.1", hosts("198.18.32.1", VISITORS)
    gap = 1e6 / VISITORS
    streams = [
        tcp(first, SERVER, 2000, 443, "S", VISITORS, each, size),
        tcp(first, SERVER, 2000, 443, "A", VISITORS * IN, repeated(each, IN), size, isg=gap * 0.3),
    ]
    if own:
        streams += [
            tcp(SERVER, first, 443, 2000, "SA", VISITORS, each, size, isg=gap * 0.1, field="IP.dst"),
            tcp(SERVER, first, 443, 2000, "A", VISITORS * OUT, repeated(each, OUT), size, gap * 0.35, "IP.dst"),
        ]
    return streams


def lookups(size):
    first, each = "198.18.53.1", hosts("198.18.53.1", NAMES)
    return [
        udp(SERVER, first, ASKING, 53, NAMES, each, size, field="IP.dst"),
        udp(first, SERVER, 53, ASKING, NAMES, each, size, isg=1e6 / NAMES / 2),
    ]


def downloads(size):
    first, each, gap = "198.18.81.1", hosts("198.18.81.1", MIRRORS), 1e6 / MIRRORS
    return [
        tcp(SERVER, first, FETCHING, 443, "S", MIRRORS, each, size, field="IP.dst"),
        tcp(first, SERVER, 443, FETCHING, "SA", MIRRORS, each, size, isg=gap * 0.1),
        tcp(SERVER, first, FETCHING, 443, "A", MIRRORS, each, size, isg=gap * 0.2, field="IP.dst"),
        tcp(first, SERVER, 443, FETCHING, "A", MIRRORS * 4, repeated(each, 4), size, isg=gap * 0.3),
    ]


def icmp(rate):
    """Errors of routers on the way, about one of the server's segments; and redirects, from hosts between the routers.

    The checksum of ICMP does not cover the sender's address.
    """
    quoted = IP(src=SERVER, dst="198.18.32.1", flags="DF", len=1500) / TCP(sport=443, dport=2000, flags="A", seq=1)
    about = bytes(quoted)[:28]
    too_big = framed("198.18.90.2") / ICMP(type=3, code=4, nexthopmtu=1400) / about
    redirect = framed("198.18.90.3") / ICMP(type=5, code=1, gw="198.18.90.99") / about
    return [
        stream(too_big, rate, "IP.src", hosts("198.18.90.2", 64, step=3), None),
        stream(redirect, rate, "IP.src", hosts("198.18.90.3", 64, step=3), None),
    ]


def uninvited(rate, size):
    """Connections to closed ports, connections from port 443 to the port that fetches, and UDP from other than 53."""
    return [
        tcp("198.18.100.1", SERVER, 2000, 22, "S", rate, hosts("198.18.100.1", 64), size),
        tcp("198.18.101.1", SERVER, 443, FETCHING, "S", rate, hosts("198.18.101.1", 64), size),
        udp("198.18.102.1", SERVER, 5060, ASKING, rate, hosts("198.18.102.1", 64), size),
    ]


def scans(rate, size):
    """Segments of no connection, to closed ports, from an ordinary port and from 443; and UDP from 53."""
    first = "198.18.103.1"
    each = hosts(first, 64)
    return [
        tcp(first, SERVER, 2000, 22, "A", rate, each, size),
        tcp(first, SERVER, 2000, 3306, "F", rate, each, size),
        tcp(first, SERVER, 443, 22, "A", rate, each, size),
        tcp(first, SERVER, 443, 8080, "SA", rate, each, size),
        udp("198.18.104.1", SERVER, 53, 161, rate, hosts("198.18.104.1", 64), size),
    ]


def tcp(src, dst, sport, dport, flags, pps, values, size, isg=0.0, field="IP.src", name=None):
    seq, ack = NUMBERS[flags]
    headers = framed(src, dst) / TCP(sport=sport, dport=dport, flags=flags, seq=seq, ack=ack)
    packet = padded(headers, size) if flags == "A" else headers
    return stream(packet, pps, field, values, "TCP", isg, name)


def udp(src, dst, sport, dport, pps, values, size, isg=0.0, field="IP.src"):
    return stream(padded(framed(src, dst) / UDP(sport=sport, dport=dport), size), pps, field, values, "UDP", isg)


def framed(src, dst=SERVER):
    return Ether() / IP(src=src, dst=dst, flags="DF")


def padded(headers, size):
    return headers / bytes(max(0, size - FCS - len(headers)))


def hosts(first, count, step=1):
    return [int(IPv4Address(first)) + step * turn for turn in range(count)]


def repeated(values, times):
    return [value for value in values for _ in range(times)]


def stream(packet, pps, field, values, layer, isg=0.0, name=None):
    """A continuous stream in which the address takes these values in turn."""
    fix = (
        STLVmFixIpv4(offset="IP")
        if layer is None
        else STLVmFixChecksumHw(l3_offset="IP", l4_offset=layer, l4_type=13 if layer == "TCP" else 11)
    )
    program = [
        STLVmFlowVar(name="address", value_list=values, size=4, op="inc"),
        STLVmWrFlowVar(fv_name="address", pkt_offset=field),
        fix,
    ]
    return STLStream(
        name=name, packet=STLPktBuilder(pkt=packet, vm=STLScVmRaw(program)), mode=STLTXCont(pps=pps), isg=isg
    )


def register():
    return Web()
