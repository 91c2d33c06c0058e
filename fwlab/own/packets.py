# SPDX-License-Identifier: GPL-2.0-or-later
"""One packet as data, and as the bytes of an Ethernet frame. Runs on the DUT, too: only the standard library.

A packet is a dict: version, src, dst, proto, ttl, dscp, length (bytes behind the last header), and by protocol sport,
dport, flags, mss (of a SYN) or type, code, id. `more` is "more fragments", `offset` the fragment's. A packet that is to
be made has `part` where it is the first (0) or the last (1) of two fragments, and `header` where it is of IPv6 and has
an extension header of this number.
"""

import socket
import struct
from collections.abc import Mapping
from typing import Any

Packet = dict[str, Any]

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
ETHERTYPE = {4: 0x0800, 6: 0x86DD}
#: Type of an echo request and of its reply; type and code of "port unreachable".
ECHO = {4: (8, 0), 6: (128, 129)}
UNREACHABLE = {4: (3, 3), 6: (1, 4)}
#: IPv6's extension headers: hop-by-hop options, routing, fragment, destination options.
HOP_BY_HOP, ROUTING, FRAGMENT, OPTIONS = 0, 43, 44, 60
#: Bytes of what IP carries in the first of two fragments.
FIRST_PART = 32
#: Bytes of the packet that an ICMP error quotes.
QUOTED = 64
#: Sender of frames.
SENDER = b"\x02\0\0\0\0\x0a"
#: More than any interface carries, so that a rule that lowers it shows.
MSS = 8960


def _sum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def _address(version: int, text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET if version == 4 else socket.AF_INET6, text)


def _text(data: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(data) == 4 else socket.AF_INET6, data)


def ip_packet(packet: Mapping[str, Any]) -> bytes:
    """The packet's bytes from its IP header on, with checksums."""
    version, proto = packet["version"], packet["proto"]
    src, dst = (_address(version, packet[end]) for end in ("src", "dst"))
    body = _body(packet, proto)
    pseudo = src + dst + struct.pack("!II", len(body), proto)
    at = {TCP: 16, UDP: 6, ICMP: 2, ICMPV6: 2}.get(proto)
    if at is not None and not packet.get("offset"):
        found = _sum(body if proto == ICMP else pseudo + body)
        body = body[:at] + struct.pack("!H", found or 0xFFFF) + body[at + 2 :]
    ttl, tos = packet.get("ttl", 64), packet.get("dscp", 0) << 2
    more, offset = packet.get("more", 0), packet.get("offset", 0)
    if "part" in packet:
        more, offset = (0, FIRST_PART // 8) if packet["part"] else (1, 0)
        body = body[FIRST_PART:] if packet["part"] else body[:FIRST_PART]
    if version == 6:
        if more or offset:
            body, proto = struct.pack("!BBHI", proto, 0, offset << 3 | more, 1) + body, FRAGMENT
        elif "header" in packet:
            options = b"\0\0\0\0\0\0" if packet["header"] == ROUTING else b"\1\4\0\0\0\0"
            body, proto = bytes([proto, 0]) + options + body, packet["header"]
        return struct.pack("!IHBB", 6 << 28 | tos << 20, len(body), proto, ttl) + src + dst + body
    fragment = more << 13 | offset
    head = (
        struct.pack("!BBHHHBBH", 0x45, tos, 20 + len(body), 1 if fragment else 0, fragment, ttl, proto, 0) + src + dst
    )
    return head[:10] + struct.pack("!H", _sum(head)) + head[12:] + body


def _body(packet: Mapping[str, Any], proto: int) -> bytes:
    payload = bytes.fromhex(packet["quote"]) if "quote" in packet else b"\0" * packet.get("length", 0)
    if packet.get("offset"):
        return payload
    if proto == TCP:
        flags = packet.get("flags", SYN)
        options = struct.pack("!BBH", 2, 4, packet.get("mss", MSS)) if flags & SYN else b""
        offset = (20 + len(options)) << 10
        sequence = 1000 + (not flags & SYN)
        ack = packet.get("ack", 0)
        ports = struct.pack("!HHII", packet["sport"], packet["dport"], packet.get("seq", sequence), ack)
        return ports + struct.pack("!HHHH", offset | flags, 64240, 0, 0) + options + payload
    if proto == UDP:
        return struct.pack("!HHHH", packet["sport"], packet["dport"], 8 + len(payload), 0) + payload
    if proto in (ICMP, ICMPV6):
        rest = packet.get("id", 1) << 16 | 1 if "quote" not in packet else 0
        return struct.pack("!BBHI", packet.get("type", 8), packet.get("code", 0), 0, rest) + payload
    return payload or b"\0" * 8


def parse(data: bytes) -> Packet | None:
    """The packet of these bytes, which begin with an IP header. None if it is neither IPv4 nor IPv6."""
    if len(data) >= 20 and data[0] >> 4 == 4:
        found: Packet = {"version": 4, "src": _text(data[12:16]), "dst": _text(data[16:20])}
        found.update(proto=data[9], ttl=data[8], dscp=data[1] >> 2)
        fragment = struct.unpack_from("!H", data, 6)[0]
        if fragment & 0x3FFF:
            found.update(more=fragment >> 13 & 1, offset=fragment & 0x1FFF)
        body = data[(data[0] & 15) * 4 : struct.unpack_from("!H", data, 2)[0]]
    elif len(data) >= 40 and data[0] >> 4 == 6:
        found = {"version": 6, "src": _text(data[8:24]), "dst": _text(data[24:40]), "proto": data[6], "ttl": data[7]}
        found["dscp"] = (struct.unpack_from("!I", data)[0] >> 20 & 0xFF) >> 2
        body = _behind_headers(found, data[40 : 40 + struct.unpack_from("!H", data, 4)[0]])
    else:
        return None
    if not found.get("offset"):
        _read_body(found, body)
    return found


def _behind_headers(found: Packet, body: bytes) -> bytes:
    """What extension headers stand before; they are noted."""
    while found["proto"] in (HOP_BY_HOP, ROUTING, FRAGMENT, OPTIONS) and len(body) >= 8:
        if found["proto"] == FRAGMENT:
            place = struct.unpack_from("!H", body, 2)[0]
            found.update(more=place & 1, offset=place >> 3)
        else:
            found["header"] = found["proto"]
        size = 8 if found["proto"] == FRAGMENT else 8 + body[1] * 8
        found["proto"], body = body[0], body[size:]
    return body


def _read_body(found: Packet, body: bytes) -> None:
    proto, header = found["proto"], 0
    if proto == TCP and len(body) >= 20:
        found["sport"], found["dport"], found["seq"], found["ack"] = struct.unpack_from("!HHII", body)
        header, found["flags"] = (body[12] >> 4) * 4, body[13] & 63
        if found["flags"] & SYN and body[20:22] == b"\x02\x04":
            found["mss"] = struct.unpack_from("!H", body, 22)[0]
    elif proto == UDP and len(body) >= 8:
        found["sport"], found["dport"] = struct.unpack_from("!HH", body)
        header = 8
    elif proto in (ICMP, ICMPV6) and len(body) >= 8:
        found["type"], found["code"] = body[0], body[1]
        header = 8
        if is_error(found):
            quoted = parse(body[8:].ljust(40, b"\0"))
            found["about"] = {name: quoted[name] for name in _FLOW if name in quoted} if quoted else {}
            return
        found["id"] = struct.unpack_from("!H", body, 4)[0]
    found["length"] = max(0, len(body) - header)


_FLOW = ("src", "dst", "proto", "sport", "dport")


def is_error(packet: Mapping[str, Any]) -> bool:
    """Whether it is an ICMP error, which quotes a packet."""
    if packet["proto"] == ICMP:
        return packet.get("type") in (3, 4, 5, 11, 12)
    return bool(packet["proto"] == ICMPV6 and packet.get("type", 128) < 128)


def reply(packet: Mapping[str, Any], flags: int | None = None) -> Packet | None:
    """What the receiver of this packet answers: the other direction of the same connection. None if nothing can."""
    found: Packet = {"version": packet["version"], "proto": packet["proto"], "ttl": 64, "dscp": 0}
    found.update(src=packet["dst"], dst=packet["src"], length=packet.get("length", 0))
    if packet["proto"] in (TCP, UDP):
        found.update(sport=packet["dport"], dport=packet["sport"])
    if packet["proto"] == TCP:
        asked = packet.get("flags", SYN)
        if flags is None:
            flags = SYN | ACK if asked & (SYN | ACK) == SYN else ACK
        one = bool(asked & (SYN | FIN))
        found.update(flags=flags, ack=packet.get("seq", 1000) + one, seq=packet.get("ack", 0) or 5000)
    elif packet["proto"] in (ICMP, ICMPV6):
        request, answer = ECHO[packet["version"]]
        if packet.get("type") != request:
            return None
        found.update(type=answer, code=0, id=packet.get("id", 1))
    return found


def turned(packet: Packet) -> Packet:
    """The packet on the way back: its ends and their ports change places."""
    found = {**packet, "src": packet["dst"], "dst": packet["src"]}
    if "sport" in packet:
        found |= {"sport": packet["dport"], "dport": packet["sport"]}
    return found


def error_about(packet: Mapping[str, Any]) -> Packet:
    """The ICMP error "port unreachable" that this packet's receiver sends back."""
    version = packet["version"]
    kind, code = UNREACHABLE[version]
    whole = ip_packet({**packet, "ttl": packet.get("ttl", 64)})
    found: Packet = {"version": version, "proto": ICMP if version == 4 else ICMPV6, "ttl": 64, "dscp": 0}
    found.update(src=packet["dst"], dst=packet["src"], type=kind, code=code, quote=whole[:QUOTED].hex())
    return found


def frame(packet: Mapping[str, Any], to: bytes, sender: bytes = SENDER) -> bytes:
    """The packet in an Ethernet frame without frame check sequence."""
    source = bytes.fromhex(packet["smac"].replace(":", "")) if "smac" in packet else sender
    return to + source + struct.pack("!H", ETHERTYPE[packet["version"]]) + ip_packet(packet)


def group_mac(destination: str) -> bytes:
    """The Ethernet address of a multicast group."""
    if ":" in destination:
        return b"\x33\x33" + _address(6, destination)[-4:]
    address = _address(4, destination)
    return b"\x01\0\x5e" + bytes([address[1] & 127]) + address[2:]


def parse_frame(data: bytes) -> Packet | None:
    """The packet in this frame; None if it holds neither IPv4 nor IPv6."""
    return parse(data[14:]) if struct.unpack_from("!H", data, 12)[0] in ETHERTYPE.values() else None
