# SPDX-License-Identifier: GPL-2.0-or-later
"""The stream of the cases: S5's small UDP packets, between 254 sources and 250 destinations."""

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

#: Bytes of Ethernet's frame check sequence. S5's generator does not count it in its 60 bytes.
FCS = 4
PORT = 2000


class Pairs:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(
        self,
        direction=0,
        source="198.18.10.1",
        sources=254,
        destination="198.19.10.1",
        destinations=250,
        size=64,
        **kwargs,
    ):
        """Every source to the first destination, then every source to the next; `size` in bytes on the wire."""
        headers = Ether() / IP(src=source, dst=destination) / UDP(sport=PORT, dport=PORT, chksum=0)
        packet = headers / bytes(size - FCS - len(headers))
        first, other = int(IPv4Address(source)), int(IPv4Address(destination))
        pairs = [(first + near, other + far) for far in range(destinations) for near in range(sources)]
        vm = STLScVmRaw(
            [
                STLVmFlowVar(name="source", value_list=[near for near, _ in pairs], size=4, op="inc"),
                STLVmFlowVar(name="destination", value_list=[far for _, far in pairs], size=4, op="inc"),
                STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
                STLVmWrFlowVar(fv_name="destination", pkt_offset="IP.dst"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Pairs()
