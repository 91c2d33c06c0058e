# SPDX-License-Identifier: GPL-2.0-or-later
"""Routes: lines of `ip -batch` that add them, towards the lab's own networks only."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import cache

from fwlab.rulesets.lines import LINKS, instructions

#: RFC 2544 and RFC 5180: addresses that belong to benchmarks.
NETWORKS = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("2001:2::/48"))
#: Most of 100 000 lines look like this; it is quicker than ipaddress. `ip` itself reads 0x12 and 022 as numbers.
USUAL = re.compile(r"198\.1[89](\.(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){2}(/(1[6-9]|2\d|3[0-2]))?")
TYPES = {"unicast", "blackhole", "unreachable", "prohibit"}
HOW = "write `route add PREFIX via ADDRESS dev eth0` or eth1, towards 198.18.0.0/15 or 2001:2::/48"


def routes(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, words in instructions(lines):
        complaint = _wrong(words)
        if complaint:
            yield number, complaint, HOW


def _wrong(words: list[str]) -> str | None:
    rest = words[1:] if words[0] in ("-4", "-6") else words
    if rest[:1] != ["route"] or len(rest) < 3 or rest[1] not in ("add", "replace"):
        return f"{' '.join(words[:3])} adds no route"
    place = 3 if rest[2] in TYPES else 2
    if len(rest) <= place or not _of_the_lab(rest[place], prefix=True):
        return f"{' '.join(rest[place : place + 1]) or 'nothing'} is outside the lab's networks"
    options = rest[place + 1 :]
    if len(options) % 2:
        return f"{options[-1]} has no value"
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option == "via" and _of_the_lab(value, prefix=False):
            continue
        if option == "dev" and value in LINKS:
            continue
        if option in ("metric", "mtu") and re.fullmatch("[0-9]{1,9}", value):
            continue
        return f"{option} {value} has no place in a lab's route"
    return None


@cache
def _address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in NETWORKS)


def _of_the_lab(text: str, *, prefix: bool) -> bool:
    if "%" in text:  # ipaddress takes the zone of an address, by which a link is named
        return False
    if not prefix:
        return _address(text)
    if USUAL.fullmatch(text):
        return True
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        return False
    return any(network.version == n.version and network.subnet_of(n) for n in NETWORKS)
