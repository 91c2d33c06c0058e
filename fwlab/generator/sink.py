# SPDX-License-Identifier: GPL-2.0-or-later
"""The sink: counts what arrives by traffic class, with nftables' named counters at its NIC's ingress."""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Mapping

from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import AddressList, Connections, TrafficClass
from fwlab.traffic.flows import Flow

#: Counter of what belongs to no declared class.
OTHER = "other"
#: A class may be named as nft would not let a counter be: with a digit first, or by one of its own words.
_PREFIX = "class-"


class Sink:
    def __init__(self, ssh: Ssh, device: str) -> None:
        self._ssh = ssh
        self._device = device
        self._takes_all = False
        self._loaded: str | None = None
        self._flows: dict[str, list[Flow]] = {}

    def know(self, flows: dict[str, list[Flow]]) -> None:
        """The flows of the classes that are declared by a stream, in the traffic that is played from now on."""
        if flows != self._flows:
            self._flows, self._takes_all = flows, False

    def take_all(self, classes: dict[str, TrafficClass]) -> None:
        """As `declare`, but where nothing climbs further up as it is, nothing is done: there are many cases."""
        if not self._takes_all:
            self.declare(classes)

    def declare(self, classes: dict[str, TrafficClass], connections: Connections | None = None) -> None:
        """Count from now on by these classes; a packet counts for the first that matches, then goes.

        Those of `connections` are not counted: they go up to the server.
        """
        self._takes_all = False
        ruleset = counting_ruleset(self._device, classes, connections, self._flows)
        # A list of addresses takes the sink a while to load; counters that are there need only begin anew.
        anew = "nft reset counters table netdev fwlab > /dev/null 2>&1 || " if ruleset == self._loaded else ""
        self._loaded = None
        self._ssh.run(f"{anew}nft -f -", data=ruleset.encode())
        self._loaded = ruleset
        self._takes_all = connections is None

    def counts(self) -> dict[str, int]:
        """Packets that arrived since `declare`, by class."""
        listed = json.loads(self._ssh.run("nft -j list counters table netdev fwlab"))
        return {
            item["counter"]["name"].removeprefix(_PREFIX): item["counter"]["packets"]
            for item in listed["nftables"]
            if "counter" in item
        }

    def settled_counts(self, all_of: int | None = None, patience_s: float = 30) -> dict[str, int]:
        """The counts once they no longer change, so that packets on their way are in; or once they are `all_of`."""
        deadline = time.monotonic() + patience_s
        counts = self.counts()
        while sum(counts.values()) != all_of and time.monotonic() < deadline:
            time.sleep(0.4)
            again = self.counts()
            if again == counts:
                break
            counts = again
        return counts


def counting_ruleset(
    device: str,
    classes: dict[str, TrafficClass],
    connections: Connections | None = None,
    flows: Mapping[str, list[Flow]] = {},
) -> str:
    """The nft ruleset that counts and drops; nothing but `connections` climbs further up the sink's stack.

    `flows`: of each class that is declared by a stream; one that has none counts nothing.
    """
    names = [*classes, OTHER]
    lines = ["table netdev fwlab {}", "delete table netdev fwlab", "table netdev fwlab {"]
    lines += [f"  counter {_PREFIX}{name} {{ }}" for name in names]
    for name, traffic_class in classes.items():
        lines += _sets(name, traffic_class, flows.get(name, []))
    lines += ["  chain arriving {", f'    type filter hook ingress device "{device}" priority 0; policy accept;']
    if connections is not None:
        # From whichever address: the DUT may have translated it.
        lines.append(f"    ip daddr {connections.servers} tcp dport {connections.port} accept")
    for name, traffic_class in classes.items():
        for match in _matches(name, traffic_class) if not traffic_class.stream else _by_flow(name, flows):
            lines.append(f'    {match} counter name "{_PREFIX}{name}" drop')
    # What the nodes say to each other by themselves (ARP, neighbour discovery) is not test traffic.
    lines += [f'    meta l4proto {{ udp, tcp }} counter name "{_PREFIX}{OTHER}" drop', "  }", "}"]
    return "\n".join(lines) + "\n"


def _sets(name: str, c: TrafficClass, flows: list[Flow]) -> list[str]:
    """The class's lists as sets. Their size is declared, so that a packet costs the sink little."""
    found = []
    if c.stream and flows:
        pairs = [f"{source} . {port}" for source, port in flows]
        found.append(_set(f"{_PREFIX}{name}-flows", "ipv4_addr . inet_service", pairs))
    elif c.dports:
        pairs = [f"{ipaddress.IPv4Address(source)} . {port}" for source, port in c.pairs()]
        found.append(_set(f"{_PREFIX}{name}-pairs", "ipv4_addr . inet_service", pairs))
    elif c.sources:
        found.append(_set(f"{_PREFIX}{name}-sources", "ipv4_addr", _addresses(c.sources)))
    if c.destinations:
        found.append(_set(f"{_PREFIX}{name}-destinations", "ipv4_addr", _addresses(c.destinations)))
    return found


def _addresses(listed: AddressList) -> list[str]:
    return [str(ipaddress.IPv4Address(number)) for number in listed.numbers()]


def _set(name: str, kind: str, elements: list[str]) -> str:
    return f"  set {name} {{ type {kind}; size {len(elements)}; elements = {{ {', '.join(elements)} }} }}"


def _by_flow(name: str, flows: Mapping[str, list[Flow]]) -> list[str]:
    """The class as nft matches, where it is declared by a stream; there is no match for one that has no flows."""
    return [f"meta l4proto {{ udp, tcp }} ip saddr . th dport @{_PREFIX}{name}-flows"] if flows.get(name) else []


def _matches(name: str, c: TrafficClass) -> list[str]:
    """The class as nft matches, one for each address family it can hold."""
    prefixes = [ipaddress.ip_network(p) for p in (c.src, c.dst) if p is not None]
    families = {f"ip{'' if p.version == 4 else '6'}" for p in prefixes} or {"ip", "ip6"}
    if c.sources or c.destinations:
        families = {"ip"}
    found = []
    for family in sorted(families):
        parts = []
        if not (prefixes or c.sources or c.destinations):
            parts.append(f"meta protocol {family}")
        if c.src:
            parts.append(f"{family} saddr {c.src}")
        if c.dst:
            parts.append(f"{family} daddr {c.dst}")
        if c.dports:
            parts.append(f"meta l4proto {{ udp, tcp }} {family} saddr . th dport @{_PREFIX}{name}-pairs")
        elif c.sources:
            parts.append(f"{family} saddr @{_PREFIX}{name}-sources")
        if c.destinations:
            parts.append(f"{family} daddr @{_PREFIX}{name}-destinations")
        if c.proto:
            protocol = "ipv6-icmp" if (c.proto, family) == ("icmp", "ip6") else c.proto
            parts.append(f"meta l4proto {protocol}")
        if c.sport is not None:
            parts.append(f"th sport {c.sport}")
        if c.dport is not None:
            parts.append(f"th dport {c.dport}")
        found.append(" ".join(parts))
    return found
