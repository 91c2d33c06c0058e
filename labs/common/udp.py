# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP packets to forward: of any size, in one flow or many, over IPv4 or IPv6."""

from trex_stl_lib.api import (
    IP,
    UDP,
    Ether,
    IPv6,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Flows of one stream: 198.19.128.0/17 has this many destinations. For more flows, further streams use the same
#: addresses with another source port.
MOST = 1 << 15


class Udp:
    """Continuous streams. Their rate is nominal; capacity is measured flat out."""

    def get_streams(self, direction=0, size=64, flows=256, version=4, checksum=0, **kwargs):
        """`flows` pairs of addresses, a power of two; `size` bytes on the wire, FCS included.

        checksum  1: with a correct UDP checksum; 0: without one (RFC 768 allows it)
        """
        streams = max(1, flows // MOST)
        each = flows // streams
        # Each stream begins at another flow: two consecutive packets to one address would cost less than others.
        return [stream(size, each, version, checksum, 1025 + n, each // streams * n) for n in range(streams)]


def stream(size, flows, version, checksum, sport, first):
    """One stream of `flows` flows that begins with flow number `first`.

    While the destination counts up, the source counts down by as much. So the sum over the packet stays constant, and
    one checksum is correct for all.
    """
    low, high = 0x8000, 0x8000 + flows - 1  # the last 16 bits of the addresses
    if version == 6:
        network = IPv6(src=f"2001:2:0:1200::{high:x}", dst=f"2001:2:0:1300::{low:x}")
        places = {"up": ("IPv6.dst", 14), "down": ("IPv6.src", 14)}
    else:
        network = IP(src=f"198.18.{high >> 8}.{high & 255}", dst="198.19.128.0")
        places = {"up": ("IP.dst", 2), "down": ("IP.src", 2)}
    udp = UDP(sport=sport, dport=5000) if checksum else UDP(sport=sport, dport=5000, chksum=0)
    headers = Ether() / network / udp
    packet = headers / bytes(size - FCS - len(headers))
    mode = STLTXCont(pps=10_000)
    if flows == 1:
        return STLStream(packet=STLPktBuilder(pkt=packet), mode=mode)
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="up", min_value=low, max_value=high, init_value=low + first, size=2, op="inc"),
            STLVmFlowVar(name="down", min_value=low, max_value=high, init_value=high - first, size=2, op="dec"),
            *(STLVmWrFlowVar(name, pkt_offset=field, offset_fixup=by) for name, (field, by) in places.items()),
        ]
    )
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def register():
    return Udp()
