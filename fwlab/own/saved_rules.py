# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules as iptables-save and ip6tables-save print them, and the sets of ipset that they name."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from fwlab.own.names import PER, Span, Unread, addresses_of, flags_of, side_of, value_of
from fwlab.own.packets import FRAGMENT, ROUTING
from fwlab.own.rules import FLAGS, MAX_ELEMENTS, STATES, Key, Match, Rule, Rules, for_each
from fwlab.rulesets.kinds.iptables import CHAINS, words


def join_saved(found: Rules, family: str, saved: str, sets: Mapping[str, list[Any]]) -> None:
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
    found = Rule(key, text, tuple(matches), tuple(unread), for_each(targets, either))
    if limit[0]:
        rate, _, per = limit[0].partition("/")
        return replace(found, limit=(int(rate) / PER[per or "second"], int(limit[1])))
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
            yield Match(name, (addresses_of(self._version, value),), negated)
        elif option in plain:
            listed = [value] if plain[option] in ("iif", "oif") else value.lower().split(",")
            if plain[option] == "state":
                listed = [one for one in listed if one in STATES]  # of NAT's, there may be more
            if plain[option] == "kind":
                listed = [value_of("kind", one) for one in listed]
            if not listed:
                raise Unread(value)
            yield Match(plain[option], tuple((one, one) for one in listed), negated)
        elif option == "-p":
            if value != "all":
                proto = value_of("proto", value)
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
            yield Match("ttl", (side_of("<" if option.endswith("lt") else ">", int(value), 255),), negated)
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
        found = value_of("type", kind, six=self._version == 6)
        yield Match("type", ((found, found),), negated)
        if code:
            yield Match("code", ((int(code), int(code)),), negated)

    def flags(self, mask: str, wanted: str, negated: bool) -> Match:
        """Those flags that have, of the mask, the wanted ones."""
        asked, set_ = (flags_of(value.lower().split(",")) for value in (mask, wanted))
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
            yield Match("proto", ((value_of("proto", proto), value_of("proto", proto)),))
        yield Match(self._named(place, direction), (self._part(place, part),))

    @staticmethod
    def _named(place: int, direction: str) -> str:
        return ("s" if direction == "src" else "d") + ("port" if place else "addr")

    def _part(self, place: int, part: str) -> Span:
        return next(_ports(part.partition(":")[2] or part)) if place else addresses_of(self._version, part)


def _ports(value: str) -> Iterator[Span]:
    for one in value.split(","):
        low, separator, high = one.replace("-", ":").partition(":")
        yield int(low or 0), int((high or 65535) if separator else low)


def ipsets(saved: str) -> dict[str, list[Any]]:
    """By name, the elements of each set."""
    found: dict[str, list[Any]] = {}
    for line in saved.splitlines():
        given = line.split()
        if given[:1] == ["create"]:
            found[given[1]] = []
        elif given[:1] == ["add"] and given[1] in found:
            found[given[1]].append(given[2].split(","))
    return found
