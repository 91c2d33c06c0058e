# SPDX-License-Identifier: GPL-2.0-or-later
"""An open resolver's traffic in both directions: queries from the left, and the answers of a fixed responder."""

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
#: Packets per second for a share of 1 %. Nominal; only the proportions count.
ONE = 100
#: 198.18.0.0, and the resolver.
BASE, RESOLVER = 0xC6120000, "198.19.10.53"
#: Letters of host names.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Names that honest hosts ask for, and names that an attacker makes up.
NAMES, MADE_UP = 1000, 4000
#: Ports from which everybody asks, and bytes on the wire.
PORTS, SHORT, LONG = 64, 128, 1024
#: Networks of the clients, a /24 each, of all that are not the victims'.
NETWORKS = 100


class Resolver:
    """Continuous streams; their shares are in percent, and what is left over is sent by nobody."""

    def get_streams(
        self, direction=0, clients=30, popular=0, lookups=4, abuse=60, made_up=0,
        answers=0, replies=0, signed=0, networks=1, hosts=250, names=1, known="", place=64, draw=1, **kwargs,
    ):  # fmt: skip
        """Clients are spread over a hundred networks; victims fill 198.18.`place`.0/24 and the next.

        clients    queries of 1000 clients for 1000 names, and as many for a popular name as `popular` says
        lookups    queries of the victims, for the same 1000 names
        abuse      queries for `names` other names, as if the victims had sent them
        made_up    the same, each for another made-up name; and as many long answers, which reach the victims
        answers    short answers to clients; `signed`: long ones to others of the same networks; `replies`: short ones
                   to the victims
        hosts      of each of the victims' networks
        known      the abused name's four letters, in place of drawn ones
        draw       draws the abused names, the ports, the clients' networks, their hosts and the order of all hosts
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        words = shuffled(chance, [first + second for first in LETTERS for second in LETTERS])
        ports = shuffled(chance, list(range(1024, 65536)))[:PORTS]
        nets = range(place, place + networks)
        victims = [256 * net + host for net in nets for host in range(1, hosts + 1)]
        far = shuffled(chance, [net for net in range(1, 256) if net not in nets])
        # Drawn apart, so that nothing else depends on how many hosts a network has.
        aside = random.Random(-draw)
        inside = [shuffled(aside, list(range(1, 251))) for _ in range(NETWORKS)]
        many, others = (
            [256 * far[n % NETWORKS] + inside[n % NETWORKS][first + n // NETWORKS] for n in range(1000)]
            for first in (0, 10)
        )
        asked = [f"{words[n % 26]}{words[26 + n // 26]}" for n in range(NAMES)]
        invented = [f"{words[110 + n % 70]}{words[200 + n // 70]}" for n in range(MADE_UP)]
        abused = [known] if known else [f"{words[300 + n]}{words[400 + n]}" for n in range(names)]
        plan = [
            ("clients", clients, query("site", asked), many, "source"),
            ("popular", popular, query("site", [words[500] + words[501]]), many, "source"),
            ("lookups", lookups, query("site", asked), victims, "source"),
            ("abuse", abuse, query("site", abused), victims, "source"),
            ("made-up", made_up, query("site", invented), victims, "source"),
            ("answers", answers, answer(asked, SHORT), many, "destination"),
            ("replies", replies, answer(asked, SHORT), victims, "destination"),
            ("signed", signed, answer(asked, LONG), others, "destination"),
            ("reflected", made_up, answer(invented, LONG), victims, "destination"),
        ]
        # Hosts and ports in an order of its own for each stream: forged and honest queries come from the same ports.
        return [
            stream(name, share, message, shuffled(chance, group), shuffled(chance, ports), side)
            for name, share, message, group, side in plan
            if share
        ]


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def query(prefix, names):
    """A DNS message that asks for an address, and the names that take turns in it. The size is in bytes on the wire."""
    return "0100", prefix, names, SHORT


def answer(names, size):
    """A DNS message that answers such a query, filled to the size."""
    return "8180", "site", names, size


def stream(name, share, message, hosts, ports, side):
    """A continuous stream. Hosts, ports and names take turns, each in a period of its own."""
    flags, prefix, names, size = message
    ends = (RESOLVER, "198.18.64.1") if side == "destination" else ("198.18.64.1", RESOLVER)
    here = {"sport": 53, "dport": 1024} if side == "destination" else {"sport": 1024, "dport": 53}
    # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
    headers = Ether() / IP(src=ends[0], dst=ends[1]) / UDP(**here, chksum=0)
    question = b"\x08" + prefix.encode() + names[0].encode() + b"\x07example\0" + bytes.fromhex("00010001")
    payload = bytes.fromhex(f"5d3f{flags}0001000000000001") + question + bytes.fromhex("0000291000000000000000")
    letters = len(headers) + 12 + 1 + len(prefix)
    host = "IP.dst" if side == "destination" else "IP.src"
    port = "UDP.dport" if side == "destination" else "UDP.sport"
    vm = [
        STLVmFlowVar(name="host", value_list=[BASE + number for number in hosts], size=4, op="inc"),
        STLVmWrFlowVar(fv_name="host", pkt_offset=host),
        STLVmFlowVar(name="port", value_list=ports, size=2, op="inc"),
        STLVmWrFlowVar(fv_name="port", pkt_offset=port),
        STLVmFlowVar(name="name", value_list=[int.from_bytes(n.encode(), "big") for n in names], size=4, op="inc"),
        STLVmWrFlowVar(fv_name="name", pkt_offset=letters),
        STLVmFixIpv4(offset="IP"),
    ]
    room = size - FCS - len(headers)
    packet = STLPktBuilder(pkt=headers / payload.ljust(room, b"\0"), vm=STLScVmRaw(vm))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=share * ONE))


def register():
    return Resolver()
