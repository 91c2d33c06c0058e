# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises, one scene each: packets to block, their neighbours, and a legitimate network.

Packets of the three classes differ only in source address and destination port, and all go to the same hosts, so a
ruleset can tell them apart by nothing else. The sink uses these two fields as well (lab.yml, `classes`).
"""

import math
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
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
SIZE = 128  # bytes on the wire, FCS included
#: Packets per second of all streams together. Nominal; only the proportions count.
TOTAL_PPS = 10_000
STRIDE = 389  # prime, so that it reaches every flow of a list
#: Each packet goes to a drawn host. A packet to the same host as the one before would use its route, and a drop after
#: routing would look cheap.
DESTINATIONS = 50
#: Packets of a stream before it repeats, at least: with fewer, a flow's port or source would tell where it goes.
PERIOD = 800
WEB = 443
#: One packet of twenty is a neighbour's, and a light load has about 8000 packets: it reaches this many flows.
NEIGHBOUR_FLOWS = 400
#: Addresses of hosts on no list, all over 198.18.0.0/16. 157 and 2 ** 16 are coprime, so all of them differ.
FIRST_STRANGER = int(IPv4Address("198.18.0.0"))
STRANGERS = [FIRST_STRANGER + 157 * place % 2**16 for place in range(1, 2**16)]


def hosts(first, count, step):
    """`count` addresses that begin with `first` and are `step` apart."""
    return [int(IPv4Address(first)) + step * place for place in range(count)]


def strangers(chance, count, known):
    """`count` drawn addresses that are neither `known` nor in the legitimate network."""
    taken, found = {*known, *legitimate()}, []
    while len(found) < count:
        address = STRANGERS[below(chance, len(STRANGERS))]
        if address not in taken:
            taken.add(address)
            found.append(address)
    return found


def below(chance, number):
    """A whole number below this one. random() is the one function that no version of Python changes."""
    return int(number * chance.random())


def legitimate():
    return hosts("198.18.10.1", 50, 1)


def anybody(chance, known):
    """Sixty to whom a port is closed as well: strangers, and some of the legitimate network."""
    return strangers(chance, 50, known) + legitimate()[::5]


def some_ports(chance):
    """Where hosts go who are blocked at every port, and their neighbours: to ports that are open to others."""
    return [WEB, 4000 + below(chance, 61536), 4000 + below(chance, 61536)]


def scanned(rules):
    """Fifteen ports for each of `rules` rules, similar to S3's, but no two are consecutive."""
    return [100 * hundred + 3 * rule for rule in range(1, rules + 1) for hundred in range(1, 16)]


def beside(ports):
    """Open ports: the one after each closed port, some well-known ones, and some of all others."""
    closed = set(ports)
    between = [port for port in range(1, max(ports) + 200, 17) if port not in closed]
    return list(dict.fromkeys([*(port + 1 for port in ports), 22, 53, 80, 5201, 8080, 33000, 65535, *between]))


def pair_port(place):
    """The port that belongs to an address in a list of pairs, as in S3."""
    return place % 10 + 1


def spread(flows, count):
    """`count` of these flows, spread evenly from the first to the last."""
    return [flows[place * len(flows) // count] for place in range(count)]


def paired(sources, ports, count):
    """`count` flows; sources and ports follow in turn."""
    return [(sources[place % len(sources)], ports[place % len(ports)]) for place in range(count)]


#: By name: a function that returns (flows to block, neighbouring flows that must pass, a part of which it draws). A
#: flow is a pair of source address and destination port.
SCENES = {}


def scene(function):
    SCENES[function.__name__] = function
    return function


@scene
def few(chance, first, count, step):
    """A few attackers at any port. The neighbours have addresses around theirs, and those that a longer list has."""
    sources, anywhere = hosts(first, count, step), [80, *some_ports(chance)]
    around = sorted({source + way for source in sources for way in range(-6, 7)} - set(sources))
    around += [sources[-1] + step * (1 + place + below(chance, 29)) for place in range(0, 290, 29)]
    flows = [(source, port) for port in anywhere for source in sources]
    return flows, paired(around + strangers(chance, NEIGHBOUR_FLOWS - len(around), sources), anywhere, NEIGHBOUR_FLOWS)


@scene
def pairs(chance, first, count, step):
    """Each host at its one forbidden port. The neighbours are the same hosts at the forbidden ports of others."""
    sources = hosts(first, count, step)
    blocked = [(source, pair_port(place)) for place, source in enumerate(sources)]
    others = [(source, pair_port(place + 1)) for place, source in enumerate(sources)]
    web = [(source, WEB) for source in sources]
    elsewhere = paired(strangers(chance, 50, sources), [pair_port(place) for place in range(10)], 50)
    return blocked, spread(others, 300) + spread(web, 50) + elsewhere


@scene
def chains(chance, first, count, step):
    """Customers at the port that their own chain forbids, and all hosts at telnet's port, which is closed to all."""
    sources = hosts(first, count, step)
    unknown = strangers(chance, 60, sources)
    own = [(source, 2000 + place) for place, source in enumerate(sources)]
    blocked = own + [(source, 23) for source in sources + unknown[:50] + legitimate()[::5]]
    others = [(source, 2001 + place) for place, source in enumerate(sources)]
    return blocked, others + spread([(s, WEB) for s in sources], 140) + paired(unknown, range(2000, 2200), 60)


@scene
def prefixes(chance, first, count, step):
    """Attackers in pairs, each a /31. The neighbours have the addresses just before and after a pair.

    Each play leaves out six addresses in ten, since a light load has fewer packets than the list has addresses.
    """
    starts, anywhere, out = twos(first, count, step), some_ports(chance), below(chance, 10)
    pairs = [source + second for second in (0, 1) for source in starts]
    visited = [source for place, source in enumerate(pairs) if (place + out) % 10 > 5]
    blocked = paired(visited, anywhere, len(visited))
    listed = set(pairs)
    around = [source + way for source in starts for way in (-1, 2, 3) if source + way not in listed]
    beyond = spread(around, 360) + strangers(chance, 40, {*listed, *around})
    return blocked, paired(beyond, anywhere, len(beyond))


def twos(first, count, step):
    """First addresses of the pairs: about `step` apart, but too irregular for a mask to match."""
    return [source + 2 * (place * place // 7 % 3) for place, source in enumerate(hosts(first, count, step))]


@scene
def exceptions(chance, first, count, step):
    """Half are blocked hosts, half are strangers and partners at ports that are closed to them.

    The neighbours are partners at the port that is open to them, and all hosts at ports that no rule closes.
    """
    sources = hosts(first, 3 * count, step)
    bad, others, partners = sources[:count], sources[count : 2 * count], sources[2 * count :]
    closed = [3000 + place for place in range(count)]
    foreign = [(source, 3000 + (place + 1 + below(chance, count - 1)) % count) for place, source in enumerate(partners)]
    visits = list(zip(spread(others, count - 60) + anybody(chance, sources), closed, strict=True))
    blocked = paired(bad, some_ports(chance), 2 * count) + visits + foreign
    open_to_all = paired(partners + others + strangers(chance, 50, sources), [WEB, 2999, 3000 + count, 80], 300)
    return blocked, list(zip(partners, closed, strict=True)) + open_to_all


@scene
def mixed(chance, first, count, step):
    """Six parts from a blacklist, one of scans, one of pairs. The neighbours are next to all three."""
    sources = hosts(first, 2 * count, step)
    listed, others = sources[:count], sources[count:]
    hosts_of_pairs, scanners = others[: count // 2], others[count // 2 :]
    bad_pairs = [(source, pair_port(place)) for place, source in enumerate(hosts_of_pairs)]
    scans = list(zip(scanners[:-60] + anybody(chance, sources), scanned(20) * 2, strict=False))
    anywhere = some_ports(chance)
    blocked = [(source, port) for port in anywhere for source in listed] + bad_pairs + scans
    right_beside = paired([source + 1 + below(chance, step - 1) for source in spread(listed, 100)], anywhere, 100)
    wrong_pairs = [(source, pair_port(place + 1)) for place, source in enumerate(hosts_of_pairs)]
    open_ports = paired(scanners, beside(scanned(20)), 150)
    return blocked, right_beside + spread(wrong_pairs, 150) + open_ports


class Mix:
    """Three continuous streams, named after the classes that the sink counts."""

    def get_streams(
        self,
        direction=0,
        scene="few",
        first="198.18.64.1",
        count=600,
        step=13,
        blocked_percent=90,
        neighbours_percent=5,
        draw=1,
        **kwargs,
    ):
        """`blocked_percent` of the packets must be blocked, `neighbours_percent` are neighbours, the rest legitimate.

        `scene` is one of SCENES. It has `count` addresses (or customers, or prefixes) that begin with `first` and are
        `step` apart. `draw` draws a part of the neighbours, and the destinations.
        """
        chance = random.Random(draw)
        blocked, neighbours = SCENES[scene](chance, first, count, step)
        legitimate_percent = 100 - blocked_percent - neighbours_percent
        return [
            stream(chance, "blocked", blocked, blocked_percent),
            stream(chance, "neighbours", neighbours, neighbours_percent),
            stream(chance, "legitimate", [(source, WEB) for source in legitimate()], legitimate_percent),
        ]


def stream(chance, name, flows, percent):
    """A continuous stream of segments, one flow after the other.

    It visits them in strides of a prime number of flows. Flows at the end of a list of rules cost more, and every part
    of the traffic should have its share of both ends.
    """
    visited = [flows[turn * STRIDE % len(flows)] for turn in range(len(flows) * math.ceil(PERIOD / len(flows)))]
    reached = [int(IPv4Address("198.19.10.1")) + below(chance, DESTINATIONS) for _ in visited]
    # All packets have the same TCP checksum. The firewall does not verify it, and a correct one would mark the flow.
    headers = Ether() / IP(src="198.18.0.1", dst="198.19.10.1") / TCP(sport=1025, dport=WEB, flags="A")
    packet = headers / bytes(SIZE - FCS - len(headers))
    vm = STLScVmRaw(
        [
            STLVmFlowVar(name="source", value_list=[source for source, _ in visited], size=4, op="inc"),
            STLVmFlowVar(name="port", value_list=[port for _, port in visited], size=2, op="inc"),
            STLVmFlowVar(name="destination", value_list=reached, size=4, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmWrFlowVar(fv_name="destination", pkt_offset="IP.dst"),
            STLVmWrFlowVar(fv_name="port", pkt_offset="TCP.dport"),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    mode = STLTXCont(pps=TOTAL_PPS * percent / 100)
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def register():
    return Mix()
