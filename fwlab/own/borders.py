# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets at the borders of what rules name, as conversations that a bench can play.

Of each rule the conditions on the way to it and its own are brought together; one packet fulfils them all, and others
differ from it in one condition: they lie at the ends of its ranges and just outside, come by another interface, have
other flags, or belong to a connection in another state. Whether a packet reaches the rule, the kernel says.
"""

import ipaddress
import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from fwlab.own.layout import LO, NO_HOST, SELF, Layout
from fwlab.own.names import KINDS, Span
from fwlab.own.packets import (
    ACK,
    ECHO,
    FRAGMENT,
    HOP_BY_HOP,
    ICMP,
    ICMPV6,
    OPTIONS,
    ROUTING,
    SYN,
    TCP,
    UDP,
    Packet,
    is_error,
    turned,
)
from fwlab.own.rules import FLAGS, HIGHEST, NO_HEADER, STATES, Key, Match, Rule, Rules, Way, names_it

Step = dict[str, Any]
#: One packet with the fields of a rule's conditions: iif, oif, version, saddr, daddr, proto, ..., and state.
Point = dict[str, Any]

SPORT, DPORT = 40_000, 8080
#: Ranges of one condition whose ends are tried; of a longer list, the rest is drawn.
MAX_SPANS = 64
#: Other interfaces that a condition on one is tried with, and interfaces between which plain packets pass.
MAX_OTHERS, MAX_PLAIN = 4, 6
#: Of a limit: largest burst that is tried, further packets behind it, and the longest wait for more (s).
MAX_BURST, BEHIND, MAX_WAIT_S = 60, 3, 2.0
#: Extension headers of IPv6 that packets are drawn with, but for the fragment's.
HEADERS = (HOP_BY_HOP, ROUTING, OPTIONS)
#: Bytes behind the last header of a packet that is sent in two fragments.
IN_PARTS = 40
#: Hooks that a packet enters when its TTL is one less than on its arrival.
LATER = ("forward", "postrouting")
#: Steps of a first packet with all that follows.
WHOLE = 5
#: Distance within a chain up to which two rules are brought together, pairs that are looked at, and packets from them.
NEAR, MAX_PAIRS, MAX_FROM_PAIRS = 200, 20_000, 1500
#: By the hook that an answer meets, that of the packet which it answers; rules that may have let that one pass, the
#: least particular first, and how many of these an answer is tried with besides the plainest packet.
OPENED_AT = {"forward": "forward", "input": "output"}
OPENERS, ANSWERS = 40, 2
_LETS_PASS = re.compile(r" -j ACCEPT\b|\baccept$")
#: The first and last address of IPv4's loopback network.
_LOOPBACK = int(ipaddress.IPv4Address("127.0.0.0")), int(ipaddress.IPv4Address("127.255.255.255"))


@dataclass(frozen=True)
class Drawn:
    """A conversation.

    subjects  rules all of whose conditions a packet fulfils, each with that packet's step
    """

    steps: list[Step]
    subjects: tuple[tuple[Key, int], ...] = ()

    @property
    def identity(self) -> str:
        """Equal for the same conversation."""
        return json.dumps(self.steps, sort_keys=True)


def draw(rules: Rules, layout: Layout, seed: int | None = 1) -> list[Drawn]:
    """Conversations at the borders of these rules, each once, those between the same interfaces together.

    seed  draws some ends of long lists; without one, only packets that fulfil a rule's conditions, and plain ones
    """
    chance = None if seed is None else random.Random(seed)
    found: dict[str, Drawn] = {}
    more = (*_of_pairs(_pairs(rules), layout), *_answers(rules, layout)) if chance else ()
    for drawn in (*_plain(layout), *_to_many(layout), *_of_rules(rules, layout, chance), *more):
        known = found.get(drawn.identity)
        subjects = (*(known.subjects if known else ()), *drawn.subjects)
        found[drawn.identity] = Drawn(drawn.steps, tuple(dict.fromkeys(subjects)))
    return together(found.values())


def together(drawn: Iterable[Drawn]) -> list[Drawn]:
    """Those between the same interfaces behind each other: a bench changes its routes less often."""
    return sorted(drawn, key=lambda one: (one.steps[0]["iface"], one.steps[0].get("out", "")))


def _plain(layout: Layout) -> Iterator[Drawn]:
    """The plainest conversation of each protocol between each two interfaces, and with the machine itself."""
    names = [*layout.interfaces[:MAX_PLAIN], SELF]
    for iif in names:
        for oif in names:
            for version in (4, 6):
                for proto in (TCP, UDP, ICMP if version == 4 else ICMPV6):
                    if iif != oif:
                        point = {"iif": iif, "oif": oif, "version": version, "proto": proto}
                        yield Drawn(conversation(_filled(point, layout), whole=True))
    for iif, oif in ((LO, LO), tuple(names[:2]), (names[0], SELF)):
        for version in (4, 6):
            point = {"iif": iif, "oif": oif, "version": version}
            for proto in (TCP, UDP, ICMP) if iif == LO else ():
                yield Drawn(conversation(_filled({**point, "proto": proto}, layout)))
            for header in (FRAGMENT, *(HEADERS if version == 6 else ())) if iif != LO else ():
                yield Drawn(conversation(_filled({**point, "proto": UDP, "header": header}, layout)))


def _to_many(layout: Layout) -> Iterator[Drawn]:
    """On each interface a broadcast and a packet to all hosts, and who asks for an address."""
    for name in layout.interfaces:
        point = {"iif": name, "oif": SELF, "version": 4}
        for address in (layout.broadcast(name), "224.0.0.1"):
            for proto in (TCP, UDP, ICMP):
                to_all = {**point, "proto": proto, "daddr": int(ipaddress.ip_address(address))}
                yield Drawn(conversation(_filled(to_all, layout)))
        for proto in (UDP, ICMPV6):
            to_all = {**point, "version": 6, "proto": proto, "daddr": int(ipaddress.ip_address("ff02::1"))}
            yield Drawn(conversation(_filled(to_all, layout)))
        asking = {**point, "proto": UDP, "saddr": 0, "daddr": highest("daddr", 4), "sport": 68, "dport": 67}
        yield Drawn(conversation(_filled(asking, layout)))


def _of_rules(rules: Rules, layout: Layout, chance: random.Random | None) -> Iterator[Drawn]:
    for where, ways in rules.reached_from().items():
        for rule in rules.of(rules.chains[where]):
            conditions = [extra for _, extra in rule.targets] or [()]
            for hook, way in ways:
                for extra in conditions:
                    own = (*rule.matches, *extra)
                    for version in (4, 6):
                        yield from _of_rule(rule, hook, way, own, version, layout, chance)


#: Two rules that one packet is to fulfil, the hook where it meets them, and the conditions on its way there.
Two = tuple[Rule, Rule, Way]


def _of_pairs(pairs: Iterator[Two], layout: Layout) -> Iterator[Drawn]:
    """Packets that fulfil what two rules ask for: which is first decides."""
    found = 0
    for one, other, (hook, way) in islice(pairs, MAX_PAIRS):
        own = (*way, *one.matches, *other.matches)
        asked = [match for match in own if match.field != "version"]
        for version in _numbers("version", own)[:1]:
            for ends in _ends(hook, asked, layout):
                point = _solved(asked, {"version": version, **ends}, layout)
                if point is not None and found < MAX_FROM_PAIRS:
                    found += 1
                    yield Drawn(conversation(_sent(point, hook)))


def _pairs(rules: Rules) -> Iterator[Two]:
    """Rules of a chain, neighbours before others, and of two hooks."""
    chains = [(rules.of(rules.chains[where]), ways[0]) for where, ways in rules.reached_from().items()]
    for distance in range(1, NEAR):
        yield from _at_distance(chains, distance)
        if distance == 1:
            yield from _of_two_hooks(rules)


def _at_distance(chains: Iterable[tuple[list[Rule], Way]], distance: int) -> Iterator[Two]:
    for several, way in chains:
        yield from ((one, other, way) for one, other in zip(several, several[distance:], strict=False))


def _answers(rules: Rules, layout: Layout) -> Iterator[Drawn]:
    """Packets that fulfil a rule's conditions as answers in a connection that another rule's packet has opened.

    A rule that blocks somebody blocks his answers, too, unless one for established connections comes first.
    """
    ways = rules.reached_from()
    openers = {
        hook: sorted(
            (
                (*_turned_matches((*way, *rule.matches)),)
                for where, several in ways.items()
                for asked_by, way in several[:1]
                for rule in rules.of(rules.chains[where])
                if asked_by == OPENED_AT[hook] and _LETS_PASS.search(rule.text)
                if not any(match.field == "state" for match in rule.matches)
            ),
            key=len,
        )[:OPENERS]
        for hook in OPENED_AT
    }
    looked_at = 0
    for where, several in ways.items():
        for hook, way in several[:1]:
            for rule in rules.of(rules.chains[where]) if hook in OPENED_AT else ():
                own = (*way, *rule.matches)
                if any(match.field == "state" for match in own) or _LETS_PASS.search(rule.text):
                    continue
                found = 0
                for opener in ((), *openers[hook]):
                    looked_at += 1
                    if looked_at > MAX_PAIRS or found > ANSWERS:
                        break
                    for drawn in _answer((*own, *opener), hook, layout):
                        found += 1
                        yield drawn


def _answer(conditions: tuple[Match, ...], hook: str, layout: Layout) -> Iterator[Drawn]:
    asked = [match for match in conditions if match.field != "version"]
    for version in _numbers("version", conditions)[:1]:
        for ends in [*_ends(hook, asked, layout)][:1]:
            point = _solved(asked, {"version": version, **ends}, layout)
            if point is not None and point["iif"] not in (SELF, LO):
                yield Drawn(conversation({**_sent(point, hook), "state": "established"}, reverse=True))


def _turned_matches(matches: Iterable[Match]) -> Iterator[Match]:
    """What an answer has to be to packets that fulfil these, as far as that can be told."""
    for match in matches:
        if match.field in _TURNED:
            yield replace(match, field=_TURNED[match.field])


_TURNED = {
    "saddr": "daddr",
    "daddr": "saddr",
    "sport": "dport",
    "dport": "sport",
    "iif": "oif",
    "oif": "iif",
    "version": "version",
    "proto": "proto",
}


def beyond(rules: Rules, layout: Layout, past: Mapping[Key, tuple[Match, ...]], seed: int) -> Iterator[Drawn]:
    """Packets at the borders of rules that are reached only past others.

    past  for each such rule, the conditions that lead past them
    """
    chance, ways = random.Random(seed), rules.reached_from()
    chains: dict[tuple[str, str, str], Way] = {}
    for key, conditions in past.items():
        rule = rules.rules[key]
        for hook, way in ways[key[:3]]:
            chains.setdefault(key[:3], (hook, (*way, *conditions)))
            for extra in [one for _, one in rule.targets] or [()]:
                for version in (4, 6):
                    own = (*rule.matches, *extra)
                    yield from _of_rule(rule, hook, (*way, *conditions), own, version, layout, chance)
    whole = [(rules.of(rules.chains[where]), way) for where, way in chains.items()]
    yield from _of_pairs((two for distance in range(1, NEAR) for two in _at_distance(whole, distance)), layout)


def _of_two_hooks(rules: Rules) -> Iterator[Two]:
    """Rules that change a packet before or after the one that decides about it, with each that may decide."""
    ways = rules.reached_from()
    for where, of_chain in ways.items():
        for hook, way in of_chain[:1]:
            for other, of_other in ways.items() if hook in ("prerouting", "postrouting") else ():
                for deciding, further in of_other[:1]:
                    if deciding in ("forward", "input", "output"):
                        both = deciding, (*way, *further)
                        several = rules.of(rules.chains[where])
                        yield from ((one, two, both) for one in several for two in rules.of(rules.chains[other]))


def _of_rule(
    rule: Rule,
    hook: str,
    way: tuple[Match, ...],
    own: tuple[Match, ...],
    version: int,
    layout: Layout,
    chance: random.Random | None,
) -> Iterator[Drawn]:
    addressed = any(match.field in ("saddr", "daddr", "type") for match in (*way, *own))
    asked = [match for match in (*way, *own) if match.field != "version"]
    meant = version in _numbers("version", (*way, *own))
    if not meant and (addressed or chance is None):
        return
    for ends in (*_ends(hook, asked, layout), *_to_itself(hook, asked, version, layout)):
        base = _solved(asked, {"version": version, **ends}, layout)
        if base is None:
            continue
        sent = _sent(base, hook)
        yield from _fulfilling(sent, rule) if meant else [Drawn(conversation(sent, whole=True))]
        if rule.limit is not None:
            yield Drawn(_burst(sent, rule.limit))
        if chance is None:
            continue
        for match in own:
            for point in _varied(base, match, layout, chance):
                for state in _ways_of(point):
                    yield Drawn(conversation(_sent(point, hook), reverse=state))


def _sent(point: Point, hook: str) -> Point:
    """The packet as it has to be sent to be like this where it enters a hook."""
    if hook not in LATER or "ttl" not in point or point["iif"] == SELF:
        return point
    return {**point, "ttl": min(point["ttl"] + 1, HIGHEST["ttl"])}


def _fulfilling(point: Point, rule: Rule) -> Iterator[Drawn]:
    for reverse in _ways_of(point):
        steps = conversation(point, reverse=reverse, whole=True)
        follows = point["state"] in ("established", "related") or "error" in steps[-1]
        subject = len(steps) - 1 if follows and len(steps) < WHOLE else 0
        yield Drawn(steps, ((rule.key, subject),))


def _ways_of(point: Point) -> tuple[bool, ...]:
    """Whether the packet may be of a connection that it did not open, as well."""
    return (False, True) if point.get("state") == "established" else (False,)


def _numbers(name: str, matches: Iterable[Match]) -> list[int]:
    return [one for one in (4, 6) if all(_fulfils(match, one) for match in matches if match.field == name)]


def _ends(hook: str, matches: list[Match], layout: Layout) -> Iterator[Point]:
    """Where packets of this hook come from and go to."""
    come = [name for name in layout.interfaces if _fulfils_all("iif", name, matches)]
    leave = [name for name in layout.interfaces if _fulfils_all("oif", name, matches)]
    if hook in ("ingress", "prerouting", "forward", "postrouting"):
        pairs = [(one, other) for one in come for other in leave]
        pair = next((pair for pair in pairs if pair[0] != pair[1]), next(iter(pairs), None))
        if pair:
            yield {"iif": pair[0], "oif": pair[1]}
    if hook in ("ingress", "input", "prerouting") and come:
        yield {"iif": come[0], "oif": SELF}
    if hook in ("output", "postrouting") and leave:
        yield {"iif": SELF, "oif": leave[-1]}
    asked = [match for match in matches if match.field in ("iif", "oif")]
    by_name = any((LO, LO) in match.spans and not match.negated for match in asked) or any(
        _LOOPBACK[0] <= low <= _LOOPBACK[1]
        for match in matches
        if match.field in ("saddr", "daddr") and not match.negated
        for low, _ in match.spans
    )
    if by_name and hook in ("input", "output") and all(_fulfils(match, LO) for match in asked):
        yield {"iif": LO, "oif": LO}


def _to_itself(hook: str, matches: list[Match], version: int, layout: Layout) -> Iterator[Point]:
    """Where packets come from that are addressed to the machine, and where NAT's rules may send them."""
    if hook == "prerouting":
        come = [name for name in layout.interfaces if _fulfils_all("iif", name, matches)][:1]
        for iif in come:
            own = int(ipaddress.ip_address(layout.gateway(iif, version)))
            others = [name for name in layout.interfaces if name != iif][:MAX_OTHERS]
            yield from ({"iif": iif, "oif": oif, "daddr": own} for oif in others)


def _fulfils_all(name: str, value: Any, matches: Iterable[Match]) -> bool:
    return all(_fulfils(match, value) for match in matches if match.field == name)


def _fulfils(match: Match, value: Any) -> bool:
    if match.field in ("iif", "oif"):
        named = any(names_it(low, value) for low, _ in match.spans)
    else:
        named = any(low <= value <= high for low, high in match.spans)
    return named != match.negated


def _solved(matches: list[Match], given: Point, layout: Layout) -> Point | None:
    """A packet that fulfils all of these; None if none can."""
    point = dict(given)
    kinds = [match for match in matches if match.field == "kind"]
    if kinds:
        kind = next((one for one in KINDS if all(_fulfils(match, one) for match in kinds)), None)
        address = _of_kind(kind, point, layout) if kind else None
        if address is None:
            return None
        point["daddr"] = address
    given = dict(point)
    for name in dict.fromkeys(match.field for match in matches if match.field not in ("iif", "oif", "kind")):
        asked = [match for match in matches if match.field == name]
        wished = given.get(name, _default(name, point, layout))
        value = _chosen(name, asked, wished, point["version"])
        if value is None:
            return None
        point[name] = value
    return _filled(point, layout)


def _of_kind(kind: str, point: Point, layout: Layout) -> int | None:
    """An address of this kind to which a packet may go that way; None if there is none."""
    version, to_itself = point["version"], point["oif"] in (SELF, LO)
    if kind == "multicast":
        address = "224.0.0.1" if version == 4 else "ff02::1"
    elif kind == "broadcast":
        if version == 6 or LO in (point["iif"], point["oif"]):
            return None
        address = layout.broadcast(point["oif"] if point["iif"] == SELF else point["iif"])
    elif kind == "local":
        address = layout.gateway(point["iif"] if point["iif"] != SELF else point["oif"], version)
    elif to_itself:
        return None
    else:
        address = _plain_address("daddr", point, layout)
    return int(ipaddress.ip_address(address))


def _chosen(name: str, asked: list[Match], wished: Any, version: int) -> Any:
    if wished is not None and all(_fulfils(match, wished) for match in asked):
        return wished
    if name == "state":
        candidates: Iterable[Any] = STATES
    elif name == "flags":
        candidates = FLAGS
    else:
        ends = [end for match in asked for span in match.spans for end in _at_ends(name, span, version)]
        candidates = (*ends, 0, highest(name, version))
    return next((one for one in candidates if all(_fulfils(match, one) for match in asked)), None)


def highest(name: str, version: int) -> int:
    """The highest number of a field."""
    return (1 << (32 if version == 4 else 128)) - 1 if name in ("saddr", "daddr") else HIGHEST[name]


def _at_ends(name: str, span: Span, version: int) -> Iterator[int]:
    """Both ends of a range and their neighbours outside."""
    low, high = span
    for value in dict.fromkeys((low, high, low - 1, high + 1)):
        if 0 <= value <= highest(name, version):
            yield value


def _default(name: str, point: Point, layout: Layout) -> Any:
    """The plainest value of a field; None where it depends on others that are not chosen yet."""
    plain = {"proto": TCP, "sport": SPORT, "dport": DPORT, "ttl": 64, "dscp": 0, "state": "new", "flags": SYN}
    plain["header"] = NO_HEADER
    if name in plain:
        return plain[name]
    if name in ("saddr", "daddr"):
        return int(ipaddress.ip_address(_plain_address(name, point, layout)))
    return ECHO[point["version"]][0] if name == "type" else 0 if name == "code" else None


def _plain_address(name: str, point: Point, layout: Layout) -> str:
    here, there = ("iif", "oif") if name == "saddr" else ("oif", "iif")
    if point[here] == SELF:
        return layout.gateway(point[there], point["version"])
    return layout.host(point[here], point["version"])


def _filled(point: Point, layout: Layout) -> Point:
    """The packet with everything that its protocol needs."""
    found = dict(point)
    if "type" in found:
        found["proto"] = ICMP if found["version"] == 4 else ICMPV6
    elif found.setdefault("proto", TCP) in (ICMP, ICMPV6):
        found["proto"] = ICMP if found["version"] == 4 else ICMPV6
        found["type"] = ECHO[found["version"]][0]
    for name in ("saddr", "daddr"):
        found.setdefault(name, int(ipaddress.ip_address(_plain_address(name, found, layout))))
    if found.get("header") == FRAGMENT and found["proto"] == TCP and "flags" not in found:
        found["proto"] = UDP
    found.setdefault("state", "new")
    return found


def _varied(base: Point, match: Match, layout: Layout, chance: random.Random) -> Iterator[Point]:
    """Packets that differ from the base in one condition."""
    name, version = match.field, base["version"]
    if name in ("iif", "oif"):
        others = [one for one in layout.interfaces if one not in (base["iif"], base["oif"])]
        for other in others[:MAX_OTHERS] if base[name] != SELF else []:
            moved = {**base, name: other}
            moved.pop("saddr" if name == "iif" else "daddr")
            yield _filled(moved, layout)
            yield {**base, name: other}
    elif name == "kind":
        for kind in KINDS:
            address = _of_kind(kind, base, layout)
            if address is not None:
                yield {**base, "daddr": address}
    elif name == "header":
        headers = (FRAGMENT, *(HEADERS if version == 6 else ()), NO_HEADER)
        yield from (_filled({**base, "header": header}, layout) for header in headers)
    elif name == "state":
        yield from ({**base, "state": state} for state in STATES)
    elif name == "flags":
        yield from ({**base, "proto": TCP, "flags": flags} for flags in FLAGS)
    elif name == "proto":
        for proto in (TCP, UDP, ICMP if version == 4 else ICMPV6, 47):
            yield _filled({**base, "proto": proto}, layout)
    elif name != "version":
        spans = list(match.spans)
        if len(spans) > MAX_SPANS:
            spans = [*spans[: MAX_SPANS // 2], *chance.sample(spans[MAX_SPANS // 2 :], MAX_SPANS // 2)]
        for span in spans:
            for value in _at_ends(name, span, version):
                if name not in ("saddr", "daddr") or _usable(value, version, on_lo=base["iif"] == LO):
                    yield {**base, name: value}


def _usable(value: int, version: int, *, on_lo: bool) -> bool:
    if on_lo and version == 4 and _LOOPBACK[0] <= value <= _LOOPBACK[1]:
        return True
    address = ipaddress.IPv4Address(value) if version == 4 else ipaddress.IPv6Address(value)
    return not any(address in network for network in NO_HOST if network.version == version)


# ---- conversations --------------------------------------------------------------------------------------------------


def packet_of(point: Mapping[str, Any]) -> Packet:
    """The packet at a point."""
    kind = ipaddress.IPv4Address if point["version"] == 4 else ipaddress.IPv6Address
    found: Packet = {"version": point["version"], "proto": point["proto"]}
    found |= {"src": str(kind(point["saddr"])), "dst": str(kind(point["daddr"]))}
    if point["proto"] in (TCP, UDP):
        found |= {"sport": point.get("sport", SPORT), "dport": point.get("dport", DPORT)}
    if point["proto"] == TCP:
        found["flags"] = point.get("flags", SYN)
    if point["proto"] in (ICMP, ICMPV6):
        found |= {name: point[name] for name in ("type", "code") if name in point}
    found |= {name: point[name] for name in ("ttl", "dscp") if name in point}
    if point["version"] == 6 and point.get("header") in HEADERS:
        found["header"] = point["header"]
    if "length" in point:  # of the whole packet
        headers = {TCP: 44, UDP: 28, ICMP: 28, ICMPV6: 28}.get(point["proto"], 20) + (
            20 if point["version"] == 6 else 0
        )
        found["length"] = max(0, min(point["length"], 1500) - headers)
    return found


def conversation(point: Point, *, reverse: bool = False, whole: bool = False) -> list[Step]:
    """What a bench plays for the packet at this point to be in the state that is asked for.

    reverse  of an established connection, the other end opened it
    whole    after a first packet, also what follows: the reply, a later packet, and an ICMP error about each of both
    """
    packet, state = packet_of(point), point.get("state", "new")
    if is_error(packet):
        opening = {"iface": point["oif"], "out": point["iif"], "packet": _opening(turned(_asking(packet)))}
        return [opening, {"error": 0, "changed": {name: packet[name] for name in ("type", "code") if name in packet}}]
    there = {"iface": point["iif"], "out": point["oif"]}
    if point.get("header") == FRAGMENT:
        parts = {**packet, "length": IN_PARTS}
        return [{**there, "packet": {**parts, "part": part}} for part in (0, 1)]
    if point["iif"] == LO:
        return [{**there, "packet": packet}]
    back = {"iface": point["oif"], "out": point["iif"]}
    if state == "established" and not reverse:
        return [{**there, "packet": _opening(packet)}, {"reply": 0}, {**there, "packet": _following(packet)}]
    if state in ("established", "related"):
        opening = {**back, "packet": _opening(turned(packet))}
        changed = {name: packet[name] for name in ("ttl", "dscp", "flags") if name in point}
        if state == "related":
            return [opening, {"error": 0}]
        if point["iif"] == SELF:  # the machine answers by itself, or somebody in its place
            return [opening, {**there, "packet": _following(packet)}]
        return [opening, {"reply": 0, **({"changed": changed} if changed else {})}]
    if state == "invalid" and packet["proto"] == TCP:
        return [{**there, "packet": {**packet, "flags": SYN | ACK}}]
    first = {**there, "packet": packet}
    if packet["proto"] == TCP and packet["flags"] != SYN:
        return [first]
    if not whole:
        return [first]
    return [first, {"reply": 0}, {**there, "packet": _following(packet)}, {"error": 0}, {"error": 1}]


def _asking(packet: Packet) -> Packet:
    """A packet about which there can be an error."""
    return {"version": packet["version"], "proto": UDP, "sport": DPORT, "dport": SPORT} | {
        end: packet[end] for end in ("src", "dst")
    }


def _opening(packet: Packet) -> Packet:
    """The same as the first packet of a connection."""
    found = {name: value for name, value in packet.items() if name not in ("ttl", "dscp", "length")}
    if packet["proto"] == TCP:
        found["flags"] = SYN
    if packet["proto"] in (ICMP, ICMPV6):
        found |= {"type": ECHO[packet["version"]][0], "code": 0}
    return found


def _following(packet: Packet) -> Packet:
    """The same as a later packet of a connection."""
    return {**packet, "flags": ACK} if packet["proto"] == TCP and packet["flags"] == SYN else packet


def _burst(point: Point, limit: tuple[float, int]) -> list[Step]:
    """More packets than a limit lets through at once, and some when it has to let one more through."""
    rate, burst = limit
    packet = {"iface": point["iif"], "out": point["oif"], "packet": packet_of(point)}
    many = [packet] * (min(burst, MAX_BURST) + BEHIND)
    wait = 1.5 / rate
    return [*many, {"wait": wait}, *[packet] * BEHIND] if wait <= MAX_WAIT_S else many


def redraw(
    rules: Rules, layout: Layout, rule: Rule, blockers: Iterable[Rule], past: Sequence[Match]
) -> Iterator[tuple[tuple[Match, ...], Drawn]]:
    """Packets for a rule that one of these, which led all earlier ones elsewhere, does not match.

    Each comes with the conditions that lead it past them.

    past  those that lead past others already
    """
    for blocker in blockers:
        for match in blocker.matches:
            other = Match(match.field, match.spans, not match.negated)
            for hook, way in rules.reached_from().get(rule.key[:3], []) if match.field != "version" else ():
                for extra in [one for _, one in rule.targets] or [()]:
                    own = (*way, *rule.matches, *extra, *past, other)
                    asked = [one for one in own if one.field != "version"]
                    for version in _numbers("version", own):
                        for ends in _ends(hook, asked, layout):
                            base = _solved(asked, {"version": version, **ends}, layout)
                            if base is not None:
                                yield from (((*past, other), one) for one in _fulfilling(_sent(base, hook), rule))
