# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the cases: packets in one direction, of as many flows as asked for."""

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
    STLVmTupleGen,
    STLVmWrFlowVar,
)

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4
FIRST_PORT = 1025


class Flows:
    """One continuous stream. The rate is nominal: capacity is measured flat out."""

    def get_streams(
        self,
        direction=0,
        first="198.18.64.1",
        hosts=250,
        ports=4,
        protocol="udp",
        size=128,
        **kwargs,
    ):
        """`hosts` x `ports` flows from `hosts` addresses, from `first` on; `size` bytes on the wire, FCS included.

        The address changes with each packet, the port once all addresses had their turn: after hosts x ports packets
        the first flow comes again. `protocol` is udp, syn (TCP segments that open a connection) or ack (segments of
        connections that are open). Checksums of UDP and TCP are zero, for they would have to follow the addresses:
        to UDP this says that there is none (RFC 768), for TCP the DUT must be told not to look.
        """
        transport = {
            "udp": UDP(sport=FIRST_PORT, dport=5000, chksum=0),
            "syn": TCP(sport=FIRST_PORT, dport=5000, flags="S", chksum=0),
            "ack": TCP(sport=FIRST_PORT, dport=5000, flags="A", seq=1, ack=1, chksum=0),
        }[protocol]
        headers = Ether() / IP(src=first, dst="198.19.10.1") / transport
        packet = headers / bytes(size - FCS - len(headers))
        layer = "UDP" if protocol == "udp" else "TCP"
        vm = STLScVmRaw(
            [
                STLVmTupleGen(
                    name="flow",
                    ip_min=first,
                    ip_max=str(IPv4Address(first) + hosts - 1),
                    port_min=FIRST_PORT,
                    port_max=FIRST_PORT + ports - 1,
                    limit_flows=hosts * ports,
                ),
                STLVmWrFlowVar(fv_name="flow.ip", pkt_offset="IP.src"),
                STLVmWrFlowVar(fv_name="flow.port", pkt_offset=f"{layer}.sport"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=10_000))]


def register():
    return Flows()
