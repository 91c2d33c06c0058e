# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet filters and settings: sysctl, ipset, iptables, nft, tc. Complaints are (line, what is wrong, what to do)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fwlab.logic.grammar.lines import LINKS, instructions, plain

#: A sysctl can do anything to a machine; rulesets may only set the network's. One by one: what a pattern sets, or
#: a path that climbs out of net, cannot be put back.
NETWORK_SETTING = re.compile(r"net([./][\w-]+)+")


def sysctl(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines, 1):
        key = line.split("=")[0].strip().lstrip("-").strip()
        if key and key[0] not in "#;" and not NETWORK_SETTING.fullmatch(key):
            yield number, f"{key} is not a network setting", "set only net.*"


#: The x_tables tools run any program that this option names; getopt also takes its beginning, and -M after letters.
NAMES_A_PROGRAM = re.compile(r"-[46fnvxw]*M.*|--mo(d(p(r(o(be?)?)?)?)?)?(=.*)?")
#: The bpf match reads a program from a file.
NAMES_AN_OBJECT = re.compile(r"--ob.*")


def iptables(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines, 1):
        if "M" not in line and "--" not in line or line.lstrip().startswith("#"):
            continue
        words = re.sub(r"[\"'\\]", "", line).split()
        if any(NAMES_A_PROGRAM.fullmatch(word) for word in words):
            yield number, "a ruleset names no program", "remove the option -M (--modprobe)"
        if any(NAMES_AN_OBJECT.fullmatch(word) for word in words):
            yield number, "a ruleset names no file", "remove the option --object-pinned"


IPSET_COMMANDS = {
    *("create", "add", "del", "flush", "destroy", "swap", "rename", "COMMIT"),
    *("-N", "-A", "-D", "-F", "-X", "-W", "-E", "--create", "--add", "--del", "--flush", "--destroy"),
}
#: Options of ipset itself that it takes in a line as well: a file to write to, and what lists.
IPSET_OPTION = re.compile(r"-{1,2}(f|file|o|output|r|resolve|s|sorted|t|terse|n|name|v|version|h|help|L|S|R|T)")


def ipset(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(lines, 1):
        if line.startswith("add ") and "-" not in line:  # by far the most lines of a long file
            continue
        words = re.sub(r"[\"'\\]", "", line).split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] not in IPSET_COMMANDS:
            yield number, f"{words[0]} loads nothing into a set", "use create, add, del, flush, destroy, swap, rename"
        for word in words[1:]:
            if IPSET_OPTION.fullmatch(word):
                yield number, f"{word} has no place in a ruleset", f"remove {word}"


#: As nft's own scanner takes a file apart: texts in quotes, comments, words.
NFT_TOKENS = re.compile(r'"[^"]*"|#[^\n]*|[A-Za-z_][\w./\\-]*|\n|.')
#: nft's commands that read another file or never end.
NFT_REFUSED = {"include": "a ruleset includes no other file", "monitor": "a ruleset does not monitor"}


def nft(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    text = "\n".join(lines)
    if not any(word in text for word in NFT_REFUSED):
        return
    number = 1
    for token in NFT_TOKENS.findall(text):
        if token in NFT_REFUSED:
            yield number, NFT_REFUSED[token], f"remove {token}"
        number += token.count("\n")


TC_OBJECTS = {"qdisc", "class", "filter", "chain", "action", "actions"}
DEVICE = re.compile(r"eth\d+")
TC_VERBS = {"add", "del", "delete", "replace", "change"}
#: What can become of a packet: an action may name two.
TC_FATE = "(?:drop|ok|pass|pipe|continue|reclassify|shot|unspec)"
#: A slash stands between an address or value and its prefix or mask; anywhere else it would be a path.
TC_WORD = re.compile(rf"[\w.:,+()=-]+|[0-9a-fA-F:][0-9a-fA-FxX.:]*/[0-9a-fA-FxX.:]+|{TC_FATE}/{TC_FATE}")
#: Kinds of filter and action that read programs from files, or load libraries of iptables. tc takes beginnings of
#: words for some, so whatever begins like the options of bpf is out as well.
TC_REFUSED = re.compile(r"exec|bpf|ipt|xt|obj.*|bytecode.*|pinned")


def tc(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, words in instructions(lines):
        strange = plain(words, TC_WORD)
        if strange is not None:
            yield number, f"{strange!r} is no word of a filter", "write qdisc, class, filter, chain and action lines"
        elif words[0] not in TC_OBJECTS or len(words) < 2 or words[1] not in TC_VERBS:
            yield number, f"{' '.join(words[:2])} loads nothing", "begin with one of: qdisc class filter chain action"
        else:
            for word in words:
                if TC_REFUSED.fullmatch(word):
                    yield number, f"a ruleset names no file and no program ({word})", f"remove {word}"
            named = [device for option, device in zip(words, words[1:], strict=False) if option == "dev"]
            # tc takes the beginning of dev as well, so a device is known by its own name too.
            for device in [*named, *filter(DEVICE.fullmatch, words)]:
                if device not in LINKS:
                    yield number, f"{device} is none of the DUT's links", f"use {' or '.join(LINKS)}"
