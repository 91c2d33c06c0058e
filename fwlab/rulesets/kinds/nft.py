# SPDX-License-Identifier: GPL-2.0-or-later
"""nftables, in nft's own language. The language is large, so only what is dangerous is refused."""

import json
import re
from collections.abc import Iterator

from fwlab.rulesets.kind import Faults, Loader, RulesetKind, Shown
from fwlab.rulesets.kinds import nft_entries, nft_text
from fwlab.rulesets.kinds.jumps import too_many
from fwlab.rulesets.kinds.lines import LINKS
from fwlab.rulesets.kinds.memory import MOST_ENTRIES
from fwlab.rulesets.kinds.nft_chains import chains_of

#: Tokens as nft's own scanner finds them: quoted strings, comments, words.
NFT_TOKENS = re.compile(r'"[^"]*"|#[^\n]*|[A-Za-z_][\w./\\-]*|\n|.')
#: Commands that read another file or never end.
NFT_REFUSED = {"include": "a ruleset must not include another file", "monitor": "a ruleset must not monitor"}
#: Devices that may have hooks and be sent packets. The loopback device does no harm.
_DEVICES = {*LINKS, "lo"}
_NAMING_DEVICES = {"device", "devices", "fwd", "dup"}
_DEFINED = re.compile(r"\b(?:re)?define\s+(?P<name>\w+)\s*=\s*(?P<value>\{[^}]*\}|[^\n;]*)")
_SIZE = re.compile(r"\bsize\s+(0x[0-9a-fA-F]{1,16}|\d{1,20})\b")
_WORD = re.compile(r'"[^"]*"|[0-9a-fA-F]{1,4}:[0-9a-fA-F:.]+|[$@]?[A-Za-z_][\w.\\/*-]*|[\d.]+|[{}:,;\n=]')
_ADDRESS = re.compile(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*")
#: After these words the device is computed, not named.
_COMPUTED = {
    *("ip", "ip6", "meta", "symhash", "jhash", "numgen"),
    *("iif", "iifname", "oif", "oifname", "mark", "vlan", "ether"),
}


def validate(lines: list[str]) -> Faults:
    """No word of NFT_REFUSED, no large set, no other device, no chains that call each other too often."""
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


def _sizes(text: str) -> Faults:
    """Sets that declare a size: the kernel allocates their memory at once."""
    whole = 0
    for found in _SIZE.finditer(_without_comments(text)) if "size" in text else ():
        whole += int(found[1], 0) if found[1][:2] == "0x" else int(found[1])
        if whole > MOST_ENTRIES:
            number = text.count("\n", 0, found.start()) + 1
            what = f"sets of {whole} entries: the DUT has memory for {MOST_ENTRIES}"
            yield number, what, "make the sets smaller, or fewer"
            return


def _without_comments(text: str) -> str:
    """The same text with blanks in place of comments and line continuations, so that positions stay."""
    blank = re.compile(r'"[^"]*"|#[^\n]*|\\\n')
    return blank.sub(lambda found: found[0] if found[0][0] == '"' else " " * len(found[0]), text)


def _devices(text: str) -> Faults:
    """Devices of hooks and flowtables, and targets of fwd and dup: none may be the management NIC."""
    plain = _without_comments(text)
    defined: dict[str, list[str]] = {}
    for found in _DEFINED.finditer(plain):
        defined.setdefault("$" + found["name"], []).extend(_WORD.findall(found["value"]))
    tokens = [(found[0].strip('"'), found.start()) for found in _WORD.finditer(plain)]
    for place, (token, at) in enumerate(tokens):
        if token not in _NAMING_DEVICES:
            continue
        for device in _named(token, [word for word, _ in tokens[place + 1 : place + 64]], defined):
            if device not in _DEVICES:
                number = plain.count("\n", 0, at) + 1
                yield number, f"{device} is not one of the DUT's test links", f"use {' or '.join(LINKS)}"


def _named(token: str, after: list[str], defined: dict[str, list[str]]) -> Iterator[str]:
    """The devices that this token names, with the words after it."""
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
    """Words, with each variable replaced by all of its definitions."""
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


LIST = "nft -a -t list ruleset"


def absent(shown: Shown, lines: list[str]) -> str | None:
    """Tables, or rules of a table, that are not listed."""
    tables, rules = nft_text.declared("\n".join(lines))
    listed = nft_text.listed(shown.check_output(LIST))
    missing = sorted(" ".join(table) for table in tables if table not in listed)
    if missing:
        return f"tables {', '.join(missing)}"
    for table, count in sorted(rules.items()):
        if listed[table] < count:
            return f"{count - listed[table]} of {count} rules of table {' '.join(table)}"
    return None


class NftLoader(Loader):
    """Loads a file in one transaction with `nft -f`."""

    tool = ("nft", "-f", "-")

    def one_by_one(self, name: str, text: str) -> Iterator[list[str]]:
        for line in map(str.strip, text.splitlines()):
            if line and not line.startswith("#"):
                yield ["nft", line]

    def undo(self, loaded: bool) -> None:
        """Also removes what iptables-nft has loaded."""
        if "nf_tables" in self.machine.modules():
            self.machine.run("nft", "flush", "ruleset")

    def entries(self) -> int:
        """Rules (those of iptables-nft too) and elements of sets and maps, named or not, that a packet can meet."""
        if "nf_tables" not in self.machine.modules():
            return 0
        listed = self.machine.run("nft", "-j", "list", "ruleset").stdout or "{}"
        return nft_entries.entries(json.loads(listed).get("nftables", []))


KIND = RulesetKind(
    name="nft",
    suffix=".nft",
    position=50,
    validate=validate,
    loader=NftLoader,
    absent=absent,
    cumulative=True,
)
