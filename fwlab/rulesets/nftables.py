# SPDX-License-Identifier: GPL-2.0-or-later
"""nftables' own language. It is large: only what is dangerous is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fwlab.rulesets.jumps import too_many
from fwlab.rulesets.lines import LINKS
from fwlab.rulesets.memory import MOST_ENTRIES
from fwlab.rulesets.nft_chains import chains_of

#: As nft's own scanner takes a file apart: texts in quotes, comments, words.
NFT_TOKENS = re.compile(r'"[^"]*"|#[^\n]*|[A-Za-z_][\w./\\-]*|\n|.')
#: nft's commands that read another file or never end.
NFT_REFUSED = {"include": "a ruleset includes no other file", "monitor": "a ruleset does not monitor"}
#: Where hooks may be and packets may be sent; the loopback's harm nobody.
_DEVICES = {*LINKS, "lo"}
_DEFINED = re.compile(r"\b(?:re)?define\s+(?P<name>\w+)\s*=\s*(?P<value>\{[^}]*\}|[^\n;]*)")
_SIZE = re.compile(r"\bsize\s+(0x[0-9a-fA-F]{1,16}|\d{1,20})\b")
_WORD = re.compile(r'"[^"]*"|[0-9a-fA-F]{1,4}:[0-9a-fA-F:.]+|[$@]?[A-Za-z_][\w.\\/*-]*|[\d.]+|[{}:,;\n=]')
_ADDRESS = re.compile(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*")
#: Words behind which no device is named directly, but computed.
_COMPUTED = {
    *("ip", "ip6", "meta", "symhash", "jhash", "numgen"),
    *("iif", "iifname", "oif", "oifname", "mark", "vlan", "ether"),
}


def nft(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    text = "\n".join(lines)
    if any(word in text for word in NFT_REFUSED):
        number = 1
        for token in NFT_TOKENS.findall(text):
            if token in NFT_REFUSED:
                yield number, NFT_REFUSED[token], f"remove {token}"
            number += token.count("\n")
    yield from _sizes(text)
    if any(word in text for word in ("device", "fwd", "dup")):
        yield from _devices(text)
    if "jump" in text or "goto" in text:
        complaint = too_many(*chains_of(text))
        if complaint:
            yield 1, *complaint


def _sizes(text: str) -> Iterator[tuple[int, str, str]]:
    """Memory for a set whose size is given is taken at once."""
    whole = 0
    for found in _SIZE.finditer(_without_comments(text)) if "size" in text else ():
        whole += int(found[1], 0) if found[1][:2] == "0x" else int(found[1])
        if whole > MOST_ENTRIES:
            number = text.count("\n", 0, found.start()) + 1
            what = f"sets of {whole} entries: the DUT has memory for {MOST_ENTRIES}"
            yield number, what, "make the sets smaller, or fewer"
            return


def _without_comments(text: str) -> str:
    """Every character stays in its place; comments and continued lines become blanks."""
    blank = re.compile(r'"[^"]*"|#[^\n]*|\\\n')
    return blank.sub(lambda found: found[0] if found[0][0] == '"' else _blanks(found[0]), text)


def _blanks(text: str) -> str:
    return " " * len(text)


def _devices(text: str) -> Iterator[tuple[int, str, str]]:
    """Hooks of devices, flowtables, and packets that are sent elsewhere: the management's NIC is not for these."""
    plain = _without_comments(text)
    defined: dict[str, list[str]] = {}
    for found in _DEFINED.finditer(plain):
        defined.setdefault("$" + found["name"], []).extend(_WORD.findall(found["value"]))
    tokens = [(found[0].strip('"'), found.start()) for found in _WORD.finditer(plain)]
    for place, (token, at) in enumerate(tokens):
        for device in _named(token, [word for word, _ in tokens[place + 1 : place + 64]], defined):
            if device not in _DEVICES:
                number = plain.count("\n", 0, at) + 1
                yield number, f"{device} is none of the DUT's links", f"use {' or '.join(LINKS)}"


def _named(token: str, after: list[str], defined: dict[str, list[str]]) -> Iterator[str]:
    """The devices that stand behind this word."""
    if token == "device":
        yield from _meant(after[:1], defined)
    elif token == "devices" and after[:1] == ["="]:
        end = after.index("}") if "}" in after and after[1:2] == ["{"] else 2
        yield from _meant(after[1:end], defined)
    elif token in ("fwd", "dup") and after[:1] == ["to"]:
        target = "".join(after[1:2])
        if not (target.startswith("@") or target in _COMPUTED or _ADDRESS.fullmatch(target)):
            yield from _meant([target], defined)


def _meant(words: list[str], defined: dict[str, list[str]]) -> Iterator[str]:
    """Words, and what stands for a variable wherever it is defined."""
    seen: set[str] = set()
    todo = list(words)
    while todo:
        word = todo.pop().strip('"')
        if word.startswith("$"):
            if word not in seen:
                seen.add(word)
                todo += defined.get(word, [])
        elif word and word not in "{}:,;\n=":
            yield word
