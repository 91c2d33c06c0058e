# SPDX-License-Identifier: GPL-2.0-or-later
"""What nft and iptables write for numbers: names of protocols, of ICMP's types, of flags and DSCPs; addresses."""

import ipaddress
import re
from typing import Any

from fwlab.own.packets import ACK, FIN, PSH, RST, SYN, URG

#: What kind of address a packet is for.
KINDS = ("local", "unicast", "broadcast", "multicast")
#: A range of numbers, or of names, whose ends are the same.
Span = tuple[Any, Any]

FLAG = {
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
ICMP = {"echo-reply": 0, "destination-unreachable": 3, "source-quench": 4, "redirect": 5, "echo-request": 8}
ICMP |= {"router-advertisement": 9, "router-solicitation": 10, "time-exceeded": 11, "parameter-problem": 12}
ICMP |= {
    "timestamp-request": 13,
    "timestamp-reply": 14,
    "ttl-zero-during-transit": 11,
    "port-unreachable": 3,
    "any": -1,
}
ICMP6 = {"destination-unreachable": 1, "packet-too-big": 2, "time-exceeded": 3, "parameter-problem": 4}
ICMP6 |= {"echo-request": 128, "echo-reply": 129, "mld-listener-query": 130, "mld-listener-report": 131}
ICMP6 |= {"mld-listener-done": 132, "mld-listener-reduction": 132, "nd-router-solicit": 133, "nd-router-advert": 134}
ICMP6 |= {"nd-neighbor-solicit": 135, "nd-neighbor-advert": 136, "nd-redirect": 137, "mld2-listener-report": 143}
ICMP6 |= {"router-solicitation": 133, "router-advertisement": 134, "neighbour-solicitation": 135}
ICMP6 |= {"neighbor-solicitation": 135, "neighbour-advertisement": 136, "neighbor-advertisement": 136}
DSCP = {f"cs{n}": 8 * n for n in range(8)} | {f"af{n}{m}": 8 * n + 2 * m for n in range(1, 5) for m in range(1, 4)}
DSCP |= {"ef": 46, "be": 0, "va": 44}
PER = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "sec": 1, "min": 60, "s": 1, "m": 60}
PER |= {"h": 3600, "d": 86400}


class Unread(Exception):
    """A condition that is not understood."""


def addresses_of(version: int, text: str) -> Span:
    """The first and the last address of an address, a prefix or a range."""
    if "-" in text:
        low, _, high = text.partition("-")
        return addresses_of(version, low)[0], addresses_of(version, high)[1]
    network = ipaddress.ip_network(text, strict=False)
    if network.version != version:
        raise Unread(text)
    return int(network.network_address), int(network.broadcast_address)


def value_of(name: str, given: Any, *, six: bool = False) -> Any:
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
    table = {"proto": PROTOCOLS, "type": ICMP6 if six else ICMP, "dscp": DSCP}.get(name, {})
    low = str(given).lower()
    if low in table:
        return table[low]
    if re.fullmatch(r"\d+|0x[0-9a-f]+", low):
        return int(low, 0)
    raise Unread(f"{name} {given}")


def flags_of(given: Any) -> int:
    """The bits of flags as nft prints them: a number, a name, a list, or names joined by |."""
    if isinstance(given, int):
        return given & 63
    if isinstance(given, str):
        return FLAG[given]
    listed = given["|"] if isinstance(given, dict) and "|" in given else given
    total = 0
    for one in listed:
        total |= flags_of(one)
    return total


def side_of(operator: str, limit: int, highest: int) -> Span:
    """The numbers up to `highest` that compare so with the limit."""
    return {"<": (0, limit - 1), "<=": (0, limit), ">": (limit + 1, highest), ">=": (limit, highest)}[operator]
