# SPDX-License-Identifier: GPL-2.0-or-later
"""The stream of the cases: TCP segments that no rule and no set of a sweep matches."""

from ipaddress import IPv4Address

from trex_stl_lib.api import (
    IP,
    TCP,
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


class Segments:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(self, direction=0, source="198.18.64.1", step=13, sources=1000, dport=5201, size=128, **kwargs):
        """`sources` addresses that begin with `source` and are `step` apart; `size` bytes on the wire, FCS included.

        S3 sent one stream from one address. The cost of a hash lookup depends a little on the address, because other
        entries may share its bucket. Over a thousand addresses this averages out.
        """
        # The segments are dropped before their checksum is verified, so it does not follow the source address.
        headers = Ether() / IP(src=source, dst="198.19.10.1") / TCP(sport=1025, dport=dport, flags="A")
        packet = headers / bytes(size - FCS - len(headers))
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
                    op="inc",
                ),
                STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Segments()
