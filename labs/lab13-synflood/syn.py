# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP segments that open connections, from clients, from bots and from forged sources; or forged acknowledgements."""

import random
from ipaddress import IPv4Address

from trex_stl_lib.api import (
    IP,
    TCP,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixChecksumHw,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Packets per second for a share of 1 %. Nominal; only the proportions count.
ONE = 100
#: Where clients and bots live, and all that sources are forged from: a /18, and a /16 without its first and its last
#: /24. Addresses of a network that are hosts.
HOMES, HOME, ALL, NETWORKS, HOSTS = int(IPv4Address("198.18.64.0")), 64, int(IPv4Address("198.18.0.0")), 256, 254
#: Clients, and addresses of the forged, until a stream repeats itself; and values that change with each packet.
CLIENTS, FORGED, TURNS = 1600, 16_000, 3989
#: A client's SYN on Linux, and an acknowledgement: the window, and where the time stamp is in the frame.
SYN = ("S", 64240, [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (0, 0)), ("NOP", None), ("WScale", 7)], 62)
ACK = ("A", 502, [("NOP", None), ("NOP", None), ("Timestamp", (0, 0))], 58)
TCP_CHECKSUM = 13


class Syn:
    """Continuous streams; their shares are in percent. They differ in the source address alone."""

    def get_streams(
        self, direction=0, clients=0, bots=0, forged=100, count=40, acks=0, turns=TURNS, server="198.19.32.1",
        servers=14, port=80, spared="198.18.0.0", draw=1, **kwargs,
    ):  # fmt: skip
        """SYNs to `servers` servers from `server` on: the share of clients, that of `count` bots in the same networks,
        and the share whose source is forged, anywhere but in the /24 `spared`.

        acks   1: what is forged are not SYNs but acknowledgements
        turns  different ports and sequence numbers of a stream
        draw   draws hosts, ports, sequence numbers and time stamps
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        homes = shuffled(chance, [HOMES + 256 * net + host for net in range(HOME) for host in range(1, 1 + HOSTS)])
        own = int(IPv4Address(spared)) - ALL >> 8
        nets = [net for net in range(1, NETWORKS - 1) if net != own]
        lies = [ALL + 256 * one_of(nets, chance) + 1 + int(HOSTS * chance.random()) for _ in range(FORGED)]
        known = set(homes[: CLIENTS + count])
        groups = [
            ("clients", clients, homes[:CLIENTS], SYN),
            ("bots", bots, homes[CLIENTS : CLIENTS + count], SYN),
            ("forged", forged, [lie for lie in lies if not clients or lie not in known], ACK if acks else SYN),
        ]
        far = [int(IPv4Address(server)) + n for n in range(servers)]
        return [
            stream(chance, name, share, hosts, far, port, turns, segment)
            for name, share, hosts, segment in groups
            if share
        ]


def one_of(values, chance):
    return values[int(len(values) * chance.random())]


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def stream(chance, name, share, hosts, far, port, turns, segment):
    """A continuous stream of segments from these hosts, in turn, to a drawn server each."""
    flags, window, options, stamp = segment

    def drawn(values):
        return [int(values * chance.random()) for _ in range(turns)]

    fields = {
        "source": (4, hosts, "IP.src"),
        "target": (4, [one_of(far, chance) for _ in range(turns)], "IP.dst"),
        "sport": (2, [1024 + value for value in drawn(64512)], "TCP.sport"),
        "seq": (4, drawn(1 << 32), "TCP.seq"),
        "ack": (4, drawn(1 << 32) if flags == "A" else [0], "TCP.ack"),
        "time": (4, drawn(1 << 31), stamp),
        "echo": (4, drawn(1 << 31) if flags == "A" else [0], stamp + 4),
    }
    program = []
    for field, (size, values, place) in fields.items():
        program += [
            STLVmFlowVar(name=field, value_list=values, size=size, op="inc"),
            STLVmWrFlowVar(fv_name=field, pkt_offset=place),
        ]
    headers = Ether() / IP(src="198.18.0.9", dst="198.19.32.1", flags="DF")
    headers /= TCP(sport=1025, dport=port, flags=flags, window=window, options=options)
    fix = STLVmFixChecksumHw(l3_offset="IP", l4_offset="TCP", l4_type=TCP_CHECKSUM)
    packet = STLPktBuilder(pkt=headers, vm=STLScVmRaw([*program, fix]))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=share * ONE))


def register():
    return Syn()
