# SPDX-License-Identifier: GPL-2.0-or-later
"""What is set on the DUT's links: ethtool and xdp-filter, one call of the tool for each line."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from fwlab.rulesets.lines import LINKS, instructions

_NUMBER = re.compile("[0-9]{1,9}")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
#: Options of ethtool that a reset can put back, with what they may set: features, rings, coalescing, channels.
ETHTOOL = {
    "-K": (_NAME, re.compile("on|off")),
    "-G": (re.compile("rx|tx|rx-mini|rx-jumbo"), _NUMBER),
    "-C": (_NAME, re.compile(r"on|off|[0-9]{1,9}")),
    "-L": (re.compile("rx|tx|other|combined"), _NUMBER),
}


def ethtool(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """`eth0 -K gro off`: the device, the option, then names and values by turns."""
    for number, words in instructions(lines):
        how = "write `eth0 -K gro off`, `eth0 -G rx 512`, `eth0 -C rx-usecs 10` or `eth0 -L combined 2`"
        if words[0] not in LINKS:
            yield number, f"{words[0]} is none of the DUT's links", f"use {' or '.join(LINKS)}"
        elif len(words) < 4 or len(words) % 2 or words[1] not in ETHTOOL:
            yield number, f"{' '.join(words[1:8]) or 'nothing'} is no setting of a link", how
        else:
            name, value = ETHTOOL[words[1]]
            for index in range(2, len(words), 2):
                if not (name.fullmatch(words[index]) and value.fullmatch(words[index + 1])):
                    yield number, f"{words[index]} {words[index + 1]} is no setting of a link", how


_SIDES = re.compile("src|dst|src,dst|dst,src")
_XDP_OPTIONS = {
    "load": {
        ("-m", "--mode"): re.compile("native|skb"),
        ("-p", "--policy"): re.compile("allow|deny"),
        ("-f", "--features"): re.compile("(tcp|udp|ipv4|ipv6|ethernet|all)(,(tcp|udp|ipv4|ipv6|ethernet|all))*"),
    },
    "ip": {("-m", "--mode"): _SIDES},
    "ether": {("-m", "--mode"): _SIDES},
    "port": {("-m", "--mode"): _SIDES, ("-p", "--proto"): re.compile("tcp|udp|tcp,udp|udp,tcp")},
}
_MAC = re.compile("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


def xdp_filter(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """xdp-filter's own arguments: `load eth0 -m native -p allow -f ipv4,udp`, `ip 198.18.1.1 -m src`."""
    for number, words in instructions(lines):
        how = "write load, ip, port or ether as xdp-filter knows them"
        if words[0] not in _XDP_OPTIONS or len(words) < 2:
            yield number, f"{words[0]} loads nothing into xdp-filter", how
        elif not _subject(words[0], words[1]):
            yield number, f"{words[1]} is not what {words[0]} takes", how
        else:
            known = {name: value for names, value in _XDP_OPTIONS[words[0]].items() for name in names}
            options = words[2:]
            for index in range(0, len(options), 2):
                pair = options[index : index + 2]
                if len(pair) < 2 or pair[0] not in known or not known[pair[0]].fullmatch(pair[1]):
                    yield number, f"{words[0]} does not take {' '.join(pair)}", how


def _subject(command: str, text: str) -> bool:
    if command == "load":
        return text in LINKS
    if command == "port":
        return re.fullmatch("[1-9][0-9]{0,4}", text) is not None and int(text) < 65536
    if command == "ether":
        return _MAC.fullmatch(text) is not None
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text
