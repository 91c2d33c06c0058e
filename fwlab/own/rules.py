# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules as data, read from what the kernel's own tools print of them: `nft -j list ruleset` and `iptables-save`.

A rule is what it asks of a packet, field by field, and what it does. What is not understood of a rule's conditions is
named in it, and packets are drawn without it: the kernel decides, and its trace says which rule did.
"""

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from fwlab.own.packets import ACK, FIN, FRAGMENT, HOP_BY_HOP, OPTIONS, PSH, ROUTING, RST, SYN, TCP, URG
from fwlab.rulesets.kinds.iptables import CHAINS, words

#: (family, table, chain, handle): how the trace names a rule; a chain's policy has the handle 0.
Key = tuple[str, str, str, int]
#: A range of numbers, or of names, whose ends are the same.
Span = tuple[Any, Any]

#: The highest number of each field. Addresses depend on the version.
HIGHEST = {"proto": 255, "sport": 65535, "dport": 65535, "dscp": 63, "ttl": 255, "type": 255, "code": 255, "id": 65535}
HIGHEST |= {"length": 65535, "version": 6, "flags": 63, "header": 255}
#: What kind of address a packet is for.
KINDS = ("local", "unicast", "broadcast", "multicast")
#: In place of the number of an extension header: none.
NO_HEADER = 59
STATES = ("new", "established", "related", "invalid", "untracked")
#: Flags that packets are drawn with.
FLAGS = (SYN, SYN | ACK, ACK, PSH | ACK, FIN | ACK, RST, RST | ACK, SYN | FIN, FIN | PSH | URG, 0)
_FLAG = {
    "fin": FIN,
    "syn": SYN,
    "rst": RST,
    "psh": PSH,
    "ack": ACK,
    "urg": URG,
    "ecn": 0,
    "cwr": 0,
    "all": 63,
    "none": 0,
}
PROTOCOLS = {"icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "dccp": 33, "gre": 47, "esp": 50, "ah": 51, "icmpv6": 58}
PROTOCOLS |= {"ipv6-icmp": 58, "sctp": 132, "udplite": 136, "ipcomp": 108, "comp": 108, "ipencap": 4, "ipv6": 41}
PROTOCOLS |= {"ospf": 89, "ospfigp": 89, "vrrp": 112, "carp": 112, "pim": 103, "eigrp": 88, "l2tp": 115, "ipip": 94}
PROTOCOLS |= {"egp": 8, "rsvp": 46, "ipv6-route": 43, "ipv6-frag": 44, "ipv6-nonxt": 59, "ipv6-opts": 60, "isis": 124}
_ICMP = {"echo-reply": 0, "destination-unreachable": 3, "source-quench": 4, "redirect": 5, "echo-request": 8}
_ICMP |= {"router-advertisement": 9, "router-solicitation": 10, "time-exceeded": 11, "parameter-problem": 12}
_ICMP |= {
    "timestamp-request": 13,
    "timestamp-reply": 14,
    "ttl-zero-during-transit": 11,
    "port-unreachable": 3,
    "any": -1,
}
_ICMP6 = {"destination-unreachable": 1, "packet-too-big": 2, "time-exceeded": 3, "parameter-problem": 4}
_ICMP6 |= {"echo-request": 128, "echo-reply": 129, "mld-listener-query": 130, "mld-listener-report": 131}
_ICMP6 |= {"mld-listener-done": 132, "mld-listener-reduction": 132, "nd-router-solicit": 133, "nd-router-advert": 134}
_ICMP6 |= {"nd-neighbor-solicit": 135, "nd-neighbor-advert": 136, "nd-redirect": 137, "mld2-listener-report": 143}
_ICMP6 |= {"router-solicitation": 133, "router-advertisement": 134, "neighbour-solicitation": 135}
_ICMP6 |= {"neighbor-solicitation": 135, "neighbour-advertisement": 136, "neighbor-advertisement": 136}
_DSCP = {f"cs{n}": 8 * n for n in range(8)} | {f"af{n}{m}": 8 * n + 2 * m for n in range(1, 5) for m in range(1, 4)}
_DSCP |= {"ef": 46, "be": 0, "va": 44}


class Unread(Exception):
    """A condition that is not understood."""


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

    @property
    def remembers(self) -> bool:
        """Whether a rule treats a packet by what came before it: a limit, a list that rules write, chance."""
        return any(_REMEMBERS.search(rule.text) for rule in self.rules.values())

    @property
    def by_chance(self) -> bool:
        """Whether a rule matches, or sends a packet somewhere, by chance."""
        return any(_CHANCE.search(rule.text) for rule in self.rules.values())

    def interfaces(self) -> list[str]:
        """Names of interfaces that the rules name, those of a wildcard with a number."""
        found = dict.fromkeys(
            name
            for rule in self.rules.values()
            for match in (*rule.matches, *(m for _, conditions in rule.targets for m in conditions))
            if match.field in ("iif", "oif")
            for name, _ in match.spans
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


def number(version: int, text: str) -> Span:
    """The first and the last address of an address, a prefix or a range."""
    if "-" in text:
        low, _, high = text.partition("-")
        return number(version, low)[0], number(version, high)[1]
    network = ipaddress.ip_network(text, strict=False)
    if network.version != version:
        raise Unread(text)
    return int(network.network_address), int(network.broadcast_address)


def read(listed: str, texts: str = "", saved: Mapping[str, str] | None = None, sets: str = "") -> Rules:
    """The rules of `nft -j list ruleset`.

    texts  `nft -a list ruleset`, for their texts
    saved  what iptables-save and ip6tables-save print, by kind: the conditions of their rules are read there
    sets   what ipset save prints
    """
    objects = json.loads(listed)["nftables"]
    found, named, printed, devices = Rules(), {}, _texts(texts), _devices(texts)
    for entry in objects:
        for kind in ("set", "map"):
            if kind in entry:
                one = entry[kind]
                named[one["family"], one["table"], one["name"]] = one.get("elem", [])
        if "chain" in entry:
            one = entry["chain"]
            where = one["family"], one["table"], one["name"]
            at = devices.get(where, ())
            found.chains[where] = Chain(*where, one.get("hook"), one.get("type"), one.get("policy"), devices=at)
            found.devices += at
        elif "flowtable" in entry:
            given = entry["flowtable"].get("dev", [])
            found.devices += [given] if isinstance(given, str) else given
    for entry in objects:
        if "rule" in entry:
            one = entry["rule"]
            key = one["family"], one["table"], one["chain"], one["handle"]
            found.rules[key] = _nft_rule(key, one, printed.get(key, ""), named)
    for kind, text in (saved or {}).items():
        _join_saved(found, "ip6" if kind == "ip6tables" else "ip", text, _ipsets(sets))
    return found


_OPENED = re.compile(r"(table (\S+) (\S+)|chain (\S+)) \{( # handle \d+)?")


def _devices(listed: str) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """The devices of chains for what arrives there. nft's JSON does not name them."""
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    table, chain = ("", ""), ""
    for line in map(str.strip, listed.splitlines()):
        if opened := _OPENED.fullmatch(line):
            table, chain = ((opened[2], opened[3]), "") if opened[2] else (table, opened[4])
        elif given := re.match(r"type \S+ hook (?:in|e)gress devices? (?:= )?(\{[^}]*\}|\S+)", line):
            found[(*table, chain)] = tuple(re.findall(r'[^\s{},"]+', given[1]))
    return found


def _texts(listed: str) -> dict[Key, str]:
    """The text of each rule by its key."""
    found: dict[Key, str] = {}
    table, chain, begun = ("", ""), "", ""
    for line in listed.splitlines():
        bare = line.strip()
        opened = _OPENED.fullmatch(bare)
        if opened and opened[2]:
            table = opened[2], opened[3]
        elif opened:
            chain = opened[4]
        else:
            begun = f"{begun} {bare}".strip()
            ended = re.fullmatch(r"(.*) # handle (\d+)", begun)
            if ended:
                found[(*table, chain, int(ended[2]))] = ended[1]
            if ended or bare in ("}", "") or begun.startswith(("type ", "flags ", "policy ")):
                begun = ""
    return found


# ---- nft ------------------------------------------------------------------------------------------------------------


def _nft_rule(key: Key, one: dict[str, Any], text: str, named: Mapping[tuple[str, str, str], Any]) -> Rule:
    family = key[0]
    rule = Rule(key, text or json.dumps(one.get("expr", []))[:200])
    matches: list[Match] = [Match("version", ((4, 4),))] * (family == "ip")
    matches += [Match("version", ((6, 6),))] * (family == "ip6")
    unread: list[str] = []
    targets: list[tuple[str, tuple[Match, ...]]] = []
    either: list[tuple[Match, ...]] = []
    reader = _NftReader(family, key[1], named)
    for statement in one.get("expr", []):
        if not statement or not isinstance(statement, dict):  # nft has no JSON for it
            unread.append(str(statement)[:80])
            continue
        kind, what = next(iter(statement.items()))
        try:
            if kind == "match" and isinstance(what["left"], dict) and "concat" in what["left"]:
                either += [*reader.concatenated(what)]
            elif kind == "match":
                matches += reader.matches(what)
            elif kind in ("jump", "goto"):
                targets.append((what["target"], ()))
            elif kind == "vmap":
                targets += reader.targets(what)
            elif kind in ("dnat", "snat", "redirect") and "map" in str(what):
                targets += [
                    one for part in what.values() if isinstance(part, dict) for one in reader.translations(part)
                ]
            elif kind == "counter" and isinstance(what, dict):
                rule = replace(rule, packets=what.get("packets"))
            elif kind == "limit" and isinstance(what, dict):
                rule = replace(rule, limit=_nft_limit(what))
            elif kind == "set":
                limits = [one["limit"] for one in what.get("stmt", []) if "limit" in one]
                rule = replace(rule, limit=_nft_limit(limits[0]) if limits else rule.limit)
            elif kind == "xt":
                unread.append("xt")
        except (Unread, AttributeError, KeyError, TypeError, ValueError, StopIteration) as error:
            unread.append(f"{kind}: {error}" if str(error) else kind)
    return replace(rule, matches=tuple(matches), unread=tuple(unread), targets=_each(targets, either))


def _each(
    targets: list[tuple[str, tuple[Match, ...]]], either: list[tuple[Match, ...]]
) -> tuple[tuple[str, tuple[Match, ...]], ...]:
    """Where a rule leads, for each of several conditions one of which is asked for."""
    if not either:
        return tuple(targets)
    return tuple((target, (*own, *one)) for target, own in targets or [("", ())] for one in either)


_PER = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "sec": 1, "min": 60, "s": 1, "m": 60}
_PER |= {"h": 3600, "d": 86400}


def _nft_limit(what: Mapping[str, Any]) -> tuple[float, int] | None:
    if what.get("rate_unit", "packets") != "packets":
        return None
    return what["rate"] / _PER[what["per"]], what.get("burst", 5)


class _NftReader:
    """Conditions in nft's JSON."""

    def __init__(self, family: str, table: str, named: Mapping[tuple[str, str, str], Any]) -> None:
        self._family, self._table, self._named = family, table, named

    def matches(self, what: Mapping[str, Any]) -> Iterator[Match]:
        operator, left, right = what["op"], what["left"], what["right"]
        if isinstance(left, dict) and ("exthdr" in left or "frag-off" in str(left)):
            yield self._header(operator, left, right)
            return
        if isinstance(left, dict) and ("&" in left or _field(left)[0] == "flags"):
            yield Match("proto", ((TCP, TCP),))
            yield self._flags(operator, left, right)
            return
        name, implied = _field(left)
        yield from implied
        if operator in ("<", ">", "<=", ">="):
            yield Match(name, (_half(operator, int(right), HIGHEST[name]),))
            return
        yield Match(name, tuple(self._spans(name, implied, right)), operator == "!=")

    @staticmethod
    def _header(operator: str, left: Mapping[str, Any], right: Any) -> Match:
        """That a packet has an extension header, or is a fragment."""
        if "exthdr" not in left:
            given = left.get("&", [0, 0])[1]
            if given not in (0x1FFF, 0x2000, 0x3FFF) or right != 0:
                raise Unread("frag-off")
            return Match("header", ((FRAGMENT, FRAGMENT),), negated=operator != "!=")
        header = left["exthdr"]
        found = _HEADERS[header["name"]]
        missing = right is False or (right is True and operator == "!=")
        if "field" in header and header["field"] != "nexthdr":
            missing = False
        return Match("header", ((found, found),), negated=missing)

    def concatenated(self, what: Mapping[str, Any]) -> Iterator[tuple[Match, ...]]:
        """What each element of a set asks for whose elements are of several fields."""
        if what["op"] == "!=":
            raise Unread("concatenation")
        for element in self._elements(what["right"])[:MAX_ELEMENTS]:
            conditions: list[Match] = []
            for part, value in zip(what["left"]["concat"], element["concat"], strict=True):
                name, implied = _field(part)
                conditions += [*implied, Match(name, tuple(self._spans(name, implied, value)))]
            yield tuple(conditions)

    def _elements(self, right: Any) -> list[Any]:
        if isinstance(right, str) and right.startswith("@"):
            found: Any = self._named[self._family, self._table, right[1:]]
        elif isinstance(right, dict) and "set" in right:
            found = right["set"]
        else:
            found = right
        listed = found if isinstance(found, list) else [found]
        return [one["elem"]["val"] if isinstance(one, dict) and "elem" in one else one for one in listed]

    def targets(self, what: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Match, ...]]]:
        """Chains that a verdict map leads to, each with the key that does."""
        keys = what["key"]["concat"] if "concat" in what["key"] else [what["key"]]
        for element in self._elements(what["data"]):
            value, verdict = element
            value = value["elem"]["val"] if isinstance(value, dict) and "elem" in value else value
            values = value["concat"] if isinstance(value, dict) and "concat" in value else [value]
            conditions: list[Match] = []
            for part, one in zip(keys, values, strict=True):
                name, implied = _field(part)
                conditions += [*implied, Match(name, tuple(self._spans(name, implied, one)))]
            jumps = [
                verdict[kind]["target"] for kind in ("jump", "goto") if isinstance(verdict, dict) and kind in verdict
            ]
            yield "".join(jumps), tuple(conditions)

    def translations(self, part: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Match, ...]]]:
        """The keys of a map that says what addresses and ports become; they lead to no chain."""
        if "map" in part:
            yield from self.targets(part["map"])

    def _spans(self, name: str, implied: list[Match], right: Any) -> Iterator[Span]:
        for one in self._elements(right):
            yield self._span(name, implied, one)

    def _span(self, name: str, implied: list[Match], one: Any) -> Span:
        if isinstance(one, dict) and "range" in one:
            low, high = one["range"]
            return self._span(name, implied, low)[0], self._span(name, implied, high)[1]
        if isinstance(one, dict) and "prefix" in one:
            one = f"{one['prefix']['addr']}/{one['prefix']['len']}"
        if isinstance(one, dict):
            raise Unread(next(iter(one)))
        if name in ("saddr", "daddr"):
            return number(6 if ":" in str(one) else 4, str(one))
        value = _value(name, one, six=any(match.spans == ((58, 58),) for match in implied))
        return value, value

    def _flags(self, operator: str, left: Mapping[str, Any], right: Any) -> Match:
        mask = 63
        if "&" in left:
            inner, given = left["&"]
            if _field(inner)[0] != "flags":
                raise Unread("mask")
            mask = _flags_of(given)
        wanted = _flags_of(right)
        if operator == "in" or (operator == "!=" and "&" in left and wanted == 0):
            asked = wanted or mask
            return Match("flags", tuple((one, one) for one in FLAGS if one & asked))
        return Match("flags", tuple((one, one) for one in FLAGS if one & mask == wanted), operator == "!=")


def _flags_of(given: Any) -> int:
    if isinstance(given, int):
        return given & 63
    if isinstance(given, str):
        return _FLAG[given]
    listed = given["|"] if isinstance(given, dict) and "|" in given else given
    total = 0
    for one in listed:
        total |= _flags_of(one)
    return total


_FIELDS = {
    ("ip", "saddr"): ("saddr", 4, None), ("ip", "daddr"): ("daddr", 4, None), ("ip", "protocol"): ("proto", 4, None),
    ("ip", "ttl"): ("ttl", 4, None), ("ip", "dscp"): ("dscp", 4, None), ("ip", "length"): ("length", 4, None),
    ("ip6", "saddr"): ("saddr", 6, None), ("ip6", "daddr"): ("daddr", 6, None), ("ip6", "nexthdr"): ("proto", 6, None),
    ("ip6", "hoplimit"): ("ttl", 6, None), ("ip6", "dscp"): ("dscp", 6, None),
    ("tcp", "sport"): ("sport", 0, 6), ("tcp", "dport"): ("dport", 0, 6), ("tcp", "flags"): ("flags", 0, 6),
    ("udp", "sport"): ("sport", 0, 17), ("udp", "dport"): ("dport", 0, 17),
    ("th", "sport"): ("sport", 0, None), ("th", "dport"): ("dport", 0, None),
    ("icmp", "type"): ("type", 4, 1), ("icmp", "code"): ("code", 4, 1),
    ("icmpv6", "type"): ("type", 6, 58), ("icmpv6", "code"): ("code", 6, 58),
}  # fmt: skip
_HEADERS = {"hbh": HOP_BY_HOP, "rt": ROUTING, "frag": FRAGMENT, "dst": OPTIONS}
_META = {"iifname": "iif", "oifname": "oif", "iif": "iif", "oif": "oif", "l4proto": "proto", "nfproto": "version"}
_META |= {"length": "length", "protocol": "version"}


def _field(left: Mapping[str, Any]) -> tuple[str, list[Match]]:
    """Our name of a field, and what asking for it implies. Raises Unread."""
    if "payload" in left and "field" in left["payload"]:
        payload = left["payload"]
        name, version, proto = _FIELDS.get((payload["protocol"], payload["field"]), ("", 0, None))
        if name:
            implied = [Match("version", ((version, version),))] * bool(version)
            implied += [Match("proto", ((proto, proto),))] * (proto is not None)
            return name, implied
    if "meta" in left and left["meta"]["key"] in _META:
        return _META[left["meta"]["key"]], []
    if "ct" in left and left["ct"]["key"] == "state":
        return "state", []
    if "fib" in left and left["fib"]["result"] == "type" and "daddr" in left["fib"]["flags"]:
        return "kind", []
    if "meta" in left and left["meta"]["key"] == "pkttype":
        return "kind", []
    raise Unread(json.dumps(left))


def _value(name: str, given: Any, *, six: bool = False) -> Any:
    """A value of a field as a number, or as a name where it has names."""
    if name in ("iif", "oif", "state"):
        return str(given)
    if name == "kind":
        found = {"host": "local"}.get(str(given), str(given))
        if found not in KINDS:
            raise Unread(found)
        return found
    if name == "version":
        return {"ipv4": 4, "ip": 4, "ipv6": 6, "ip6": 6}.get(given) or int(given)
    if isinstance(given, int):
        return given
    table = {"proto": PROTOCOLS, "type": _ICMP6 if six else _ICMP, "dscp": _DSCP}.get(name, {})
    low = str(given).lower()
    if low in table:
        return table[low]
    if re.fullmatch(r"\d+|0x[0-9a-f]+", low):
        return int(low, 0)
    raise Unread(f"{name} {given}")


def _half(operator: str, limit: int, highest: int) -> Span:
    return {"<": (0, limit - 1), "<=": (0, limit), ">": (limit + 1, highest), ">=": (limit, highest)}[operator]


# ---- iptables -------------------------------------------------------------------------------------------------------


def _join_saved(found: Rules, family: str, saved: str, sets: Mapping[str, list[Any]]) -> None:
    """Give the rules that iptables made their conditions and texts from what iptables-save prints, in its order."""
    table, place = "", dict[tuple[str, str, str], list[Key]]()
    for key in found.rules:
        place.setdefault(key[:3], []).append(key)
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:].strip()
        elif line.startswith(":"):
            name, policy, counters = [*line[1:].split(), "", ""][:3]
            chain = found.chains.get((family, table, name))
            if chain is not None and name in CHAINS.get(table, ()):
                packets = int(counters[1:].split(":")[0]) if counters else None
                found.chains[chain.key[:3]] = replace(chain, policy=policy.lower(), packets=packets)
        else:
            counted = re.match(r"\[(\d+):\d+\] ", line)
            given = words(line[counted.end() :] if counted else line)
            if given[:1] == ["-A"]:
                key = place[family, table, given[1]].pop(0)
                rule = _saved_rule(key, line[counted.end() :] if counted else line, given[2:], sets)
                found.rules[key] = replace(rule, packets=int(counted[1]) if counted else None)


#: Options of iptables-save that take no value, and those whose value does not say which packets match.
_ALONE = frozenset(
    f"--{word}"
    for word in (
        *("syn", "fragmore", "fraglast", "queue-bypass", "random", "random-fully", "persistent", "log-uid"),
        *("log-tcp-options", "log-ip-options", "log-tcp-sequence", "clamp-mss-to-pmtu", "notrack", "save-mark"),
        "restore-mark",
        "checksum-fill",
    )
)
_SILENT = {"-m"} | {
    f"--{word}"
    for word in (
        *("comment", "limit", "limit-burst", "reject-with", "log-prefix", "log-level", "to-source", "to-destination"),
        *("to-ports", "to", "set-mark", "set-xmark", "set-dscp", "set-dscp-class", "set-mss", "nflog-group"),
        *("nflog-prefix", "ttl-set", "ttl-dec", "ttl-inc", "hl-set", "add-set", "nfmask", "ctmask", "zone", "helper"),
    )
}


def _saved_rule(key: Key, text: str, given: list[str], sets: Mapping[str, list[Any]]) -> Rule:
    version = 6 if key[0] == "ip6" else 4
    reader = _SavedReader(version, sets)
    matches, unread = [Match("version", ((version, version),))], list[str]()
    targets: list[tuple[str, tuple[Match, ...]]] = []
    either: list[tuple[Match, ...]] = []
    limit: list[str] = ["", "5"]
    at, negated = 0, False
    while at < len(given):
        option, value = given[at], given[at + 1] if at + 1 < len(given) else ""
        # Of an option that is not known, the next word is the value unless it looks like another option.
        alone = option in {"!", "-f", *_ALONE} or (option not in _SILENT and value.startswith(("-", "!")))
        at += 1 if alone else 2
        if option == "!":
            negated = True
            continue
        try:
            if option == "--tcp-flags":
                matches.append(reader.flags(value, given[at], negated))
                at += 1
            elif option == "--match-set":
                several = reader.set_match(value, given[at].split(","), negated)
                if len(several) == 1:
                    matches += several[0]
                else:
                    either += several
                at += 1
            elif option in ("-j", "-g"):
                targets += [(value, ())]
            elif option in ("--limit", "--limit-burst"):
                limit[option == "--limit-burst"] = value
            elif option == "--hitcount":  # of the match `recent`: no less than this number of packets
                limit = ["1/day", value]
            else:
                matches += reader.matches(option, value, negated)
        except (Unread, ValueError, KeyError):
            unread.append(f"{option} {value}")
        negated = False
    found = Rule(key, text, tuple(matches), tuple(unread), _each(targets, either))
    if limit[0]:
        rate, _, per = limit[0].partition("/")
        return replace(found, limit=(int(rate) / _PER[per or "second"], int(limit[1])))
    return found


class _SavedReader:
    """Conditions in the words of iptables-save."""

    def __init__(self, version: int, sets: Mapping[str, list[Any]]) -> None:
        self._version, self._sets = version, sets

    def matches(self, option: str, value: str, negated: bool) -> Iterator[Match]:
        plain = {"-i": "iif", "-o": "oif", "--state": "state", "--ctstate": "state"}
        plain |= {"--dst-type": "kind", "--pkt-type": "kind"}
        if option in ("-s", "-d", "--src-range", "--dst-range"):
            name = "saddr" if option in ("-s", "--src-range") else "daddr"
            yield Match(name, (number(self._version, value),), negated)
        elif option in plain:
            listed = [value] if plain[option] in ("iif", "oif") else value.lower().split(",")
            if plain[option] == "state":
                listed = [one for one in listed if one in STATES]  # of NAT's, there may be more
            if plain[option] == "kind":
                listed = [_value("kind", one) for one in listed]
            if not listed:
                raise Unread(value)
            yield Match(plain[option], tuple((one, one) for one in listed), negated)
        elif option == "-p":
            if value != "all":
                proto = _value("proto", value)
                yield Match("proto", ((proto, proto),), negated)
        elif option in ("--sport", "--dport", "--sports", "--dports", "--ports", "--source-port", "--destination-port"):
            yield Match("sport" if option.startswith("--s") else "dport", tuple(_ports(value)), negated)
        elif option in ("--icmp-type", "--icmpv6-type"):
            yield from self._icmp(value, negated)
        elif option in ("-f", "--fragmore", "--fraglast"):
            yield Match("header", ((FRAGMENT, FRAGMENT),), negated)
        elif option == "--rt-type":
            yield Match("header", ((ROUTING, ROUTING),), negated)
        elif option in ("--ttl-lt", "--ttl-gt", "--hl-lt", "--hl-gt"):
            yield Match("ttl", (_half("<" if option.endswith("lt") else ">", int(value), 255),), negated)
        elif option == "--syn":
            yield self.flags("FIN,SYN,RST,ACK", "SYN", negated)
        elif option in ("--dscp", "--ttl-eq", "--hl-eq", "--length"):
            name = {"--dscp": "dscp", "--length": "length"}.get(option, "ttl")
            low, _, high = value.partition(":")
            yield Match(name, ((int(low or "0", 0), int(high or low, 0)),), negated)
        elif option not in _SILENT | _ALONE:
            raise Unread(option)

    def _icmp(self, value: str, negated: bool) -> Iterator[Match]:
        kind, _, code = value.partition("/")
        if kind in ("any", "255"):
            return
        found = _value("type", kind, six=self._version == 6)
        yield Match("type", ((found, found),), negated)
        if code:
            yield Match("code", ((int(code), int(code)),), negated)

    def flags(self, mask: str, wanted: str, negated: bool) -> Match:
        """Those flags that have, of the mask, the wanted ones."""
        asked, set_ = (_flags_of(value.lower().split(",")) for value in (mask, wanted))
        return Match("flags", tuple((one, one) for one in FLAGS if one & asked == set_), negated)

    def set_match(self, name: str, directions: list[str], negated: bool) -> list[tuple[Match, ...]]:
        """What a set of ipset asks for: of one with several parts, what each entry does."""
        if len(directions) == 1:
            spans = tuple(self._part(0, entry[0]) for entry in self._sets[name])
            return [(Match(self._named(0, directions[0]), spans, negated),)]
        if negated:
            raise Unread(name)
        return [
            tuple(one for place, part in enumerate(entry) for one in self._conditions(place, directions[place], part))
            for entry in self._sets[name][:MAX_ELEMENTS]
        ]

    def _conditions(self, place: int, direction: str, part: str) -> Iterator[Match]:
        proto, separator, _ = part.partition(":")
        if place and separator:
            yield Match("proto", ((_value("proto", proto), _value("proto", proto)),))
        yield Match(self._named(place, direction), (self._part(place, part),))

    @staticmethod
    def _named(place: int, direction: str) -> str:
        return ("s" if direction == "src" else "d") + ("port" if place else "addr")

    def _part(self, place: int, part: str) -> Span:
        return next(_ports(part.partition(":")[2] or part)) if place else number(self._version, part)


def _ports(value: str) -> Iterator[Span]:
    for one in value.split(","):
        low, separator, high = one.replace("-", ":").partition(":")
        yield int(low or 0), int((high or 65535) if separator else low)


def _ipsets(saved: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for line in saved.splitlines():
        given = line.split()
        if given[:1] == ["create"]:
            found[given[1]] = []
        elif given[:1] == ["add"] and given[1] in found:
            found[given[1]].append(given[2].split(","))
    return found
