# SPDX-License-Identifier: GPL-2.0-or-later
"""The stream of the cases: TCP segments that no rule and no set of a sweep knows."""

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

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4


class Segments:
    """One continuous stream. The rate is nominal: capacity is measured flat out."""

    def get_streams(self, direction=0, source="198.18.64.1", step=13, sources=1000, dport=5201, size=128, **kwargs):
        """`sources` addresses from `source` on, `step` apart; `size` bytes on the wire, FCS included.

        S3 sent one stream from one address. A look-up in a hash costs a little more or less for each address,
        by what else has fallen into its bucket; over a thousand of them that evens out.
        """
        # The segments are dropped before anyone looks at their checksum, and it does not follow the source.
        headers = Ether() / IP(src=source, dst="198.19.10.1") / TCP(sport=1025, dport=dport, flags="A")
        packet = headers / bytes(size - FCS - len(headers))
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
    return Segments()
