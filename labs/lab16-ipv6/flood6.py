# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases over IPv6: from many sources, with any number of extension headers before UDP."""

from scapy.layers.inet6 import IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, PadN
from trex_stl_lib.api import (
    UDP,
    Ether,
    IPv6,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4


class Flood6:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(self, direction=0, sources=1000, step=13, headers=0, hop=0, size=256, **kwargs):
        """`sources` addresses of 2001:2:0:1200::/64 that are `step` apart; `size` bytes on the wire, FCS included.

        headers  extension headers of eight bytes each, with options that only the destination reads
        hop      1: another one before these, that each router reads
        """
        chain = Ether() / IPv6(src="2001:2:0:1200::1", dst="2001:2:0:1300::1")
        if hop:
            chain /= IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))])
        for _ in range(headers):
            chain /= IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))])
        # No UDP checksum: it would have to follow the source address, and only the destination verifies it.
        chain /= UDP(sport=1025, dport=5000, chksum=0)
        vm = STLScVmRaw(
            [
                STLVmFlowVar(name="source", value_list=[1 + step * n for n in range(sources)], size=4, op="inc"),
                STLVmWrFlowVar(fv_name="source", pkt_offset="IPv6.src", offset_fixup=12),
            ]
        )
        packet = STLPktBuilder(pkt=chain / bytes(size - FCS - len(chain)), vm=vm)
        return [STLStream(packet=packet, mode=STLTXCont(pps=10_000))]


def register():
    return Flood6()
