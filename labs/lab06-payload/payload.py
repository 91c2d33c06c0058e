# SPDX-License-Identifier: GPL-2.0-or-later
"""The flood of the cases: UDP packets that differ from case to case in their payload."""

import random

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

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: The letters of `text`. No word that the cases look for has one of the last four.
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


class Payload:
    """One continuous stream. Its rate is nominal; capacity is measured flat out."""

    def get_streams(
        self,
        direction=0,
        size=128,
        word="foo.com",
        at=-1,
        text="",
        dport=5000,
        source="198.18.64.1",
        sources=1,
        step=1,
        **kwargs,
    ):
        """`size` is in bytes on the wire, FCS included; S1 sent frames of 128 bytes.

        text     repeated to fill the payload; without it, the payload has letters as chance would have them, the same
                 in each run
        word     written into the payload at byte `at`; at -1 it is not, at -2 it is the last
        sources  addresses from `source` on, `step` apart
        """
        # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
        headers = Ether() / IP(src=source, dst="198.19.10.1") / UDP(sport=1025, dport=dport, chksum=0)
        room = size - FCS - len(headers)
        payload = bytearray(text.encode() * (room // len(text) + 1) if text else letters(room))[:room]
        if at != -1:
            begin = room - len(word) if at == -2 else at
            payload[begin : begin + len(word)] = word.encode()
        if sources == 1:
            return [STLStream(packet=STLPktBuilder(pkt=headers / bytes(payload)), mode=STLTXCont(pps=10_000))]
        first = int.from_bytes(bytes(map(int, source.split("."))), "big")
        # The variable wraps around at the end of its range, which must be a whole number of steps.
        vm = STLScVmRaw(
            [
                STLVmFlowVar(
                    name="source", min_value=first, max_value=first + step * sources - 1, size=4, step=step, op="inc"
                ),
                STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
                STLVmFixIpv4(offset="IP"),
            ]
        )
        return [STLStream(packet=STLPktBuilder(pkt=headers / bytes(payload), vm=vm), mode=STLTXCont(pps=10_000))]


def letters(count):
    """So many letters, each as often as in English, roughly."""
    weights = [26 - place for place in range(26)]
    return "".join(random.Random(6).choices(LETTERS, weights, k=count)).encode()


def register():
    return Payload()
