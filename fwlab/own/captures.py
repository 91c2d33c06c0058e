# SPDX-License-Identifier: GPL-2.0-or-later
"""The packets of a capture, pcap or pcapng, as conversations that a bench can play, each packet with its weight.

Packets of one connection are one conversation. What answers an earlier packet is played as an answer to what became of
that one, so that it fits whatever NAT the rules do. Equal packets of a conversation are played once and counted, and so
are conversations that differ in the client's port alone. A connection that was there before the capture began is opened
first, by packets without weight.
"""

import ipaddress
import json
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fwlab.model.errors import BadInput
from fwlab.model.printable import printable
from fwlab.own.borders import Drawn, Step
from fwlab.own.layout import LO, SELF, Layout
from fwlab.own.packets import ACK, ECHO, FIN, ICMP, ICMPV6, RST, SYN, TCP, UDP, Packet, is_error, parse, turned
from fwlab.own.rules import Key, Rules

#: Packets that are read, conversations that are played, and packets of each.
MAX_READ, MAX_CONVERSATIONS, MAX_STEPS = 2_000_000, 3000, 24
#: Types of links (LINKTYPE_...): Ethernet; raw IP, of four numbers; BSD's loopback; Linux's "any" in two versions.
ETHERNET, RAW, LOOPBACK, COOKED, COOKED_2 = 1, (12, 14, 101, 228, 229), (0, 108), 113, 276
#: Of Linux's "any": a packet that the machine sends, and so had received before, unless it is its own.
OUTGOING = 4
_IP = {0x0800, 0x86DD}
_TAGS = {0x8100, 0x88A8}
_PPPOE = 0x8864
HOW = "tcpdump -i any -w my.pcap, on the firewall"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Flow = tuple[Any, ...]


@dataclass
class Routes:
    """At which interface each address is.

    given  networks, each with its interface; the longest prefix counts
    rest   where all others are
    own    addresses of the machine itself
    """

    given: list[tuple[Network, str]]
    rest: str
    own: frozenset[str]

    def of(self, address: str) -> str:
        """The interface of an address, or the machine itself."""
        if address in self.own:
            return SELF
        number = ipaddress.ip_address(address)
        if number.is_multicast or address == "255.255.255.255":
            return SELF
        inside = [(network.prefixlen, name) for network, name in self.given if number in network]
        return max(inside)[1] if inside else self.rest

    def words(self) -> str:
        """All of it on one line."""
        laid = [f"{network} at {name}" for network, name in self.given]
        own = ", ".join(sorted(self.own)[:8]) or "no address"
        return "; ".join([*laid, f"all others at {self.rest}", f"the firewall itself: {own}"])


def routes(several: Sequence[Rules], layout: Layout, given: Sequence[str]) -> Routes:
    """Routes that are given (PREFIX=INTERFACE), and those of rules that name an interface and a network."""
    found = dict(_given(one, layout) for one in given)
    for network, name in _named(several):
        if name in layout.interfaces:
            found.setdefault(network, name)
    free = [name for name in layout.interfaces if name not in found.values()]
    own = {layout.gateway(name, version) for name in layout.interfaces for version in (4, 6)}
    rest = next((name for network, name in found.items() if network.prefixlen == 0), (free or layout.interfaces)[-1])
    return Routes(sorted(found.items(), key=str), rest, frozenset({*own, *layout.own}))


def _given(text: str, layout: Layout) -> tuple[Network, str]:
    prefix, separator, name = text.partition("=")
    try:
        network = ipaddress.ip_network(prefix, strict=False)
    except ValueError as error:
        raise BadInput(f"--route {printable(text)}: {error}", "--route 192.168.1.0/24=INTERFACE") from error
    if not separator or name not in layout.interfaces:
        message = f"--route {printable(text)}: no rule names this interface"
        raise BadInput(message, f"name one of: {', '.join(layout.interfaces)}")
    return network, name


def _named(several: Sequence[Rules]) -> Iterator[tuple[Network, str]]:
    """Networks, each with the interface that the same rule names for it."""
    for rules in several:
        for rule in rules.rules.values():
            asked = {match.field: match for match in rule.matches if not match.negated and len(match.spans) == 1}
            for address, interface in (("saddr", "iif"), ("daddr", "oif")):
                if address in asked and interface in asked:
                    (low, high), (name, _) = asked[address].spans[0], asked[interface].spans[0]
                    six = any(match.spans == ((6, 6),) for match in rule.matches if match.field == "version")
                    bits = (128 if six else 32) - (high - low).bit_length()
                    if bits and not (high - low) & (high - low + 1):
                        yield (ipaddress.IPv6Network if six else ipaddress.IPv4Network)((low, bits)), name


@dataclass
class Capture:
    """What is played of a capture.

    way      where its addresses were taken to be
    drawn    its conversations
    weights  of each, by its identity, how many of the capture's packets each step stands for
    read     packets that were read; left_out: those that are not played, each with the reason
    """

    way: str
    drawn: list[Drawn] = field(default_factory=list)
    weights: dict[str, list[int]] = field(default_factory=dict)
    read: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def words(self) -> str:
        """How much of it is played."""
        left = "".join(f"; left out: {count:,} {why}" for why, count in self.left_out.most_common())
        return f"capture: {self.read:,} packets, {len(self.drawn):,} different conversations{left}; {self.way}"

    def by_decider(self, drawn: Sequence[Drawn], played: Sequence[Any]) -> Counter[Key]:
        """How many of the capture's packets each rule or policy decides about."""
        found: Counter[Key] = Counter()
        for one, (steps, _) in zip(drawn, played, strict=True):
            for walk, weight in zip(steps, self.weights.get(one.identity, ()), strict=False):
                if walk is not None and walk.decider is not None:
                    found[walk.decider] += weight
        return found


def captured(path: Path, way: Routes) -> Capture:
    """The conversations of a file. Raises BadInput."""
    found = Capture(way.words())
    flows: dict[Flow, _Conversation] = {}
    for data, kind in _records(path):
        found.read += 1
        packet = _packet(data, kind, way)
        if isinstance(packet, str):
            found.left_out[packet] += 1
            continue
        flow = _flow(packet)
        known = flows.get(flow)
        if known is None and is_error(packet):
            found.left_out["errors about what is not in it"] += 1
            continue
        if known is None:
            known = flows[flow] = _Conversation(packet, way)
        if not known.take(packet):
            found.left_out["of conversations that are too long"] += 1
    if not flows:
        raise BadInput(f"{printable(path.name)}: no packet of IP in it", HOW)
    whole: dict[str, tuple[list[Step], list[int]]] = {}
    for one in flows.values():
        alike = whole.setdefault(one.shape(), (one.steps, [0] * len(one.steps)))
        alike[1][:] = [sum(pair) for pair in zip(alike[1], one.weights, strict=True)]
    kept = sorted(whole.values(), key=lambda pair: -sum(pair[1]))
    for steps, weights in kept[:MAX_CONVERSATIONS]:
        drawn = Drawn(steps)
        found.drawn.append(drawn)
        found.weights[drawn.identity] = weights
    rest = sum(sum(weights) for _, weights in kept[MAX_CONVERSATIONS:])
    if rest:
        found.left_out[f"of the rarest {len(kept) - MAX_CONVERSATIONS:,} conversations"] += rest
    return found


def _records(path: Path) -> Iterator[tuple[bytes, int]]:
    """Each frame with the type of its link. Raises BadInput."""
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapReader

    name = printable(path.name)
    try:
        with RawPcapReader(str(path)) as reader:
            for number, (data, meta) in enumerate(reader):
                if number >= MAX_READ:
                    hint = f"tcpdump -r {name} -c {MAX_READ} -w part.pcap"
                    raise BadInput(f"{name}: more than {MAX_READ:,} packets", hint)
                yield data, getattr(meta, "linktype", None) or reader.linktype
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}", HOW) from error
    except (Scapy_Exception, EOFError, struct.error) as error:
        raise BadInput(f"{name}: neither pcap nor pcapng, or broken: {error}", HOW) from error


def _packet(data: bytes, kind: int, way: Routes) -> Packet | str:
    """The IP packet of a frame, or why it is left out."""
    outgoing = False
    if kind == ETHERNET:
        data = _behind(data, 12)
    elif kind == COOKED:
        outgoing = data[:2] == struct.pack("!H", OUTGOING)
        data = _behind(data, 14)
    elif kind == COOKED_2:
        outgoing = data[10:11] == bytes([OUTGOING])
        data = data[20:] if data[:2] in (b"\x08\0", b"\x86\xdd") else b""
    elif kind in LOOPBACK:
        data = data[4:]
    elif kind not in RAW:
        return f"from links of type {kind}"
    packet = parse(data)
    if packet is None:
        return "without IP"
    if packet.get("offset"):
        return "that are later fragments"
    if packet["proto"] in (TCP, UDP) and "dport" not in packet:
        return "cut off"
    if outgoing and way.of(packet["src"]) != SELF:
        return "on their way out again"
    return packet


def _behind(data: bytes, place: int) -> bytes:
    """What stands behind an Ethernet type, VLANs and PPPoE; nothing if it is not IP."""
    kind = int.from_bytes(data[place : place + 2], "big")
    place += 2
    while kind in _TAGS:
        kind = int.from_bytes(data[place + 2 : place + 4], "big")
        place += 4
    if kind == _PPPOE:
        return data[place + 8 :] if data[place + 6 : place + 8] in (b"\0\x21", b"\0\x57") else b""
    return data[place:] if kind in _IP else b""


def _flow(packet: Packet) -> Flow:
    """The connection of a packet, the same in both directions."""
    about = packet.get("about", packet) if is_error(packet) else packet
    if about["proto"] in (ICMP, ICMPV6):
        return about["proto"], frozenset((about.get("src"), about.get("dst"))), about.get("id")
    ends = ((about.get(end), about.get(port)) for end, port in (("src", "sport"), ("dst", "dport")))
    return about["proto"], frozenset(ends)


class _Conversation:
    """One connection: steps, and how many packets each stands for."""

    def __init__(self, packet: Packet, way: Routes) -> None:
        self.steps: list[Step] = []
        self.weights: list[int] = []
        self._way = way
        self._known: dict[str, int] = {}
        self._last: dict[bool, int] = {}
        opens = packet
        flags = packet.get("flags", SYN)
        if packet["proto"] == TCP and flags & (SYN | RST | FIN) != SYN:
            opens = packet if packet["sport"] >= packet["dport"] else turned(packet)
        elif packet["proto"] == TCP and flags & ACK:
            opens = turned(packet)
        self._opener = opens["src"], opens.get("sport")
        if packet["proto"] == TCP and flags & (SYN | ACK) != SYN and not flags & RST:
            self._add({**self._ends(opens), "packet": _plain({**opens, "flags": SYN})}, 0, forth=True)
            if not flags & SYN:
                self._add({"reply": 0}, 0, forth=False)

    def take(self, packet: Packet) -> bool:
        """Add a packet. Returns whether it is played."""
        forth = (packet["src"], packet.get("sport")) == self._opener and not is_error(packet)
        step = self._step(packet, forth)
        if step is None:
            return False
        key = json.dumps(step, sort_keys=True)
        if key in self._known:
            self.weights[self._known[key]] += 1
            return True
        if len(self.steps) >= MAX_STEPS:
            return False
        self._known[key] = len(self.steps)
        self._add(step, 1, forth)
        return True

    def shape(self) -> str:
        """Equal for conversations that differ in the opener's port alone."""
        bare = [
            {**step, "packet": {name: value for name, value in step["packet"].items() if name not in ("sport", "id")}}
            if "packet" in step
            else step
            for step in self.steps
        ]
        return json.dumps(bare, sort_keys=True)

    def _add(self, step: Step, weight: int, forth: bool) -> None:
        self._last[forth] = len(self.steps)
        self.steps.append(step)
        self.weights.append(weight)

    def _ends(self, packet: Packet) -> Mapping[str, str]:
        come, leave = (self._way.of(packet[end]) for end in ("src", "dst"))
        return {"iface": LO, "out": LO} if come == leave == SELF else {"iface": come, "out": leave}

    def _step(self, packet: Packet, forth: bool) -> Step | None:
        if is_error(packet):
            about = packet.get("about", {})
            quoted = (about.get("src"), about.get("sport")) == self._opener
            if quoted not in self._last:
                return None
            return {"error": self._last[quoted], "changed": {"type": packet["type"], "code": packet["code"]}}
        if forth or True not in self._last or packet.get("type") in (ECHO[4][0], ECHO[6][0]):
            return {**self._ends(packet), "packet": _plain(packet)}
        changed = {name: packet[name] for name in ("ttl", "dscp", "length") if name in packet}
        flags = {"flags": packet["flags"]} if packet["proto"] == TCP else {}
        return {"reply": self._last[True], **flags, "changed": changed}


_MADE = (
    *("version", "src", "dst", "proto", "ttl", "dscp", "length", "header"),
    *("sport", "dport", "flags", "type", "code", "id"),
)


def _plain(packet: Packet) -> Packet:
    """What a packet is made of again: sequence numbers are the bench's."""
    return {name: packet[name] for name in _MADE if name in packet}
