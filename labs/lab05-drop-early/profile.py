# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases: UDP packets from the one address that the rulesets drop."""

from trex_stl_lib.api import IP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4


class Flood:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(self, direction=0, source="198.18.64.1", destination="198.19.10.1", size=128, **kwargs):
        """`size` bytes on the wire, FCS included; S1 sent frames of 128 bytes."""
        headers = Ether() / IP(src=source, dst=destination) / UDP(sport=1025, dport=5000, chksum=0)
        packet = headers / bytes(size - FCS - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=10_000))]


def register():
    return Flood()
