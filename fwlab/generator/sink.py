# SPDX-License-Identifier: GPL-2.0-or-later
"""The sink: counts arriving packets by traffic class, with nftables counters at the ingress of its NIC."""

import ipaddress
import json
import time
from collections.abc import Mapping
from types import MappingProxyType

from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import AddressList, Connections, TrafficClass
from fwlab.traffic.classes import OTHER
from fwlab.traffic.flows import Flow

#: Makes counter names valid: a class may be named by an nft keyword or start with a digit.
_PREFIX = "class-"


class Sink:
    """The counters on the sink."""

    def __init__(self, ssh: Ssh, device: str) -> None:
        self._ssh = ssh
        self._device = device
        self._absorbs_all = False
        self._loaded: str | None = None
        self._flows: dict[str, list[Flow]] = {}

    def set_flows(self, flows: dict[str, list[Flow]]) -> None:
        """Set the flows, in the traffic that is played from now on, of the classes that are declared by a stream."""
        if flows != self._flows:
            self._flows, self._absorbs_all = flows, False

    def absorb_all(self, classes: dict[str, TrafficClass]) -> None:
        """Make sure that no packet passes the counters. Does nothing if they already drop every packet."""
        if not self._absorbs_all:
            self.load_counters(classes)

    def load_counters(self, classes: dict[str, TrafficClass], connections: Connections | None = None) -> None:
        """Count from now on by these classes, starting at zero. A packet counts for the first match and is dropped.

        Packets of `connections` are not counted but passed to the server.
        """
        self._absorbs_all = False
        ruleset = counting_ruleset(self._device, classes, connections, self._flows)
        # Loading a list of addresses takes a while; if the counters are loaded already, reset them instead.
        reset = "nft reset counters table netdev fwlab > /dev/null 2>&1 || " if ruleset == self._loaded else ""
        self._loaded = None
        self._ssh.run(f"{reset}nft -f -", data=ruleset.encode())
        self._loaded = ruleset
        self._absorbs_all = connections is None

    def counts(self) -> dict[str, int]:
        """Packets that have arrived since `load_counters`, by class."""
        listed = json.loads(self._ssh.run("nft -j list counters table netdev fwlab"))
        return {
            item["counter"]["name"].removeprefix(_PREFIX): item["counter"]["packets"]
            for item in listed["nftables"]
            if "counter" in item
        }

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
) -> str:
    """The nft ruleset that counts and drops every packet, except those of `connections`.

    flows  flows of each class that is declared by a stream; a class without flows counts nothing
    """
    names = [*classes, OTHER]
    lines = ["table netdev fwlab {}", "delete table netdev fwlab", "table netdev fwlab {"]
    lines += [f"  counter {_PREFIX}{name} {{ }}" for name in names]
    for name, traffic_class in classes.items():
        lines += _sets(name, traffic_class, flows.get(name, []))
    lines += ["  chain arriving {", f'    type filter hook ingress device "{device}" priority 0; policy accept;']
    if connections is not None:
        # Match any source address: the DUT may have translated it.
        lines.append(f"    ip daddr {connections.servers} tcp dport {connections.port} accept")
    for name, traffic_class in classes.items():
        for match in _matches(name, traffic_class) if not traffic_class.stream else _by_flow(name, flows):
            lines.append(f'    {match} counter name "{_PREFIX}{name}" drop')
    # ARP and neighbour discovery are not test traffic.
    lines += [f'    meta l4proto {{ udp, tcp }} counter name "{_PREFIX}{OTHER}" drop', "  }", "}"]
    return "\n".join(lines) + "\n"


def _sets(name: str, c: TrafficClass, flows: list[Flow]) -> list[str]:
    """The class's lists as nft sets. They declare their size, which makes lookups cheap."""
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
    """The match of a class that is declared by a stream; none for a class without flows."""
    return [f"meta l4proto {{ udp, tcp }} ip saddr . th dport @{_PREFIX}{name}-flows"] if flows.get(name) else []


def _matches(name: str, c: TrafficClass) -> list[str]:
    """The matches of a class, one for each address family that it can contain."""
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
