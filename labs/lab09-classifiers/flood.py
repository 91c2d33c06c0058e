# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases: UDP packets from many sources that no rule of a classifier names."""

from ipaddress import IPv4Address

from trex_stl_lib.api import (
    IP,
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
STRIDE = 389  # prime, so that consecutive packets come from sources far apart


class Flood:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(self, direction=0, source="198.18.0.1", sources=1000, step=65, dport=5000, size=128, **kwargs):
        """`sources` addresses from `source` on, `step` apart, and one port; `size` bytes on the wire, FCS included.

        The default spreads them evenly over 198.18.0.0/16: every branch of a tree gets its share.
        """
        # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
        headers = Ether() / IP(src=source, dst="198.19.10.1") / UDP(sport=1025, dport=dport, chksum=0)
        packet = headers / bytes(size - FCS - len(headers))
        first = int(IPv4Address(source))
        visited = [first + step * (turn * STRIDE % sources) for turn in range(sources)]
        vm = STLScVmRaw(
            [
                STLVmFlowVar(name="source", value_list=visited, size=4, op="inc"),
                STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Flood()
