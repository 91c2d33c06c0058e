# SPDX-License-Identifier: GPL-2.0-or-later
"""The example's traffic: an attacker and one other host, in a proportion that can be tuned."""

from trex_stl_lib.api import IP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont


class Example:
    """Two continuous streams. The rates are nominal: only their proportion counts.

    Their packets differ in the source address alone. Had they ports of their own, or a checksum, a rule about those
    would pass that names no address.
    """

    def get_streams(self, direction=0, attack_percent=90, **kwargs):
        """`attack_percent` of the packets come from 198.18.20.66; 64 bytes on the wire with the FCS."""
        shares = {"198.18.20.66": attack_percent, "198.18.10.1": 100 - attack_percent}
        return [
            STLStream(
                packet=STLPktBuilder(
                    pkt=Ether() / IP(src=source, dst="198.19.10.1") / UDP(dport=5000, chksum=0) / bytes(18)
                ),
                mode=STLTXCont(pps=100 * share),
            )
            for source, share in shares.items()
        ]


def register():
    return Example()
