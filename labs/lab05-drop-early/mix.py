# SPDX-License-Identifier: GPL-2.0-or-later
"""An attack, and the traffic that should survive it: a legitimate network, and bystanders between the attackers."""

import random
from ipaddress import IPv4Address

from scapy.layers.inet import ICMP
from trex_stl_lib.api import (
    IP,
    TCP,
    UDP,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixChecksumHw,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Packets per second for a load of 1. Nominal; only the proportions count.
ONE = 10_000
#: The host and the port that everybody means, and to which ports other packets always go, too.
TARGET, PORT = "198.19.10.1", 5000
DOORS = {UDP: (PORT - 1, PORT + 1, 53), TCP: (PORT, 22, 80)}
#: Prefixes that are on a blacklist, and the host of each that is not.
PREFIXED, PREFIXES, EXCEPTED = int(IPv4Address("198.18.128.0")), 10, 7


class Mix:
    """Continuous streams. But for `others`, their packets differ only in the source address: a ruleset can tell them
    apart by nothing else, and the sink counts them by it. Loads are multiples of the same unit."""

    def get_streams(
        self,
        direction=0,
        attack=1,
        beside=0.1,
        bystanders=0,
        prefixed=0,
        excepted=0,
        others=0,
        firewall=False,
        attacker="198.18.64.1",
        attackers=1000,
        step=13,
        target=TARGET,
        targets=1,
        size=128,
        draw=1,
        **kwargs,
    ):
        """`attack` is the load of `attackers` addresses, `step` apart, against `target`; `beside` that of 200 hosts of
        198.18.10.0/24. With several `targets`, the packets to PORT go to that many hosts in turn, `target` being the
        first.

        `bystanders` is the load of hosts that are on no list: the addresses next to every fifth attacker's, of which
        `draw` moves every fourth to another before the next attacker's, hosts next to the lists and elsewhere, and
        hosts that a longer list, or one with prefixes, would have.
        `prefixed` is that of attackers in ten prefixes, 198.18.128.0/24 and the following, and `excepted` that of one
        host in each of them.

        `others` is the load of UDP packets to other ports and hosts, of TCP and of ICMP, from attackers; and the same
        of UDP and TCP from bystanders. With `firewall`, the latter are strangers, to a firewall that lets in nothing
        but UDP to one port: with ICMP, and from addresses of their own. `size` is in bytes on the wire, FCS included.
        """
        first = int(IPv4Address(attacker))
        listed = spaced(attacker, attackers, step)
        nearby = moved(draw, spaced(str(IPv4Address(first + 1)), attackers // 5, 5 * step), step)
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(-draw)
        away = elsewhere(chance, listed, step, attackers // 10, bool(prefixed)) if bystanders else []
        strangers = away[attackers // 20 :]
        away = away[: attackers // 20]
        inside = within_prefixes(chance, 640) if prefixed else []
        groups = [
            ("legitimate", spaced("198.18.10.1", 200, 1), beside, TARGET),
            ("attack", listed, attack, target),
            ("bystanders 1", nearby + away, bystanders, TARGET),
            ("prefixed", inside, prefixed, TARGET),
            ("excepted", [PREFIXED + EXCEPTED + 256 * turn for turn in range(PREFIXES)], excepted, TARGET),
        ]
        streams = [stream(name, hosts, load, size, spaced(to, targets, 1)) for name, hosts, load, to in groups if load]
        if others:
            streams += different(chance, "attack", (UDP, TCP, ICMP), listed + inside, others, size)
            if firewall:
                streams += different(chance, "strangers", (UDP, TCP, ICMP), strangers, others, size)
            else:
                streams += different(chance, "bystanders", (UDP, TCP), nearby + away, others, size)
        return streams


def elsewhere(chance, listed, step, count, prefixed):
    """Hosts next to the lists, further away, and where a longer list has hosts or prefixes. None of them is listed."""
    first, last, behind = listed[0], listed[-1], PREFIXED + 256 * PREFIXES
    far = [*range(last + 1, PREFIXED), *range(behind, behind + 100 * 256)]
    places = [far, range(last + step, PREFIXED, step), far if prefixed else range(PREFIXED, behind)]
    return [first - 1, last + 1, PREFIXED - 1, behind, *(one_of(places[n % 3], chance) for n in range(count - 4))]


def within_prefixes(chance, count):
    """Hosts of the prefixes, with the first and the last one, and those next to the exceptions."""
    first = [PREFIXED, PREFIXED + 256 * PREFIXES - 1]
    first += [PREFIXED + 256 * turn + EXCEPTED + side for turn in range(PREFIXES) for side in (-1, 1)]
    rest = [host for host in range(PREFIXED, PREFIXED + 256 * PREFIXES) if host % 256 != EXCEPTED and host not in first]
    return first + [host for _, host in sorted((chance.random(), host) for host in rest)][: count - len(first)]


def one_of(values, chance):
    return values[int(len(values) * chance.random())]


def different(chance, name, kinds, hosts, load, size):
    """Streams of these protocols from some of the hosts, to other ports and to any host behind the DUT."""
    streams = []
    for kind in kinds:
        rows = []
        for turn in range(32):
            doors = DOORS.get(kind, ())
            port = doors[turn] if turn < len(doors) else one_of(range(1, 1024 if turn % 2 else 65536), chance)
            behind = int(IPv4Address(TARGET)) + int(253 * chance.random()) * (turn % 4 > 1)
            rows.append(
                (one_of(hosts, chance), behind, one_of(range(1, 65536), chance), port + (port == PORT and kind is UDP))
            )
        streams.append(rowed(f"{name} {kind.__name__}", kind, rows, load / len(kinds), size))
    return streams


def rowed(name, kind, rows, load, size):
    """A stream of these sources, destinations and, but for ICMP, ports in turn."""
    transport = {UDP: UDP(chksum=0), TCP: TCP(flags="S"), ICMP: ICMP()}[kind]
    headers = Ether() / IP(src="198.18.0.9", dst=TARGET) / transport
    program = []
    for column, place in enumerate(("IP.src", "IP.dst", "sport", "dport")[: 2 if kind is ICMP else 4]):
        program += field(place if column < 2 else f"{kind.__name__}.{place}", [row[column] for row in rows])
    fix = STLVmFixChecksumHw(l3_offset="IP", l4_offset="TCP", l4_type=13) if kind is TCP else STLVmFixIpv4(offset="IP")
    packet = STLPktBuilder(pkt=headers / bytes(size - FCS - len(headers)), vm=STLScVmRaw([*program, fix]))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=load * ONE))


def field(place, values):
    """A field that takes these values in turn."""
    return [
        STLVmFlowVar(name=place, value_list=values, size=4 if place.startswith("IP.") else 2, op="inc"),
        STLVmWrFlowVar(fv_name=place, pkt_offset=place),
    ]


def spaced(first, count, step):
    """`count` addresses from `first` on, `step` apart."""
    return [int(IPv4Address(first)) + step * turn for turn in range(count)]


def moved(draw, hosts, step):
    """These hosts, every fourth of them at another place before the next of the attackers, who are `step` apart."""
    # The generator must not depend on the version of Python: random() is the one function that never changes.
    chance = random.Random(draw)
    return [host + int((step - 1) * chance.random()) * (turn % 4 == 3) for turn, host in enumerate(hosts)]


def stream(name, sources, load, size, targets):
    """A continuous stream from these addresses to the targets in turn."""
    # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
    headers = Ether() / IP(src="198.18.0.9", dst=str(IPv4Address(targets[0]))) / UDP(sport=1025, dport=PORT, chksum=0)
    packet = headers / bytes(size - FCS - len(headers))
    stride = strides(len(sources))
    # Not in order: sources at the end of a list of rules cost more, and every part of the traffic should have its
    # share of both ends.
    visited = [sources[turn * stride % len(sources)] for turn in range(len(sources))]
    program = [*field("IP.src", visited), *(field("IP.dst", targets) if len(targets) > 1 else [])]
    vm = STLScVmRaw([*program, STLVmFixIpv4(offset="IP")])
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=load * ONE))


def strides(sources):
    """A stride of about 0.4 `sources` that reaches each of them before it returns to the first."""
    step = max(1, round(0.39 * sources))
    while any(step % factor == 0 and sources % factor == 0 for factor in range(2, step + 1)):
        step += 1
    return step


def register():
    return Mix()
