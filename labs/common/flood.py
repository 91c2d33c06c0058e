# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases: one stream of packets, from one source or many, to one destination or many."""

from ipaddress import IPv4Address

from trex_stl_lib.api import (
    IP,
    TCP,
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

    def get_streams(
        self,
        direction=0,
        source="198.18.64.1",
        sources=1000,
        step=13,
        stride=1,
        order="inc",
        destination="198.19.10.1",
        destinations=1,
        protocol="udp",
        sport=1025,
        dport=5000,
        size=128,
        **kwargs,
    ):
        """`sources` addresses that begin with `source` and are `step` apart; `size` bytes on the wire, FCS included.

        With a step of 13 the sources share no prefix or mask, so no single rule can match them all. S1 sent frames of
        128 bytes.

        stride        each packet's source is so many sources after the one before; it has no factor in common with
                      their number
        order         inc, or random: each source drawn from the whole range, whatever the step
        destinations  every source sends to the first, then every source to the next
        protocol      udp, or tcp: segments with the flag ACK
        """
        # No UDP checksum (RFC 768 allows it): it would have to follow the source address. That of TCP does not either;
        # the segments are dropped before it is verified.
        transport = (
            UDP(sport=sport, dport=dport, chksum=0) if protocol == "udp" else TCP(sport=sport, dport=dport, flags="A")
        )
        headers = Ether() / IP(src=source, dst=destination) / transport
        packet = headers / bytes(size - FCS - len(headers))
        first, other = int(IPv4Address(source)), int(IPv4Address(destination))
        if order == "random":
            last = first + step * sources - 1
            variables = [STLVmFlowVar(name="source", min_value=first, max_value=last, size=4, op="random")]
        else:
            turns = range(sources * destinations)
            near = [first + step * (turn * stride % sources) for turn in turns]
            variables = [STLVmFlowVar(name="source", value_list=near, size=4, op="inc")]
        if destinations > 1:
            far = [other + turn // sources for turn in turns]
            variables.append(STLVmFlowVar(name="destination", value_list=far, size=4, op="inc"))
        fields = {"source": "IP.src", "destination": "IP.dst"}
        writes = [STLVmWrFlowVar(fv_name=one.name, pkt_offset=fields[one.name]) for one in variables]
        vm = STLScVmRaw([*variables, *writes, STLVmFixIpv4(offset="IP")])
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Flood()
