# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases: UDP packets from one address, which is the one that the rulesets drop."""

from trex_stl_lib.api import IP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4


class Flood:
    """One continuous stream. The rate is nominal: capacity is measured flat out."""

    def get_streams(self, direction=0, source="198.18.64.1", destination="198.19.10.1", size=128, **kwargs):
        """`size` bytes on the wire, FCS included; 128 is what S1 sent."""
        headers = Ether() / IP(src=source, dst=destination) / UDP(sport=1025, dport=5000, chksum=0)
        packet = headers / bytes(size - FCS - len(headers))
        return [STLStream(packet=STLPktBuilder(pkt=packet), mode=STLTXCont(pps=10_000))]


def register():
    return Flood()
