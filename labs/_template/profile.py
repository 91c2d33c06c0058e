# SPDX-License-Identifier: GPL-2.0-or-later
"""The example's traffic: an attacker and one other host, in a proportion that a tunable sets.

A profile is complete in itself: TRex loads the file too, wherever it is copied. So labs do not share code, even where
their streams are alike. Modules in the same folder can be imported.
"""

from trex_stl_lib.api import IP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont


class Example:
    """Two continuous streams. The rates are nominal; only their proportion counts.

    Only the source addresses of their packets differ. If ports or checksums differed too, a rule that matches these
    would pass without naming an address.
    """

    def get_streams(self, direction=0, attack_percent=90, **kwargs):
        """`attack_percent` of the packets come from 198.18.20.66. Frames have 64 bytes on the wire, FCS included."""
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
