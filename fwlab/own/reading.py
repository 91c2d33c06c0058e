# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules read from what the kernel's own tools print of them: `nft -j list ruleset`, `iptables-save`, `ipset save`."""

import json
import re
from collections.abc import Mapping

from fwlab.own.nft_rules import nft_rule
from fwlab.own.rules import Chain, Key, Rules
from fwlab.own.saved_rules import ipsets, join_saved


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
            found.rules[key] = nft_rule(key, one, printed.get(key, ""), named)
    for kind, text in (saved or {}).items():
        join_saved(found, "ip6" if kind == "ip6tables" else "ip", text, ipsets(sets))
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
