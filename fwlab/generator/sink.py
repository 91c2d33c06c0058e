# SPDX-License-Identifier: GPL-2.0-or-later
"""The counters of arriving packets by traffic class: nftables counters at the ingress of a NIC.

They are on the sink, and on the generator for classes that the DUT sends back by its first link.
"""

import ipaddress
import json
import time
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections, TrafficClass
from fwlab.traffic.classes import OTHER, Flow

#: Makes counter names valid: a class may be named by an nft keyword or start with a digit.
_PREFIX = "class-"
#: Types of the sets that are not lists of IPv4 addresses. Those with a 6 are of IPv6.
_TYPES = {
    "flows": "ipv4_addr . inet_service . inet_proto",
    "flows6": "ipv6_addr . inet_service . inet_proto",
    "addresses6": "ipv6_addr",
    "pairs": "ipv4_addr . inet_service",
}

#: Path MTUs and redirects, what TCP remembers of other hosts, and neighbours that are not static.
_FORGET = "ip route flush cache; ip -6 route flush cache; ip tcp_metrics flush all; ip neigh flush all; true"


class Sink:
    """The counters on the sink. `verdict`: what becomes of a packet that was counted, drop or accept."""

    def __init__(self, ssh: Ssh, device: str, *, verdict: str = "drop") -> None:
        self._ssh = ssh
        self._device = device
        self._verdict = verdict
        #: The classes by which every packet is counted and dropped; None if some pass.
        self._absorbed: dict[str, TrafficClass] | None = None
        self._loaded: str | None = None
        self._flows: dict[str, list[Flow]] = {}
        self._counted: Counter[str] = Counter()

    def set_flows(self, flows: dict[str, list[Flow]]) -> None:
        """Set the flows, in the traffic that is played from now on, of the classes that are declared by a stream."""
        self._flows = flows

    def absorb_all(self, classes: dict[str, TrafficClass]) -> None:
        """Make sure that no packet passes the counters. What they count before `load_counters` means nothing."""
        if self._absorbed != classes:
            self.load_counters(classes)
            self._absorbed = classes

    def load_counters(
        self, classes: dict[str, TrafficClass], connections: Connections | None = None, *, echo: bool = False
    ) -> None:
        """Count from now on by these classes, starting at zero. A packet counts for the first match and is dropped.

        Packets of `connections` are not counted but passed to the server; with `echo`, so are ICMP echo requests.
        """
        self._absorbed = None
        ruleset = counting_ruleset(self._device, classes, connections, self._flows, verdict=self._verdict, echo=echo)
        # Loading a list of addresses takes a while; if the counters are loaded already, reset them instead.
        reset = "nft reset counters table netdev fwlab > /dev/null 2>&1 || " if ruleset == self._loaded else ""
        self._loaded = None
        self._counted.clear()
        self._ssh.run(f"{reset}nft -f -", data=ruleset.encode())
        self._loaded = ruleset
        self._absorbed = classes if connections is None and not echo else None

    def put_back(self) -> None:
        """Forget what the node has learnt from frames, such as an ICMP error or a redirect.

        Its neighbours are static and it accepts no router's advertisement. Raises CannotMeasure.
        """
        self._ssh.run(_FORGET)

    def counts(self) -> dict[str, int]:
        """Packets that have arrived since `load_counters`, by class."""
        # nft reads and resets counters in half the time that it takes to list them. No packet is lost in between: the
        # kernel subtracts what was read.
        listed = json.loads(self._ssh.run("nft -j reset counters table netdev fwlab"))
        for counter in (item["counter"] for item in listed["nftables"] if "counter" in item):
            self._counted[counter["name"].removeprefix(_PREFIX)] += counter["packets"]
        return dict(self._counted)

    def settled_counts(self, all_of: int | None = None, timeout_s: float = 30) -> dict[str, int]:
        """The counts once they no longer change or add up to `all_of`, but after `timeout_s` at the latest."""
        deadline = time.monotonic() + timeout_s
        counts = self.counts()
        while sum(counts.values()) != all_of and time.monotonic() < deadline:
            time.sleep(0.4)
            previous, counts = counts, self.counts()
            if counts == previous:
                break
        return counts


def counting_ruleset(
    device: str,
    classes: dict[str, TrafficClass],
    connections: Connections | None = None,
    flows: Mapping[str, list[Flow]] = MappingProxyType({}),
    *,
    verdict: str = "drop",
    echo: bool = False,
) -> str:
    """The nft ruleset that counts and drops every packet, except those of `connections` and, with `echo`, probes.

    flows  flows of each class that is declared by a stream; a class without flows counts nothing
    """
    names = [*classes, OTHER]
    lines = ["table netdev fwlab {}", "delete table netdev fwlab", "table netdev fwlab {"]
    lines += [f"  counter {_PREFIX}{name} {{ }}" for name in names]
    for name, traffic_class in classes.items():
        lines += _sets(name, traffic_class, flows.get(name, []))
    lines += ["  chain arriving {", f'    type filter hook ingress device "{device}" priority 0; policy accept;']
    if echo:
        lines.append("    icmp type echo-request accept")
    matches = {name: _matches(name, c, flows.get(name, [])) for name, c in classes.items()}
    if connections is not None:
        # Who is none of the clients may write to the same servers.
        others = [name for name, c in classes.items() if _no_clients(c, flows.get(name, []), connections)]
        lines += [_counter(name, match, verdict) for name in others for match in matches.pop(name)]
        # Match any source address: the DUT may have translated it.
        lines.append(f"    ip daddr {connections.servers} tcp dport {connections.port} accept")
    lines += [_counter(name, match, verdict) for name, listed in matches.items() for match in listed]
    # ARP and neighbour discovery are not test traffic.
    lines += [f'    meta l4proto {{ udp, tcp }} counter name "{_PREFIX}{OTHER}" {verdict}', "  }", "}"]
    return "\n".join(lines) + "\n"


def _counter(name: str, match: str, verdict: str) -> str:
    return f'    {match} counter name "{_PREFIX}{name}" {verdict}'


def _no_clients(c: TrafficClass, flows: list[Flow], connections: Connections) -> bool:
    """Whether the class is known by its hosts' addresses, and none of them is a client's."""
    if c.stream is None or c.address != "source" or c.payload is not None:
        return False
    clients = ipaddress.IPv4Network(connections.clients)
    return not any(_family(flow) == "ip" and ipaddress.IPv4Address(flow[0]) in clients for flow in flows)


def _sets(name: str, c: TrafficClass, flows: list[Flow]) -> list[str]:
    """The class's lists as nft sets. They declare their size, which makes lookups cheap."""
    lists: dict[str, list[str]] = {}
    if c.stream and flows and c.payload is None:
        for flow in flows:
            kind = ("addresses" if c.address else "flows") + _family(flow).removeprefix("ip")
            lists.setdefault(kind, []).append(" . ".join(map(str, flow)))
    elif c.dports:
        lists["pairs"] = [f"{ipaddress.IPv4Address(source)} . {port}" for source, port in c.pairs()]
    elif c.sources:
        lists["sources"] = [str(ipaddress.IPv4Address(number)) for number in c.sources.numbers()]
    if c.destinations:
        lists["destinations"] = [str(ipaddress.IPv4Address(number)) for number in c.destinations.numbers()]
    found = []
    for kind, elements in lists.items():
        declared = f"type {_TYPES.get(kind, 'ipv4_addr')}; size {len(elements)}; elements = {{ {', '.join(elements)} }}"
        found.append(f"  set {_PREFIX}{name}-{kind} {{ {declared} }}")
    return found


def _matches(name: str, c: TrafficClass, flows: list[Flow]) -> list[str]:
    """The matches of a class, one for each payload and address family; none for a class without flows."""
    if c.stream:
        return _stream_matches(name, c, flows)
    prefixes = [ipaddress.ip_network(p) for p in (c.src, c.dst) if p is not None]
    families = {f"ip{'' if p.version == 4 else '6'}" for p in prefixes} or {"ip", "ip6"}
    if c.sources or c.destinations:
        families = {"ip"}
    found = []
    for family in sorted(families):
        pairs = f"meta l4proto {{ udp, tcp }} {family} saddr . th dport @{_PREFIX}{name}-pairs"
        protocol = "icmpv6" if (c.proto, family) == ("icmp", "ip6") else c.proto
        parts = {
            f"meta protocol {family}": not (prefixes or c.sources or c.destinations),
            f"{family} saddr {c.src}": c.src,
            f"{family} daddr {c.dst}": c.dst,
            pairs: c.dports,
            f"{family} saddr @{_PREFIX}{name}-sources": c.sources and not c.dports,
            f"{family} daddr @{_PREFIX}{name}-destinations": c.destinations,
            f"meta l4proto {protocol}": c.proto,
            f"th sport {c.sport}": c.sport is not None,
            f"th dport {c.dport}": c.dport is not None,
        }
        header = [part for part, wanted in parts.items() if wanted]
        found += [" ".join([*header, payload]).strip() for payload in _payloads(c)]
    return found


def _stream_matches(name: str, c: TrafficClass, flows: list[Flow]) -> list[str]:
    if c.payload is not None:
        alike: dict[tuple[int, int], list[str]] = {}
        for at, digits in flows:
            alike.setdefault((int(at), len(str(digits))), []).append(str(digits))
        return [f"meta l4proto udp {_payload(at, listed)}" for (at, _), listed in alike.items()]
    found = []
    for family in sorted({_family(flow) for flow in flows}):
        number = family.removeprefix("ip")
        if c.address is not None:
            found.append(f"{family} {c.address[0]}addr @{_PREFIX}{name}-addresses{number}")
        else:
            flow = f"{family} saddr . th dport . meta l4proto @{_PREFIX}{name}-flows{number}"
            found.append(f"meta l4proto {{ udp, tcp }} {flow}")
    return found


def _family(flow: Flow) -> str:
    """ip or ip6, by the flow's address."""
    return "ip6" if ":" in str(flow[0]) else "ip"


def _payloads(c: TrafficClass) -> list[str]:
    """A match for each of the class's payloads; one empty match without any."""
    if c.payload is None or c.payload.at is None:
        return [""]
    protocol = "" if c.proto else "meta l4proto udp "
    return [f"{protocol}{_payload(c.payload.at, [digits])}" for digits in c.payload.hex]


def _payload(at: int, listed: list[str]) -> str:
    """A match of any of these bytes, all of one length; nftables counts in bits, from the UDP header on."""
    one_of = f"0x{listed[0]}" if len(listed) == 1 else f"{{ {', '.join(f'0x{digits}' for digits in listed)} }}"
    return f"@th,{64 + 8 * at},{4 * len(listed[0])} {one_of}"


def returning(classes: Mapping[str, TrafficClass]) -> bool:
    """Whether any of the classes is counted at the generator."""
    return any(c.at == "generator" for c in classes.values())


class BothEnds(Sink):
    """A sink whose counts include those of the generator, while a class is counted there."""

    def __init__(self, sink: Ssh, device: str, generator: Ssh, generator_device: str) -> None:
        super().__init__(sink, device)
        self._returning = False
        # Nothing is dropped there: a table that an ended session leaves behind must not keep the generator from TCP.
        self._generator = Sink(generator, generator_device, verdict="accept")

    def set_flows(self, flows: dict[str, list[Flow]]) -> None:
        """Set the flows of the classes that are declared by a stream."""
        super().set_flows(flows)
        self._generator.set_flows(flows)

    def load_counters(
        self, classes: dict[str, TrafficClass], connections: Connections | None = None, *, echo: bool = False
    ) -> None:
        """Count from now on, each class where it is declared to be counted."""
        super().load_counters(_at("sink", classes), connections, echo=echo)
        self._returning = returning(classes)
        if self._returning:
            self._generator.load_counters(_at("generator", classes))

    def put_back(self) -> None:
        """Forget at both ends what they have learnt from frames."""
        super().put_back()
        self._generator.put_back()

    def counts(self) -> dict[str, int]:
        """Packets that have arrived since `load_counters`, by class, at either end."""
        here = super().counts()
        if not self._returning:
            return here
        there = self._generator.counts()
        return {**here, **there, OTHER: here[OTHER] + there[OTHER]}

    def count_returned(self, classes: dict[str, TrafficClass]) -> None:
        """Count from now on at the generator, whatever class is declared to be counted there."""
        self._generator.load_counters(classes)

    def returned(self) -> dict[str, int]:
        """Packets that have come back to the generator since `count_returned`, by class."""
        return self._generator.settled_counts()


def _at(end: str, classes: Mapping[str, TrafficClass]) -> dict[str, TrafficClass]:
    return {name: c for name, c in classes.items() if c.at == end}
