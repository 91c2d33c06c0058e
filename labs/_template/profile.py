# SPDX-License-Identifier: GPL-2.0-or-later
"""The example's traffic: an attacker and sixteen other hosts, in a proportion that a tunable sets.

A profile is complete in itself: TRex loads the file too, wherever it is copied. So labs do not share code, even where
their streams are alike. Modules in the same folder can be imported.
"""

import random

from trex_stl_lib.api import IP, UDP, Ether, STLPktBuilder, STLStream, STLTXCont


class Example:
    """Continuous streams, one for each host. The rates are nominal; only their proportion counts.

    Only the source addresses of their packets differ. If ports or checksums differed too, a rule that matches these
    would pass without naming an address. Whatever a ruleset need not name is drawn, or a list of it would pass, too.
    """

    def get_streams(self, direction=0, attack_percent=90, draw=1, **kwargs):
        """`attack_percent` of the packets come from 198.18.20.66, the others from hosts that `draw` draws.

        Frames have 64 bytes on the wire, FCS included.
        """
        # random() is the one function that no version of Python changes.
        chance = random.Random(draw)
        others = [f"198.18.{30 + turn}.{1 + int(254 * chance.random())}" for turn in range(16)]
        shares = {"198.18.20.66": attack_percent, **dict.fromkeys(others, (100 - attack_percent) / 16)}
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
