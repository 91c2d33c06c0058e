# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: what has to be blocked, its neighbours, and a legitimate network, scene by scene."""

from ipaddress import IPv4Address

from trex_stl_lib.api import (
    IP,
    TCP,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Ethernet's frame check sequence: on the wire, but never in the bytes that a generator is given.
FCS = 4
SIZE = 128  # bytes on the wire, FCS included
#: Packets per second of all streams together. Nominal: only their proportions count.
TOTAL_PPS = 10_000
STRIDE = 389  # prime, so that it meets every flow of a list
#: Source ports tell the sink, and nobody else, what a packet is.
BLOCKED, NEIGHBOURS, LEGITIMATE = 1025, 1026, 1027
WEB = 443
#: Of the neighbours a hundred are enough to notice who is blocked by mistake, and the frames repeat the sooner.
NEIGHBOUR_FLOWS = 100


def hosts(first, count, step):
    """`count` addresses from `first` on, `step` apart."""
    return [int(IPv4Address(first)) + step * place for place in range(count)]


def scanned(rules):
    """S3's ports: fifteen for each of `rules` rules."""
    return [100 * hundred + rule for rule in range(1, rules + 1) for hundred in range(1, 16)]


def pair_port(place):
    """The port that belongs to an address in a list of pairs, as in S3."""
    return place % 10 + 1


#: Each scene gives (flows to block, flows beside them that must pass); a flow is (source address, destination port).
SCENES = {}


def scene(function):
    SCENES[function.__name__] = function
    return function


@scene
def ports(first, count, step):
    """Scans of 300 ports; the neighbours use other ports of the same hundreds."""
    flows = list(zip(hosts(first, count, step), scanned(20) * (count // 300), strict=True))
    return flows, [(source, port - port % 100 + 50) for source, port in flows]


@scene
def few(first, count, step):
    """A handful of attackers; the neighbours live right beside them."""
    sources = hosts(first, count, step)
    return [(source, WEB) for source in sources], [(source + 1, WEB) for source in sources]


@scene
def pairs(first, count, step):
    """Each host at the one port that it may not reach; the neighbours are the same hosts at the ports of others."""
    sources = hosts(first, count, step)
    blocked = [(source, pair_port(place)) for place, source in enumerate(sources)]
    return blocked, [(source, pair_port(place + 1)) for place, source in enumerate(sources)]


@scene
def chains(first, count, step):
    """Customers at the port that their own chain forbids, and at telnet's, which all are forbidden."""
    sources = hosts(first, count, step)
    own = [(source, 2000 + place) for place, source in enumerate(sources)]
    blocked = own + [(source, 23) for source in sources]
    return blocked, [(source, 2001 + place) for place, source in enumerate(sources)]


@scene
def prefixes(first, count, step):
    """Attackers by twos, each two a /31; the neighbours live in the next /31."""
    sources = hosts(first, count, step)
    blocked = [(source + second, WEB) for second in (0, 1) for source in sources]
    return blocked, [(source + 2, WEB) for source in sources]


@scene
def exceptions(first, count, step):
    """Half are hosts that are blocked, half strangers at ports that are closed; the partners may use a closed port."""
    sources = hosts(first, 3 * count, step)
    closed = [3000 + place for place in range(count)]
    blocked = [(source, WEB) for source in sources[:count]] + list(zip(sources[count : 2 * count], closed, strict=True))
    return blocked, list(zip(sources[2 * count :], closed, strict=True))


@scene
def mixed(first, count, step):
    """Six parts of a blacklist, one of scans, one of pairs; the neighbours are the pairs' hosts at other ports."""
    sources = hosts(first, 2 * count, step)
    listed, others = sources[:count], sources[count:]
    bad_pairs = [(source, pair_port(place)) for place, source in enumerate(others[: count // 2])]
    scans = list(zip(others[count // 2 :], scanned(20) * 2, strict=False))
    blocked = [(source, WEB) for source in 3 * listed] + bad_pairs + scans
    return blocked, [(source, pair_port(place + 1)) for place, source in enumerate(others[: count // 2])]


class Mix:
    """Three continuous streams."""

    def get_streams(
        self, direction=0, scene="ports", first="198.18.64.1", count=600, step=13, blocked_percent=90, **kwargs
    ):
        """`blocked_percent` of the packets have to be blocked; neighbours and legitimate network share the rest.

        `scene` is one of SCENES; it has `count` addresses (or customers, or prefixes) from `first` on, `step` apart.
        """
        blocked, neighbours = SCENES[scene](first, count, step)
        rest = (100 - blocked_percent) / 2
        return [
            stream(blocked, BLOCKED, blocked_percent),
            stream(neighbours[:NEIGHBOUR_FLOWS], NEIGHBOURS, rest),
            stream([(source, WEB) for source in hosts("198.18.10.1", 50, 1)], LEGITIMATE, rest),
        ]


def stream(flows, sport, percent):
    """A continuous stream of segments, one flow after the other.

    In strides of a prime number of flows: a list of rules costs more for those at its end, and any stretch of the
    traffic that the DUT happens to take in should have its share of both ends.
    """
    visited = [flows[turn * STRIDE % len(flows)] for turn in range(len(flows))]
    # The firewall does not look at TCP's checksum, so it does not follow what is written into the headers.
    headers = Ether() / IP(src="198.18.0.1", dst="198.19.10.1") / TCP(sport=sport, dport=WEB, flags="A")
    packet = headers / bytes(SIZE - FCS - len(headers))
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=[source for source, _ in visited], size=4, op="inc"),
            STLVmFlowVar(name="port", value_list=[port for _, port in visited], size=2, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmWrFlowVar(fv_name="port", pkt_offset="TCP.dport"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=TOTAL_PPS * percent / 100))


def register():
    return Mix()
