# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP over IPv6 behind extension headers of every kind: to a closed port, to others, and the errors of routers."""

import random

from scapy.layers.inet6 import (
    HBHOptUnknown,
    ICMPv6DestUnreach,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from trex_stl_lib.api import (
    UDP,
    Ether,
    IPv6,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixIcmpv6,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Packets per second for a share of 1 %. Nominal; only the proportions count.
ONE = 100
#: The port that is closed, and the length of every frame on the wire.
CLOSED, SIZE = 1900, 256
#: An option that whoever does not know it ignores. A router drops a packet with more than seven bytes of padding.
IGNORED = 0x1E
#: Packets of a stream until it repeats itself, and hosts that are written to.
TURNS, DESTINATIONS = 499, 50
#: What stands before UDP: a letter for each extension header. F says that a packet may be a fragment, and here it is
#: the only one of its datagram.
CHAINS = ("", "D", "DD", "H", "HDR", "RD", "F", "DF")


class Headers:
    """Continuous streams, one for each chain of headers; their shares are in percent."""

    def get_streams(self, direction=0, closed=80, others=14, errors=6, draw=1, **kwargs):
        """Packets to the closed port, to any other port, and ICMPv6 errors. All have the same chains of headers but
        the errors, which have none.

        draw  draws addresses and ports, and how long each header is
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        streams = []
        for number, letters in enumerate(CHAINS):
            sizes = [int(3 * chance.random()) for _ in letters]
            for name, share, port in (("closed", closed, True), ("open", others, False)):
                headers = chain(letters, sizes) / UDP(sport=1025, dport=CLOSED, chksum=0)
                streams.append(stream(chance, f"{name} {number + 1}", share / len(CHAINS), headers, closed=port))
        quoted = IPv6(src="2001:2:0:1300::1", dst="2001:2:0:1200::1") / UDP(sport=CLOSED, dport=5000, chksum=0)
        kinds = (ICMPv6DestUnreach(), ICMPv6PacketTooBig(mtu=1280), ICMPv6TimeExceeded(), ICMPv6ParamProblem())
        for number, kind in enumerate(kinds):
            headers = chain("", []) / kind / quoted
            streams.append(stream(chance, f"errors {number + 1}", errors / len(kinds), headers))
        return streams


def chain(letters, sizes):
    """Ethernet, IPv6 and these extension headers, each of so many times eight bytes more than it needs."""
    packet = Ether() / IPv6(src="2001:2:0:1200::1", dst="2001:2:0:1300::1")
    for letter, more in zip(letters, sizes, strict=True):
        options = [HBHOptUnknown(otype=IGNORED, optdata=bytes(4 + 8 * more))]
        packet /= {
            "D": IPv6ExtHdrDestOpt(options=options),
            "H": IPv6ExtHdrHopByHop(options=options),
            "R": IPv6ExtHdrRouting(type=253, segleft=0),
            "F": IPv6ExtHdrFragment(id=7),
        }[letter]
    return packet


def stream(chance, name, share, headers, closed=None):
    """A continuous stream from drawn hosts to drawn hosts. closed: of UDP, whether it is to the closed port."""

    def drawn(count):
        return [int(count * chance.random()) for _ in range(TURNS)]

    hosts = [1 + int(65535 * chance.random()) for _ in range(DESTINATIONS)]
    fields = {
        "network": (1, drawn(256), "IPv6.src", 7),
        "source": (4, drawn(1 << 32), "IPv6.src", 12),
        "host": (2, [hosts[place] for place in drawn(DESTINATIONS)], "IPv6.dst", 14),
    }
    if closed is not None:
        fields["sport"] = (2, [1 + port for port in drawn(65535)], "UDP.sport", 0)
    if closed is False:
        ports = [port + (port >= CLOSED) for port in (1 + port for port in drawn(65534))]
        fields["dport"] = (2, ports, "UDP.dport", 0)
    variables = [
        STLVmFlowVar(name=field, value_list=values, size=size, op="inc")
        for field, (size, values, _, _) in fields.items()
    ]
    writes = [STLVmWrFlowVar(fv_name=field, pkt_offset=at, offset_fixup=by) for field, (_, _, at, by) in fields.items()]
    if closed is None:
        writes.append(STLVmFixIcmpv6(l3_offset="IPv6", l4_offset=len(Ether() / IPv6())))
    packet = STLPktBuilder(pkt=headers / bytes(SIZE - FCS - len(headers)), vm=STLScVmRaw([*variables, *writes]))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=share * ONE))


def register():
    return Headers()
