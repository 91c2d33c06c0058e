# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises: what has to be blocked, its neighbours, and a legitimate network, scene by scene.

Packets of the three differ in their source address and their destination port, and in nothing else: what a ruleset
has to ask for is the only thing that it can go by. The sink knows them by these two as well (lab.yml, `classes`).
"""

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
WEB = 443
#: One packet of twenty is a neighbour's, and a light load has some 8000: it meets each of so many.
NEIGHBOUR_FLOWS = 400
#: Where hosts live that no list names, all over 198.18.0.0/16: 157 is prime to 2 ** 16, so no two are the same.
STRANGERS = [int(IPv4Address("198.18.0.0")) + 157 * place % 2**16 for place in range(1, 2**16)]


def hosts(first, count, step):
    """`count` addresses from `first` on, `step` apart."""
    return [int(IPv4Address(first)) + step * place for place in range(count)]


def strangers(count, known):
    """`count` addresses anywhere, none of them known and none of the legitimate network."""
    taken = {*known, *legitimate()}
    return [address for address in STRANGERS if address not in taken][:count]


def legitimate():
    return hosts("198.18.10.1", 50, 1)


def scanned(rules):
    """Fifteen ports for each of `rules` rules, much as S3 had them, but no two make a range."""
    return [100 * hundred + 3 * rule for rule in range(1, rules + 1) for hundred in range(1, 16)]


def beside(ports):
    """Ports that are open: one right beside each closed one, some well known, and some of all the others."""
    closed = set(ports)
    between = [port for port in range(1, max(ports) + 200, 17) if port not in closed]
    return list(dict.fromkeys([*(port + 1 for port in ports), 22, 53, 80, 5201, 8080, 33000, 65535, *between]))


def pair_port(place):
    """The port that belongs to an address in a list of pairs, as in S3."""
    return place % 10 + 1


def spread(flows, count):
    """`count` of these flows, evenly from the first to the last."""
    return [flows[place * len(flows) // count] for place in range(count)]


def paired(sources, ports, count):
    """`count` flows, sources and ports in turn."""
    return [(sources[place % len(sources)], ports[place % len(ports)]) for place in range(count)]


#: Each scene gives (flows to block, flows beside them that must pass); a flow is (source address, destination port).
SCENES = {}


def scene(function):
    SCENES[function.__name__] = function
    return function


@scene
def ports(first, count, step):
    """Scans of 300 ports; the neighbours are the same hosts, and strangers, at open ports."""
    sources, closed = hosts(first, count, step), scanned(20)
    flows = list(zip(sources, closed * (count // 300), strict=True))
    everybody = spread(sources, 150) + strangers(50, sources)
    return flows, paired(everybody, beside(closed), NEIGHBOUR_FLOWS)


@scene
def few(first, count, step):
    """A handful of attackers at any port; the neighbours live all around them."""
    sources, anywhere = hosts(first, count, step), [WEB, 80, 22, 8080]
    around = sorted({source + way for source in sources for way in range(-6, 7)} - set(sources))
    flows = [(source, port) for port in anywhere for source in sources]
    return flows, paired(around + strangers(NEIGHBOUR_FLOWS - len(around), sources), anywhere, NEIGHBOUR_FLOWS)


@scene
def pairs(first, count, step):
    """Each host at the one port that it may not reach; beside them the same hosts at the ports of others."""
    sources = hosts(first, count, step)
    blocked = [(source, pair_port(place)) for place, source in enumerate(sources)]
    others = [(source, pair_port(place + 1)) for place, source in enumerate(sources)]
    web = [(source, WEB) for source in sources]
    elsewhere = paired(strangers(50, sources), [pair_port(place) for place in range(10)], 50)
    return blocked, spread(others, 300) + spread(web, 50) + elsewhere


@scene
def chains(first, count, step):
    """Customers at the port that their own chain forbids, and everybody at telnet's, which all are forbidden."""
    sources = hosts(first, count, step)
    unknown = strangers(60, sources)
    own = [(source, 2000 + place) for place, source in enumerate(sources)]
    blocked = own + [(source, 23) for source in sources + unknown[:50]]
    others = [(source, 2001 + place) for place, source in enumerate(sources)]
    return blocked, others + spread([(s, WEB) for s in sources], 140) + paired(unknown, range(2000, 2200), 60)


@scene
def prefixes(first, count, step):
    """Attackers by twos, each two a /31; the neighbours live right before and after them."""
    starts = twos(first, count, step)
    blocked = [(source + second, WEB) for second in (0, 1) for source in starts]
    listed = {source for source, _ in blocked}
    around = [source + way for source in starts for way in (-1, 2, 3) if source + way not in listed]
    return blocked, [(source, WEB) for source in spread(around, 360) + strangers(40, {*listed, *around})]


def twos(first, count, step):
    """Where each two begin: about `step` apart, and not so evenly that a mask could tell them from the rest."""
    return [source + 2 * (place * place // 7 % 3) for place, source in enumerate(hosts(first, count, step))]


@scene
def exceptions(first, count, step):
    """Half are hosts that are blocked, half strangers and partners at ports that are closed to them.

    The neighbours are partners at the port that is open to them, and anybody else at ports that never were closed.
    """
    sources = hosts(first, 3 * count, step)
    bad, others, partners = sources[:count], sources[count : 2 * count], sources[2 * count :]
    closed = [3000 + place for place in range(count)]
    foreign = list(zip(partners, closed[1:] + closed[:1], strict=True))
    visits = list(zip(others, closed, strict=True))
    blocked = [(source, WEB) for source in bad] + visits[::2] + foreign[::2]
    open_to_all = paired(partners + others + strangers(50, sources), [WEB, 2999, 3000 + count, 80], 300)
    return blocked, list(zip(partners, closed, strict=True)) + open_to_all


@scene
def mixed(first, count, step):
    """Six parts of a blacklist, one of scans, one of pairs; the neighbours live beside all three."""
    sources = hosts(first, 2 * count, step)
    listed, others = sources[:count], sources[count:]
    hosts_of_pairs, scanners = others[: count // 2], others[count // 2 :]
    bad_pairs = [(source, pair_port(place)) for place, source in enumerate(hosts_of_pairs)]
    scans = list(zip(scanners, scanned(20) * 2, strict=False))
    blocked = [(source, WEB) for source in 3 * listed] + bad_pairs + scans
    right_beside = [(source + way, WEB) for source in listed for way in (-1, 1)]
    wrong_pairs = [(source, pair_port(place + 1)) for place, source in enumerate(hosts_of_pairs)]
    open_ports = paired(scanners, beside(scanned(20)), 150)
    return blocked, spread(right_beside, 100) + spread(wrong_pairs, 150) + open_ports


class Mix:
    """Three continuous streams. Their names are the classes that the sink counts by."""

    def get_streams(
        self, direction=0, scene="ports", first="198.18.64.1", count=600, step=13, blocked_percent=90, **kwargs
    ):
        """`blocked_percent` of the packets have to be blocked; neighbours and legitimate network share the rest.

        `scene` is one of SCENES; it has `count` addresses (or customers, or prefixes) from `first` on, `step` apart.
        """
        blocked, neighbours = SCENES[scene](first, count, step)
        rest = (100 - blocked_percent) / 2
        return [
            stream("blocked", blocked, blocked_percent),
            stream("neighbours", neighbours, rest),
            stream("legitimate", [(source, WEB) for source in legitimate()], rest),
        ]


def stream(name, flows, percent):
    """A continuous stream of segments, one flow after the other.

    In strides of a prime number of flows: a list of rules costs more for those at its end, and any stretch of the
    traffic that the DUT happens to take in should have its share of both ends.
    """
    visited = [flows[turn * STRIDE % len(flows)] for turn in range(len(flows))]
    # The firewall does not look at TCP's checksum, so it does not follow what is written into the headers: it would
    # be a mark of the flow. It is the same in all packets.
    headers = Ether() / IP(src="198.18.0.1", dst="198.19.10.1") / TCP(sport=1025, dport=WEB, flags="A")
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
    mode = STLTXCont(pps=TOTAL_PPS * percent / 100)
    return STLStream(name=name, packet=STLPktBuilder(pkt=packet, vm=vm), mode=mode)


def register():
    return Mix()
