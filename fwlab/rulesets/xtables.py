# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables as iptables-save writes them, for iptables, ip6tables and iptables-nft."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fwlab.rulesets.jumps import MOST_RULES, Chain, too_many
from fwlab.rulesets.memory import BUCKET, MOST_BYTES, number

#: The x_tables tools run any program that this option names; getopt also takes its beginning, and -M after letters.
NAMES_A_PROGRAM = re.compile(r"-[46fnvxw]*M.*|--mo(d(p(r(o(be?)?)?)?)?)?(=.*)?")
#: The bpf match reads a program from a file.
NAMES_AN_OBJECT = re.compile(r"--ob.*")
#: The chains that packets come in by.
BUILT_IN = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
#: Options that put a rule into a chain, call one, make one or rename one; the long ones may be cut short.
_PUTS = re.compile(r"-[46fnvxw]*[AIR](?P<short>.*)|--(ap\w*|ins\w*|repl\w*)(=(?P<long>.*))?")
_CALLS = re.compile(r"-[46fnvxw]*[jg](?P<short>.*)|--(j\w*|g\w*)(=(?P<long>.*))?")
_MAKES = re.compile(r"-[46fnvxw]*N(?P<short>.*)|--new\w*(=(?P<long>.*))?")
_RENAMES = re.compile(r"-[46fnvxw]*E(?P<short>.*)|--ren\w*(=(?P<long>.*))?")
_HASH = re.compile(r"--hashlimit-htable-s\w*(=(?P<long>.*))?")
_HASH_NAME = re.compile(r"--hashlimit-na\w*(=.*)?")
#: Without one of these there are no chains but those that packets come in by.
_OWN_CHAIN = re.compile(r"^:\s*\S+\s+[\"']?-|-[46fnvxw]*N|--n")
#: Buckets of such a hash for which no size is given, on a machine with as much memory as the DUT.
_USUAL_HASH = 8192


def iptables(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    hashes = 0
    for place, line in enumerate(lines, 1):
        if ("M" not in line and "--" not in line) or line.lstrip().startswith("#"):
            continue
        words = _words(line)
        if any(NAMES_A_PROGRAM.fullmatch(word) for word in words):
            yield place, "a ruleset names no program", "remove the option -M (--modprobe)"
        if any(NAMES_AN_OBJECT.fullmatch(word) for word in words):
            yield place, "a ruleset names no file", "remove the option --object-pinned"
        if "hashlimit" in line:
            hashes += _hash_bytes(words)
            if hashes > MOST_BYTES:
                what = f"the hashes of hashlimit take more than {MOST_BYTES >> 20} MiB of the DUT's memory"
                yield place, what, "make --hashlimit-htable-size smaller, or limit with fewer rules"
                return
    yield from _bombs(lines)


def _words(line: str) -> list[str]:
    return re.sub(r"[\"'\\]", "", line).split()


def _hash_bytes(words: list[str]) -> int:
    buckets = [number(size) or 0 for size in _values(words, _HASH)]
    named = any(_HASH_NAME.fullmatch(word) for word in words)
    return BUCKET * max([0, *buckets, _USUAL_HASH if named and not buckets else 0])


def _values(words: list[str], option: re.Pattern[str]) -> Iterator[str]:
    """What follows such an option, whether attached to it or as the next word."""
    for place, word in enumerate(words):
        found = option.fullmatch(word)
        if found:
            attached = found.groupdict().get("short") or found.groupdict().get("long")
            yield attached or (words[place + 1] if place + 1 < len(words) else "")


def _bombs(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Table by table: loading one replaces what it was before."""
    if len(lines) < MOST_RULES and not any(map(_OWN_CHAIN.search, lines)):
        return
    begin = 1
    chains: dict[str, Chain] = {}
    renamed: dict[str, str] = {}
    for place, line in enumerate([*lines, "*"], 1):
        if line.startswith("*"):
            complaint = too_many(chains, BUILT_IN)
            if complaint:
                yield begin, *complaint
            begin, chains, renamed = place, {}, {}
        elif line.startswith("-A ") and '"' not in line and "'" not in line:  # as iptables-save writes it
            words = line.split()
            _put(chains, renamed, "".join(words[1:2]), words[2:])
        elif line.startswith(":") or ("-" in line and not line.lstrip().startswith("#")):
            words = _words(line)
            for name in _values(words, _RENAMES):
                after = words.index(name) + 1 if name in words else len(words)
                renamed.update({new: renamed.get(name, name) for new in words[after : after + 1]})
            for chain in [*_values(words, _PUTS)][:1]:
                _put(chains, renamed, chain, words)


def _put(chains: dict[str, Chain], renamed: dict[str, str], chain: str, words: list[str]) -> None:
    into = chains.setdefault(renamed.get(chain, chain), Chain())
    into.rules += 1
    for at, word in enumerate(words):
        if word[:1] == "-" and ("j" in word or "g" in word):
            for name in _values(words[at : at + 2], _CALLS):
                into.calls[(renamed.get(name, name),)] += 1
                break
