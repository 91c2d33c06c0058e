# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises, one scene each: packets to block, their neighbours, and a legitimate network.

All are UDP packets of one length, but for one scene to one host. The three classes differ only in source address and
destination port, and in that scene in the destination.
"""

import random
from ipaddress import IPv4Address

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
SIZE = 128  # bytes on the wire, FCS included
#: Packets per second of all streams together. Nominal; only the proportions count.
TOTAL_PPS = 10_000
STRIDE = 389  # prime, so that it reaches every flow of a list
#: One packet of twenty may be a neighbour's, and a light load has about 8000 packets: it reaches this many flows.
NEIGHBOUR_FLOWS = 400
WEB, ATTACKED = 443, 5000
#: Other ports. The hosts of ex1 are blocked at each.
PORTS = range(1, 65536)
SERVER = "198.19.10.1"
#: Rules that few packets match: addresses and ports, from and to.
COLD = [
    ("198.18.20.0", "198.18.23.255", 3000, 3099),
    ("198.18.30.5", "198.18.30.90", 100, 1023),
    ("198.18.40.1", "198.18.40.200", 8000, 8999),
    ("198.18.50.7", "198.18.50.99", 2000, 2999),
    ("198.18.25.0", "198.18.26.255", 4000, 4099),
    ("198.18.32.5", "198.18.32.90", 1100, 1999),
    ("198.18.42.1", "198.18.42.200", 9000, 9999),
    ("198.18.52.7", "198.18.52.99", 2500, 3499),
]


def hosts(first, count, step):
    """`count` addresses that begin with `first` and are `step` apart."""
    return [int(IPv4Address(first)) + step * place for place in range(count)]


def spread(flows, count):
    """`count` of these flows, spread evenly from the first to the last."""
    return [flows[place * len(flows) // count] for place in range(min(count, len(flows)))]


def below(chance, number):
    """A whole number below this one. random() is the one function that no version of Python changes."""
    return int(number * chance.random())


def one_of(values, chance):
    return values[below(chance, len(values))]


def some_of(values, count, chance):
    """`count` of these values, drawn, each once, in their order."""
    order = sorted(range(len(values)), key=[chance.random() for _ in values].__getitem__)
    return [values[place] for place in sorted(order[:count])]


#: By name: a function that returns (flows to block, neighbouring flows that must pass), a part of which it draws. A
#: flow is a source address, a destination port and, where it is not SERVER, a destination.
SCENES = {}


def scene(function):
    SCENES[function.__name__] = function
    return function


@scene
def listed(chance, first, count, step):
    """Listed hosts. The neighbours have the addresses before and after theirs. Some of either use other ports."""
    sources = hosts(first, count, step)
    around = [source + way for source in sources for way in (-1, 1 + below(chance, step - 2))]
    ports = (ATTACKED, WEB, one_of(PORTS, chance), one_of(PORTS, chance))
    both = sources, spread(around, 400)
    return tuple([(source, ports[place // 2 % 4]) for place, source in enumerate(group)] for group in both)


def first_closed(place):
    """The first of a network's thousand closed ports."""
    return 1000 + 16 * (place % 32)


def exempt(place, step):
    """The twenty hosts of a network that may use a hundred of its closed ports, and these ports, as two ranges."""
    host, port = (step - 21, 900) if place % 8 == 7 else (50, 200)
    return range(host, host + 20), range(first_closed(place) + port, first_closed(place) + port + 100)


@scene
def exceptions(chance, first, count, step):
    """Networks with a thousand closed ports each. Twenty hosts of each may use a hundred of these.

    A network has the addresses 1 to `step` - 2 of a block of `step`.
    """
    blocked, neighbours = [], []
    for place, network in enumerate(hosts(first, count, step)):
        port, (members, ports) = first_closed(place), exempt(place, step)
        around = [(host, number) for host in (members[0] - 1, 20, members[0]) for number in (ports[0], ports[-1])]
        around += [(members[turn], number) for turn in (0, -1) for number in (ports[0] - 1, port, ports[-1] + 1)]
        around += [(host, number) for host in (1, step - 2) for number in (port, port + 999)]
        closed = [(host, number) for host, number in around if not (host in members and number in ports)]
        blocked += [(network + host, number) for host, number in closed if port <= number < port + 1000]
        neighbours += [
            (network + members[below(chance, 20)], ports[below(chance, 100)]),
            (network + members[-(place % 2)], ports[-(place // 2 % 2)]),
            (network + (1, 60, step - 2)[place % 3], (port - 1, port + 1000, WEB, 53)[place % 4]),
        ]
        if place % 8 == 0:
            neighbours.append((network + (0, step - 1)[place // 8 % 2], port + 250))
    return blocked, neighbours


def own_port(place):
    """The port that a customer may be reached on."""
    return 8000 + 100 * (place % 16)


@scene
def services(chance, first, count, step):
    """Customers at ports that nobody has (eighteen of nineteen packets), and at other customers' ports. Of those at
    a customer's port, every second has an address just before or after the customer's.

    A customer has the addresses 1 to 8 of a block of `step`. The neighbours are customers at their own ports.
    """
    customers = hosts(first, count, step)
    nobodys = [53, 123, 161, 1900, 5060, 7999, 11211, 8010, 9600]
    scans = [(customer + 1 + place % 8, nobodys[place % 9]) for place, customer in enumerate(customers)]
    foreign = [
        (customer + 1 + below(chance, 8), own_port(place + 1 + below(chance, 15)))
        for place, customer in enumerate(customers)
    ]
    foreign[::2] = [(customer + one_of((0, 9), chance), own_port(2 * n)) for n, customer in enumerate(customers[::2])]
    inside = (1, 8, 1 + below(chance, 8), 1 + below(chance, 8))
    own = [(customer + inside[place % 4], own_port(place)) for place, customer in enumerate(customers)]
    return scans + some_of(foreign, count // 18, chance), spread(own, NEIGHBOUR_FLOWS)


@scene
def tenants(chance, first, count, step):
    """Attackers of the tenant at port 5000, and a few of the tenant at port 7000, who blocks 256 prefixes of sources,
    each for a network of destinations.

    The neighbours are other hosts at these two ports, and everybody at port 6000, a third tenant's. Those at port 7000
    come from an address just before or after a prefix, or from one of its own to a destination outside its network.
    """
    blue, red = hosts(first, count, step), hosts("198.18.160.0", 256, 32)
    server = int(IPv4Address("198.19.10.0"))
    blocked, around = [], []
    for place, start in enumerate(red):
        hosts_of, network = 8 >> place % 4, 256 >> place // 4 % 8
        inside, outside = max(1, below(chance, network)), network + below(chance, 2) * below(chance, 256 - network)
        blocked.append((start + below(chance, hosts_of), 7000, server + inside))
        around.append((start + one_of((-1, hosts_of), chance), 7000, server + inside))
        if network < 256:
            around[-1] = one_of((around[-1], (start + below(chance, hosts_of), 7000, server + outside)), chance)
    chosen = some_of(range(len(red)), count * 5 // 19, chance)
    rest = [flow for place, flow in enumerate(around) if place not in chosen]
    beside = [(source + 1 + below(chance, step - 1), ATTACKED) for source in blue]
    third = [(source, 6000) for source in blue]
    # Several packets of each host at the other ports, so that many prefixes have their turn.
    return (
        at_server(5 * [(source, ATTACKED) for source in blue]) + [blocked[place] for place in chosen],
        at_server(3 * (spread(beside, 190) + spread(third, 190))) + some_of(rest, 60, chance),
    )


def at_server(flows):
    return [(*flow, int(IPv4Address(SERVER))) for flow in flows]


@scene
def hot(chance, first, count, step):
    """Packets of one rule, and a tenth of eight others. Neighbours: its exception, and what is around the others."""
    least, most = int(IPv4Address("198.18.64.1")), int(IPv4Address("198.18.127.254"))
    sources = [
        host + below(chance, step)
        for host in hosts(first, count, step)
        if not 100 - step < host - int(IPv4Address("198.18.64.0")) < 120
    ]
    blocked = [(source, 5000 + below(chance, 1000)) for source in sources]
    blocked += [(host, port) for host in (least, most) for port in (5000, 5999)]
    exception = hosts("198.18.64.100", 20, 1)
    blocked += [(host, (5010, 5999)[place % 2]) for place, host in enumerate(exception)]
    around = []
    for low, high, lowest, highest in COLD:
        ends = int(IPv4Address(low)), int(IPv4Address(high))
        blocked += [(host, port) for host in ends for port in (lowest, highest)]
        inside = range(ends[0], ends[1] + 1), range(lowest, highest + 1)
        blocked += [tuple(one_of(values, chance) for values in inside) for _ in range(2)]
        around += [(ends[0] - 1, lowest), (ends[1] + 1, highest), (ends[0], lowest - 1), (ends[1], highest + 1)]
    for turn, source in enumerate(spread(sources, 60)):
        around += [(source, 4999), (source, 6001 + below(chance, 2000) if turn % 4 == 3 else 6000)]
    around += [(host, 5500) for host in (least - 1, most + 1, least - 2)]
    return blocked, around + [(host, port) for host in exception for port in (5000, 5003, 5009)]


class Mix:
    """Three continuous streams, named after the classes that the sink counts."""

    def get_streams(
        self, direction=0, scene="listed", first="198.18.64.1", count=600, step=13, blocked_percent=90, draw=1, **kwargs
    ):
        """`blocked_percent` of the packets must be blocked; neighbours and legitimate network share the rest.

        `scene` is one of SCENES. It has `count` hosts, networks or customers that begin with `first`, `step` apart.
        `draw` draws a part of the neighbours.
        """
        blocked, neighbours = SCENES[scene](random.Random(draw), first, count, step)
        rest = (100 - blocked_percent) / 2
        return [
            stream("blocked", blocked, blocked_percent),
            stream("neighbours", neighbours, rest),
            stream("legitimate", [(source, WEB) for source in hosts("198.18.10.1", 50, 1)], rest),
        ]


def stream(name, flows, percent):
    """A continuous stream, one flow after the other, in strides of a prime number of flows."""
    visited = [flows[turn * STRIDE % len(flows)] for turn in range(len(flows))]
    # No UDP checksum (RFC 768 allows it): it would have to follow addresses and port.
    headers = Ether() / IP(src="198.18.0.1", dst=SERVER) / UDP(sport=1025, dport=ATTACKED, chksum=0)
    packet = headers / bytes(SIZE - FCS - len(headers))
    fields = [("source", "IP.src", 4), ("port", "UDP.dport", 2), ("destination", "IP.dst", 4)][: len(flows[0])]
    vm = STLScVmRaw(
        [
            *(
                STLVmFlowVar(name=field, value_list=[flow[place] for flow in visited], size=size, op="inc")
                for place, (field, _, size) in enumerate(fields)
            ),
            *(STLVmWrFlowVar(fv_name=field, pkt_offset=offset) for field, offset, _ in fields),
            STLVmFixIpv4(offset="IP"),
        ]
    )
    mode = STLTXCont(pps=TOTAL_PPS * percent / 100)
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def register():
    return Mix()
