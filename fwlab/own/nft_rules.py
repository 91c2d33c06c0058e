# SPDX-License-Identifier: GPL-2.0-or-later
"""One rule as `nft -j` prints it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fwlab.own.names import PER, Span, Unread, addresses_of, flags_of, side_of, value_of
from fwlab.own.packets import FRAGMENT, HOP_BY_HOP, OPTIONS, ROUTING, TCP
from fwlab.own.rules import FLAGS, HIGHEST, MAX_ELEMENTS, Key, Match, Rule, for_each


def nft_rule(key: Key, one: dict[str, Any], text: str, named: Mapping[tuple[str, str, str], Any]) -> Rule:
    """The rule that this entry of the list is. named: the elements of each set and map."""
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
    return replace(rule, matches=tuple(matches), unread=tuple(unread), targets=for_each(targets, either))


def _nft_limit(what: Mapping[str, Any]) -> tuple[float, int] | None:
    if what.get("rate_unit", "packets") != "packets":
        return None
    return what["rate"] / PER[what["per"]], what.get("burst", 5)


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
            yield Match(name, (side_of(operator, int(right), HIGHEST[name]),))
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
            return addresses_of(6 if ":" in str(one) else 4, str(one))
        value = value_of(name, one, six=any(match.spans == ((58, 58),) for match in implied))
        return value, value

    def _flags(self, operator: str, left: Mapping[str, Any], right: Any) -> Match:
        mask = 63
        if "&" in left:
            inner, given = left["&"]
            if _field(inner)[0] != "flags":
                raise Unread("mask")
            mask = flags_of(given)
        wanted = flags_of(right)
        if operator == "in" or (operator == "!=" and "&" in left and wanted == 0):
            asked = wanted or mask
            return Match("flags", tuple((one, one) for one in FLAGS if one & asked))
        return Match("flags", tuple((one, one) for one in FLAGS if one & mask == wanted), operator == "!=")


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
