# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP packets to be forwarded: of any size, in one flow or many, over IPv4 or IPv6."""

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

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4
#: Flows of one stream: as many destinations as 198.19.128.0/17 has. Where more are asked for, the next stream has
#: the same addresses and another source port.
MOST = 1 << 15


class Udp:
    """Continuous streams. The rate is nominal: capacity is measured flat out."""

    def get_streams(self, direction=0, size=64, flows=256, version=4, checksum=0, **kwargs):
        """`flows` pairs of addresses, a power of two; `size` bytes on the wire, FCS included.

        checksum  1: UDP's checksum is there and right; 0: the sender leaves it out (RFC 768 allows it)
        """
        streams = max(1, flows // MOST)
        each = flows // streams
        # Each begins elsewhere: two packets in a row to one address would be cheaper than others.
        return [stream(size, each, version, checksum, 1025 + n, each // streams * n) for n in range(streams)]


def stream(size, flows, version, checksum, sport, first):
    """One stream of `flows` flows, beginning with number `first`.

    While the destination counts up, the source counts down by as much. So the sum over the packet stays what it
    was, and one checksum is right for all.
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
