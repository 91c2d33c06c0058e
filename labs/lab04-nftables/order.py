# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of ex1-order: a few of two hundred rules match most packets, by Zipf's law.

Twenty departments have closed seven ports each. Two of these are open to the department's own network, unless an
address of it is banned. The network of every second department is a part of the one before; its own addresses may use
the ports of both. The rulesets of ex1-order compute the same ports, networks and ranks as this file.
"""

import math
import random
from ipaddress import IPv4Address

from mix import NEIGHBOUR_FLOWS, WEB, below, legitimate, spread, strangers, stream

DEPARTMENTS, CLOSED = 20, 7
#: Which of a department's closed ports its own network may use, and how many ports the last of them is.
OPENED, RANGE = (2, 4), 16
#: From rank to rank of frequency this many closed ports further: prime, so that it reaches all of them.
APART = 61
#: Flows of the most frequent rule. The one of rank n has n^(3/2) times fewer, and one at least.
MOST = 2840
#: Flows to block. With 400 neighbours to them the table of frames is short, and a light load reaches each flow.
BLOCKED_FLOWS = 7200
#: Shares of the three streams, in per cent.
BLOCKED, NEIGHBOURS, LEGITIMATE = 90, 5, 5


def closed_port(port, department, place):
    """One of a department's closed ports; of a range the first one."""
    return port + 290 * department + 41 * place + department * place % 7


def closed_ports(port, department, place):
    first = closed_port(port, department, place)
    return range(first, first + (RANGE if place == CLOSED - 1 else 1))


def network_of(first, department):
    """The addresses of a department's own network."""
    pair, inner = divmod(department, 2)
    begin = first + 2048 * pair + (256 * (1 + pair % 3) if inner else 0)
    return range(begin, begin + (256 if inner else 1024))


def banned_of(first, department):
    """The addresses of it that the department bans."""
    pair, inner = divmod(department, 2)
    begin = network_of(first, department).start + (16 * (3 + pair) if inner else 32 + 16 * pair)
    return range(begin, begin + (16 if inner else 8))


def hits(rank):
    return max(1, round(MOST / math.sqrt((rank + 1) ** 3)))


def ends(values):
    return [values[0], values[-1]]


def around(values):
    return [values[0] - 1, values[-1] + 1]


def visits(chance, first, port, hot):
    """Flows to block, and flows that must pass: pairs of source address and destination port."""
    inside = {address for department in range(DEPARTMENTS) for address in network_of(first, department)}
    unknown = strangers(chance, BLOCKED_FLOWS, inside)
    blocked, passing = [], []

    def open_port():
        """Above all closed ports, or between two."""
        return [10_000 + below(chance, 50_000), closed_port(port, below(chance, DEPARTMENTS), 0) + 20][below(chance, 2)]

    for rank in range(DEPARTMENTS * CLOSED):
        ports = closed_ports(port, *divmod((hot + APART * rank) % (DEPARTMENTS * CLOSED), CLOSED))
        blocked += [(unknown.pop(), ports[below(chance, len(ports))]) for _ in range(hits(rank))]
    scanners = [source for source, _ in blocked]
    for department in range(DEPARTMENTS):
        network, banned = network_of(first, department), banned_of(first, department)
        own = [closed_port(port, department, place) for place in OPENED]
        blocked += [(source, at) for at in own for source in around(network) + ends(banned)]
        blocked += [(source, open_port()) for source in ends(banned)]
        blocked += [(unknown.pop(), at) for at in ends(closed_ports(port, department, CLOSED - 1))]
        members = [source for source in network if source not in banned]
        # Of the inner department a banned address is one more member of the outer one, whose rules come first.
        others = ends(banned_of(first, department + 1)) if department % 2 == 0 else []
        some = [members[below(chance, len(members))]]
        passing += [(source, at) for at in own for source in ends(network) + around(banned) + others + some]
        passing += [(source, open_port()) for source in around(banned)]
        beside = closed_ports(port, department, below(chance, CLOSED))
        passing += [(unknown.pop(), at) for at in around(beside)]
    blocked += [(unknown.pop(), blocked[0][1]) for _ in range(BLOCKED_FLOWS - len(blocked))]
    allowed = [(source, open_port()) for source in spread(scanners, NEIGHBOUR_FLOWS - len(passing))]
    return blocked, passing + allowed


class Order:
    """Three continuous streams, named after the classes that the sink counts."""

    def get_streams(self, direction=0, network="198.18.64.0", port=2000, hot=53, draw=1, **kwargs):
        """`network` is the first department's, `port` its first closed port. `hot` says which closed port is the most
        frequent one, counted from the first department's first. `draw` draws strangers, open ports and destinations.
        """
        chance = random.Random(draw)
        blocked, neighbours = visits(chance, int(IPv4Address(network)), port, hot)
        return [
            stream(chance, "blocked", blocked, BLOCKED),
            stream(chance, "neighbours", neighbours, NEIGHBOURS),
            stream(chance, "legitimate", [(source, WEB) for source in legitimate()], LEGITIMATE),
        ]


def register():
    return Order()
