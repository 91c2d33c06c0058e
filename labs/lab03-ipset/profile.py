# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases: UDP packets that the DUT is meant to drop, from one source or from many."""

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

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4


class Flood:
    """One continuous stream. The rate is nominal: capacity is measured flat out."""

    def get_streams(self, direction=0, source="198.18.64.1", step=13, sources=1000, size=128, **kwargs):
        """`sources` addresses from `source` on, `step` apart; `size` bytes on the wire, FCS included.

        A step of 13 keeps the sources from sharing any prefix or mask, so that no single rule can name
        them. 128 bytes is what S1 sent.
        """
        # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
        headers = Ether() / IP(src=source, dst="198.19.10.1") / UDP(sport=1025, dport=5000, chksum=0)
        packet = headers / bytes(size - FCS - len(headers))
        if sources == 1:
            return [STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=10_000))]
        first = int(IPv4Address(source))
        # The variable runs round modulo its range: the range must be a whole number of steps.
        vm = STLScVmRaw(
            [
                STLVmFlowVar(
                    name="source",
                    min_value=first,
                    max_value=first + step * sources - 1,
                    size=4,
                    step=step,
                    op="inc",
                ),
                STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Flood()
