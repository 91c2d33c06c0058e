# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases: UDP packets that the DUT drops, from one source or from many."""

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


class Flood:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(self, direction=0, source="198.18.64.1", step=13, sources=1000, order="inc", size=128, **kwargs):
        """`sources` addresses that begin with `source` and are `step` apart; `size` bytes on the wire, FCS included.

        `order` is inc, one after the other, or random; then the addresses are 1 apart.

        With a step of 13 the sources share no prefix or mask, so no single rule can match them all. S1 sent frames of
        128 bytes.
        """
        # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
        headers = Ether() / IP(src=source, dst="198.19.10.1") / UDP(sport=1025, dport=5000, chksum=0)
        packet = headers / bytes(size - FCS - len(headers))
        if sources == 1:
            return [STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=10_000))]
        first = int(IPv4Address(source))
        # The variable wraps around at the end of its range, which must be a whole number of steps.
        vm = STLScVmRaw(
            [
                STLVmFlowVar(
                    name="source",
                    min_value=first,
                    max_value=first + step * sources - 1,
                    size=4,
                    step=step,
                    op=order,
                ),
                STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Flood()
