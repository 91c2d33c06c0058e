# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the cases: packets in one direction, of any number of flows."""

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
    STLVmTupleGen,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
FIRST_PORT = 1025


class Flows:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(
        self,
        direction=0,
        first="198.18.64.1",
        destination="198.19.10.1",
        hosts=250,
        ports=4,
        protocol="udp",
        size=128,
        order="in turn",
        **kwargs,
    ):
        """`hosts` x `ports` flows; their addresses begin with `first`. `size` is in bytes on the wire, FCS included.

        The address changes with each packet, and the port after a round of all addresses. After hosts x ports packets
        the first flow returns. With `order` random, each packet's flow is drawn at random.

        `protocol` is udp, syn (TCP segments that open a connection) or ack (segments of open connections). Checksums
        of UDP and TCP are zero, because they would have to follow the addresses. In UDP this means no checksum
        (RFC 768); for TCP the DUT must be told not to verify it.
        """
        transport = {
            "udp": UDP(sport=FIRST_PORT, dport=5000, chksum=0),
            "syn": TCP(sport=FIRST_PORT, dport=5000, flags="S", chksum=0),
            "ack": TCP(sport=FIRST_PORT, dport=5000, flags="A", seq=1, ack=1, chksum=0),
        }[protocol]
        headers = Ether() / IP(src=first, dst=destination) / transport
        packet = headers / bytes(size - FCS - len(headers))
        layer = "UDP" if protocol == "udp" else "TCP"
        last, last_port = str(IPv4Address(first) + hosts - 1), FIRST_PORT + ports - 1
        if order == "random":
            flow = [
                STLVmFlowVar(name="flow.ip", min_value=first, max_value=last, size=4, op="random"),
                STLVmFlowVar(name="flow.port", min_value=FIRST_PORT, max_value=last_port, size=2, op="random"),
            ]
        else:
            flow = [
                STLVmTupleGen(
                    name="flow",
                    ip_min=first,
                    ip_max=last,
                    port_min=FIRST_PORT,
                    port_max=last_port,
                    limit_flows=hosts * ports,
                )
            ]
        vm = STLScVmRaw(
            [
                *flow,
                STLVmWrFlowVar(fv_name="flow.ip", pkt_offset="IP.src"),
                STLVmWrFlowVar(fv_name="flow.port", pkt_offset=f"{layer}.sport"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Flows()
