# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules as data: what each asks of a packet, field by field, and what it does.

What is not understood of a rule's conditions is named in it, and packets are drawn without it: the kernel decides, and
its trace says which rule did.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from fwlab.own.names import Span
from fwlab.own.packets import ACK, FIN, PSH, RST, SYN, URG

#: (family, table, chain, handle): how the trace names a rule; a chain's policy has the handle 0.
Key = tuple[str, str, str, int]

#: The highest number of each field. Addresses depend on the version.
HIGHEST = {"proto": 255, "sport": 65535, "dport": 65535, "dscp": 63, "ttl": 255, "type": 255, "code": 255, "id": 65535}
HIGHEST |= {"length": 65535, "version": 6, "flags": 63, "header": 255}
#: In place of the number of an extension header: none.
NO_HEADER = 59
STATES = ("new", "established", "related", "invalid", "untracked")
#: Flags that packets are drawn with.
FLAGS = (SYN, SYN | ACK, ACK, PSH | ACK, FIN | ACK, RST, RST | ACK, SYN | FIN, FIN | PSH | URG, 0)


@dataclass(frozen=True)
class Match:
    """One field has one of these values, or with `negated` none of them."""

    field: str
    spans: tuple[Span, ...]
    negated: bool = False


#: A hook, and the conditions of the jumps from its base chain on.
Way = tuple[str, tuple[Match, ...]]


@dataclass(frozen=True)
class Rule:
    """One rule.

    key       how the trace names it
    text      as its tool prints it
    matches   what it asks for, all of it
    unread    conditions that were not understood
    targets   chains that it may jump or go to, each with conditions of its own (a verdict map's key)
    packets   its counter, if it has one
    limit     (packets per second, burst), if it has a limit
    """

    key: Key
    text: str
    matches: tuple[Match, ...] = ()
    unread: tuple[str, ...] = ()
    targets: tuple[tuple[str, tuple[Match, ...]], ...] = ()
    packets: int | None = None
    limit: tuple[float, int] | None = None


@dataclass(frozen=True)
class Chain:
    """A chain: its hook if it is a base chain, its policy, and the packets that this decided about.

    devices  those at which it is, of a chain for what arrives there
    """

    family: str
    table: str
    name: str
    hook: str | None = None
    kind: str | None = None
    policy: str | None = None
    packets: int | None = None
    devices: tuple[str, ...] = ()

    @property
    def way(self) -> tuple[Match, ...]:
        """What a packet must be to enter a base chain."""
        return (Match("iif", tuple((name, name) for name in self.devices)),) if self.devices else ()

    @property
    def key(self) -> Key:
        """How the trace names its policy."""
        return self.family, self.table, self.name, 0


@dataclass
class Rules:
    """All rules of a ruleset, in the order in which each chain has them.

    devices  interfaces at which chains or flow tables are
    """

    chains: dict[tuple[str, str, str], Chain] = field(default_factory=dict)
    rules: dict[Key, Rule] = field(default_factory=dict)
    devices: list[str] = field(default_factory=list)

    @cached_property
    def _by_chain(self) -> dict[tuple[str, str, str], list[Rule]]:
        found: dict[tuple[str, str, str], list[Rule]] = {}
        for rule in self.rules.values():
            found.setdefault(rule.key[:3], []).append(rule)
        return found

    def of(self, chain: Chain) -> list[Rule]:
        """The rules of this chain. Ask once all are there."""
        return self._by_chain.get(chain.key[:3], [])

    def words(self, key: Key) -> str:
        """What decided, in words."""
        if key in self.rules:
            return self.rules[key].text
        chain = self.chains.get(key[:3])
        return f"policy {chain.policy or 'accept'} of {key[2]} ({key[0]} {key[1]})" if chain else f"chain {key[2]}"

    def packets(self, key: Key) -> int | None:
        """The counter of a rule or a policy."""
        if key in self.rules:
            return self.rules[key].packets
        chain = self.chains.get(key[:3])
        return chain.packets if chain else None

    @cached_property
    def _ways(self) -> dict[tuple[str, str, str], list[Way]]:
        found: dict[tuple[str, str, str], list[Way]] = {}
        waiting: list[tuple[Chain, str, tuple[Match, ...], int]] = []
        waiting += [(chain, chain.hook, chain.way, 0) for chain in self.chains.values() if chain.hook]
        while waiting:
            chain, hook, way, depth = waiting.pop(0)
            known = found.setdefault(chain.key[:3], [])
            if len(known) >= MAX_WAYS or depth > MAX_DEPTH or (hook, way) in known:
                continue
            known.append((hook, way))
            for rule in self.of(chain):
                for target, conditions in rule.targets:
                    called = self.chains.get((chain.family, chain.table, target))
                    if called is not None:
                        waiting.append((called, hook, (*way, *rule.matches, *conditions), depth + 1))
        return found

    def reached_from(self) -> dict[tuple[str, str, str], list[Way]]:
        """For each chain the hooks from which a packet gets there, each with the conditions on the way; a few each."""
        return self._ways

    @cached_property
    def translating(self) -> frozenset[tuple[str, str, str]]:
        """Chains that packets enter for NAT alone, which decides whose address a packet gets, not whether it passes."""
        entered: dict[bool, set[tuple[str, str, str]]] = {True: set(), False: set()}
        waiting = [(chain, chain.kind == "nat") for chain in self.chains.values() if chain.hook]
        while waiting:
            chain, nat = waiting.pop()
            if chain.key[:3] not in entered[nat]:
                entered[nat].add(chain.key[:3])
                called = [(*chain.key[:2], target) for rule in self.of(chain) for target, _ in rule.targets]
                waiting += [(self.chains[one], nat) for one in called if one in self.chains]
        return frozenset(entered[True] - entered[False])

    @property
    def remembers(self) -> bool:
        """Whether a rule treats a packet by what came before it: a limit, a list that rules write, chance."""
        return any(_REMEMBERS.search(rule.text) for rule in self.rules.values())

    @property
    def by_chance(self) -> bool:
        """Whether a rule matches, or sends a packet somewhere, by chance."""
        return any(_CHANCE.search(rule.text) for rule in self.rules.values())

    def matches(self) -> Iterator[Match]:
        """The conditions of all rules, and of their jumps."""
        for rule in self.rules.values():
            yield from rule.matches
            for _, conditions in rule.targets:
                yield from conditions

    def interfaces(self) -> list[str]:
        """Names of interfaces that the rules name, those of a wildcard with a number."""
        found = dict.fromkeys(
            name for match in self.matches() if match.field in ("iif", "oif") for name, _ in match.spans
        )
        found |= dict.fromkeys(self.devices)
        return [name for name in dict.fromkeys(map(concrete, found)) if name != "lo" and _NAME.fullmatch(name)]


#: What the kernel takes for an interface's name.
_NAME = re.compile(r"(?!\.{1,2}$)[^/:\s]{1,15}")
_REMEMBERS = re.compile(
    r"\b(limit|hashlimit|recent|connlimit|quota|statistic|numgen|update @|add @|delete @|ct count|rateest|SET)\b"
)
#: Elements of several fields that are asked for, of each set.
MAX_ELEMENTS = 64
_CHANCE = re.compile(r"--mode random\b|\bnumgen random\b")
#: Ways to a chain that are followed, and jumps on them.
MAX_WAYS, MAX_DEPTH = 6, 8


def concrete(pattern: str) -> str:
    """An interface that this name or wildcard means."""
    return pattern[:-1] + "0" if pattern.endswith(("+", "*")) else pattern


def names_it(pattern: str, name: str) -> bool:
    """Whether a name or wildcard means this interface."""
    return name.startswith(pattern[:-1]) if pattern.endswith(("+", "*")) else name == pattern


def for_each(
    targets: list[tuple[str, tuple[Match, ...]]], either: list[tuple[Match, ...]]
) -> tuple[tuple[str, tuple[Match, ...]], ...]:
    """Where a rule leads, for each of several conditions one of which is asked for."""
    if not either:
        return tuple(targets)
    return tuple((target, (*own, *one)) for target, own in targets or [("", ())] for one in either)
