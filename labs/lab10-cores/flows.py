# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP flows that differ in their source address alone, or in their source port alone."""

from ipaddress import IPv4Address
from struct import pack

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
#: Packets per second of one flow. Nominal; only the proportions count.
PPS = 100
DESTINATION, SOURCE_PORT, DESTINATION_PORT = "198.19.10.1", 1025, 5000


class Flows:
    """Continuous streams in which all flows send at the same rate, in turn."""

    def get_streams(
        self,
        direction=0,
        flows=256,
        first="198.18.128.1",
        step=1,
        then="",
        ports=0,
        queue=-1,
        queues=10,
        entries=128,
        key="",
        size=64,
        **kwargs,
    ):
        """`flows` sources from `first` on, `step` apart; `size` bytes on the wire, FCS included.

        then   after all of them as many others follow, from this address on
        ports  in place of sources: so many source ports of one address, from `first_port` 2000 on
        queue  two streams: `chosen` has the flows that RSS puts into this queue, `others` all the others. RSS has
               `queues` queues, a table of `entries` entries, and `key`, in hexadecimal
        """
        if ports:
            return [stream(range(2000, 2000 + ports), size, port=True, source=first)]
        sources = [int(IPv4Address(first)) + step * turn for turn in range(flows)]
        if then:
            sources += [int(IPv4Address(then)) + step * turn for turn in range(flows)]
        if queue < 0:
            return [stream(sources, size)]
        chosen = [source for source in sources if rss(source, bytes.fromhex(key), queues, entries) == queue]
        others = [source for source in sources if source not in chosen]
        return [stream(chosen, size, name="chosen"), stream(others, size, name="others")]


def toeplitz(key, data):
    """The Toeplitz hash of `data`: for each bit that is set, the 32 bits of the key that begin at its place."""
    whole, found = int.from_bytes(key, "big"), 0
    for place in range(8 * len(data)):
        if data[place // 8] >> (7 - place % 8) & 1:
            found ^= whole >> (8 * len(key) - 32 - place) & 0xFFFFFFFF
    return found


def rss(source, key, queues, entries):
    """The queue of a flow, by its addresses and ports, as a NIC with the usual table chooses it."""
    flow = pack(">I", source) + IPv4Address(DESTINATION).packed + pack(">HH", SOURCE_PORT, DESTINATION_PORT)
    return toeplitz(key, flow) % entries % queues


def stream(values, size, *, name=None, port=False, source="198.18.128.1"):
    """A continuous stream with these source addresses, or source ports, one after the other."""
    # No UDP checksum (RFC 768 allows it): it would have to follow the address or port.
    headers = Ether() / IP(src=source, dst=DESTINATION) / UDP(sport=SOURCE_PORT, dport=DESTINATION_PORT, chksum=0)
    packet = headers / bytes(size - FCS - len(headers))
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="flow", value_list=list(values), size=2 if port else 4, op="inc"),
            STLVmWrFlowVar(fv_name="flow", pkt_offset="UDP.sport" if port else "IP.src"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=PPS * len(list(values))))


def register():
    return Flows()
