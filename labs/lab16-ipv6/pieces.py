# SPDX-License-Identifier: GPL-2.0-or-later
"""Datagrams whole and in fragments, over IPv4 or IPv6; and first fragments that nothing follows."""

import random

from scapy.layers.inet6 import IPv6ExtHdrFragment
from trex_stl_lib.api import (
    IP,
    UDP,
    Ether,
    IPv6,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Packets per second for a share of 1 %. Nominal; only the proportions count.
ONE = 100
#: The open port, and datagrams of a stream until it repeats itself.
OPEN, TURNS = 5000, 4000
#: The table of frames holds this many datagrams for each percent.
FOR_EACH_PERCENT = 600
#: Bytes of the UDP datagram that is cut, a multiple of eight for each number of fragments; and bytes of a whole one.
DATAGRAM, WHOLE = 1152, 576
UDP_PROTOCOL = 17


class Pieces:
    """Continuous streams; their shares are in percent of all frames."""

    def get_streams(
        self, direction=0, version=6, whole=0, pieces=100, cut=2, overlap=0, closed=0, orphans=0, first=0,
        flows=TURNS, draw=1, **kwargs,
    ):  # fmt: skip
        """Datagrams to the open port: whole, and in `cut` fragments.

        first    in place of `cut`, the bytes of the first of two fragments, which WHOLE bytes follow
        flows    hosts of each kind, which send one datagram each in turn
        overlap  1: the last fragment begins eight bytes too early
        closed   whole datagrams to other ports
        orphans  first fragments of datagrams to other ports, of which no other fragment comes
        draw     draws hosts, ports and identifications
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        # Some hosts of each kind in each network; no host is of two kinds.
        hosts = shuffled(chance, list(range(4 * TURNS)))
        kinds = [hosts[n * TURNS : n * TURNS + flows] for n in range(4)]
        streams = []
        if whole:
            streams.append(stream(chance, "whole", whole, version, kinds[0], WHOLE))
        if pieces and cut == 1:
            streams.append(stream(chance, "pieces", pieces, version, kinds[1], DATAGRAM))
        elif pieces:
            numbers = [1 + int(0xFFFE * chance.random()) for _ in range(flows)]
            sizes = [first, WHOLE] if first else [DATAGRAM // cut] * cut
            for n, size in enumerate(sizes):
                begin = sum(sizes[:n]) - 8 * (overlap and n == len(sizes) - 1)
                part = begin, size, n < len(sizes) - 1, numbers, sum(sizes)
                streams.append(stream(chance, f"pieces {n + 1}", pieces / len(sizes), version, kinds[1], part=part))
        if closed:
            streams.append(stream(chance, "closed 1", closed, version, kinds[2], WHOLE, open_port=False))
        if orphans:
            few = kinds[3][: int(FOR_EACH_PERCENT * orphans)]
            size = first or DATAGRAM // 2
            part = 0, size, True, [1 + int(0xFFFE * chance.random()) for _ in few], size + WHOLE
            streams.append(stream(chance, "closed 2", orphans, version, few, part=part, open_port=False))
        return streams


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def stream(chance, name, share, version, hosts, size=0, part=None, open_port=True):
    """A continuous stream of datagrams from these hosts, each of `size` bytes of UDP, or this part of datagrams.

    part  where it begins, its bytes, whether more follow, the datagrams' identifications, and all bytes of a datagram
    """
    begin, size, more, numbers, whole = part or (0, size, False, [], size)
    # No UDP checksum: it would have to follow the source address.
    udp = bytes(UDP(sport=1025, dport=OPEN, len=whole, chksum=0))
    payload = udp.ljust(size, b"\0") if begin == 0 else bytes(size)
    if version == 6:
        network = IPv6(src="2001:2:0:1200::1", dst="2001:2:0:1302::1", nh=UDP_PROTOCOL)
        if part:
            network.nh = 44
            network /= IPv6ExtHdrFragment(nh=UDP_PROTOCOL, offset=begin // 8, m=more)
        places = {"network": ("IPv6.src", 7), "host": ("IPv6.src", 14)}
        # Of the fragment header the identification, its last two bytes; and where the UDP header is.
        number, header = 14 + 40 + 6, 14 + 40 + (8 if part else 0)
    else:
        network = IP(
            src="198.18.0.1", dst="198.19.10.1", proto=UDP_PROTOCOL, frag=begin // 8, flags="MF" if more else 0
        )
        places = {"host": ("IP.src", 2)}
        number, header = 14 + 4, 14 + 20
    packet = Ether() / network / payload
    values = {
        "network": (1, [host % 256 for host in hosts]),
        "host": (2, [4096 + host for host in hosts]),
        "number": (2, numbers),
        "sport": (2, [1024 + int(64512 * chance.random()) for _ in hosts]),
        "dport": (2, [port + (port >= OPEN) for port in (1 + int(65534 * chance.random()) for _ in hosts)]),
    }
    places |= {"number": (number, 0), "sport": (header, 0), "dport": (header + 2, 0)}
    wanted = ["network"] * (version == 6) + ["host"]
    wanted += ["number"] * bool(part) + ["sport"] * (begin == 0) + ["dport"] * (begin == 0 and not open_port)
    vm = []
    for field in wanted:
        bytes_of, listed = values[field]
        at, by = places[field]
        vm += [
            STLVmFlowVar(name=field, value_list=listed, size=bytes_of, op="inc"),
            STLVmWrFlowVar(fv_name=field, pkt_offset=at, offset_fixup=by),
        ]
    if version == 4:
        vm.append(STLVmFixIpv4(offset="IP"))
    # In microseconds: the fragments of a datagram follow one another, the first one first.
    after = begin / whole
    packet = STLPktBuilder(pkt=packet, vm=STLScVmRaw(vm))
    return STLStream(name=name, packet=packet, isg=after, mode=STLTXCont(pps=share * ONE))


def register():
    return Pieces()
