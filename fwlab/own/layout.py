# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that rules mean: its interfaces, the networks behind them, and addresses that are its own."""

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from fwlab.model.errors import BadInput
from fwlab.own.rules import Rules, names_it

#: The loopback interface, and the name that a packet has in place of an interface where the machine itself is an end.
LO, SELF = "lo", "self"
#: The machine's address on every link.
LINK_LOCAL = "fe80::1/64"
#: Multicast groups that the machine joins.
MAX_GROUPS = 50
#: What interfaces are called that no rule names: the second where a wildcard means the first.
SPARE = ("eth", "other")
#: Interfaces that are made; each has a network behind it.
MAX_INTERFACES = 500
#: Addresses that no router forwards from or to.
NO_HOST = tuple(map(ipaddress.ip_network, ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3", "::/127", "ff00::/8")))


@dataclass(frozen=True)
class Layout:
    """The interfaces of the machine, each with a network behind it; its further addresses, and its multicast groups."""

    interfaces: tuple[str, ...]
    own: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def number(self, name: str) -> int:
        """The number of an interface, from 1."""
        return self.interfaces.index(name) + 1

    def gateway(self, name: str, version: int) -> str:
        """The machine's own address there."""
        if name == LO:
            return self.host(LO, version)
        return f"{self._network(name)}.1" if version == 4 else f"2001:2:0:{self.number(name):x}::1"

    def host(self, name: str, version: int) -> str:
        """A host behind an interface."""
        if name == LO:
            return "127.0.0.1" if version == 4 else "::1"
        return f"{self._network(name)}.10" if version == 4 else f"2001:2:0:{self.number(name):x}::10"

    def broadcast(self, name: str) -> str:
        """The address of all on the network there."""
        return f"{self._network(name)}.255"

    def _network(self, name: str) -> str:
        number = self.number(name)
        return f"198.{18 + number // 256}.{number % 256}"

    def words(self) -> str:
        """What the machine was given, on one line."""
        own = f"; its own addresses: {', '.join((*self.own, *self.groups))}" if self.own or self.groups else ""
        return f"interfaces: {', '.join(self.interfaces)}{own}"

    def addresses(self) -> dict[str, list[str]]:
        """What a bench prepares: the machine's addresses with their prefixes, by interface."""
        return {
            name: [f"{self.gateway(name, 4)}/24", f"{self.gateway(name, 6)}/64", LINK_LOCAL] for name in self.interfaces
        }


def layout_of(several: Iterable[Rules], own: Iterable[str] = ()) -> Layout:
    """A machine on which all of these rules mean something: with the interfaces that they name, two at least.

    Addresses that rules for the machine itself name alone are its own.
    """
    several = list(several)
    names = list(dict.fromkeys(name for rules in several for name in rules.interfaces()))
    if len(names) > MAX_INTERFACES:
        message = f"the rules name {len(names)} interfaces; at most {MAX_INTERFACES} can be made"
        raise BadInput(message, "name alike ones by a wildcard")
    asked = [match for rules in several for match in rules.matches() if match.field in ("iif", "oif")]
    free = [name for word in SPARE for name in islice((f"{word}{n}" for n in count() if f"{word}{n}" not in names), 2)]
    spare = iter(sorted(free, key=lambda name: any(names_it(low, name) for one in asked for low, _ in one.spans)))
    # A rule for all interfaces but one means those that no rule names as well, such as Docker's for the outside. Others
    # may be kept apart by rules of their own, so this one comes first.
    if any(match.negated and (LO, LO) not in match.spans for match in asked):
        names.insert(0, next(spare))
    while len(names) < 2:
        names.append(next(spare))
    named = [one for rules in several for one in _named_addresses(rules)]
    addresses = dict.fromkeys(own)
    addresses |= dict.fromkeys(str(one) for one in named if not any(one in network for network in NO_HOST))
    groups = dict.fromkeys(str(one) for one in named if one.is_multicast)
    return Layout(tuple(names), tuple(addresses), tuple(groups)[:MAX_GROUPS])


def _named_addresses(rules: Rules) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Single addresses that rules for the machine itself name, in chains that no other packets enter."""
    for where, ways in rules.reached_from().items():
        hooks = {hook for hook, _ in ways}
        ends = {"input": "daddr", "output": "saddr"}.get(min(hooks)) if len(hooks) == 1 else None
        for _, way in ways:
            for match in (*way, *(m for rule in rules.of(rules.chains[where]) for m in rule.matches)):
                if match.field == ends and not match.negated:
                    yield from (ipaddress.ip_address(low) for low, high in match.spans if low == high)
