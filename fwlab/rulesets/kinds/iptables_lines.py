# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of a file as iptables-restore reads them (1.8.9, legacy and nf_tables)."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

#: A word: what stands before a quotation mark, and up to the next one; or without any.
_WORD = re.compile(r'([^" \t]*)"([^"\\]*(?:\\.[^"\\]*)*)\\?(?:"|$)|([^" \t]+)', re.DOTALL)
#: Nearly all lines of a long file: a rule without extensions and names, its chain, and what it calls.
_USUAL = re.compile(r"-A (\S+)(?: (?:! )?-(?:[sd] [\d./]+|[iop] \w+))* -j (\S+)", re.ASCII)
#: Letters of options without a value: others may follow in the same word.
_FLAGS = "46fnvxw"
#: The short letter of each long option that matters here; @ where the value is an address of an extension, and
#: " where it is a text, which may look like an option.
_LONG = {
    "append": "A", "insert": "I", "replace": "R", "delete": "D", "check": "C", "flush": "F", "zero": "Z",
    "policy": "P", "new-chain": "N", "rename-chain": "E", "jump": "j", "goto": "g", "match": "m",
    "source": "s", "src": "s", "destination": "d", "dst": "d", "ipv4": "4", "ipv6": "6",
    "ctorigsrc": "@", "ctorigdst": "@", "ctreplsrc": "@", "ctrepldst": "@", "tunnel-src": "@", "tunnel-dst": "@",
    "gateway": "@", "on-ip": "@", "to": "@", "to-source": "@", "to-destination": "@",
    "src-range": "@", "dst-range": "@",
    "comment": '"', "string": '"', "hex-string": '"', "log-prefix": '"', "nflog-prefix": '"',
}  # fmt: skip


class Line(NamedTuple):
    """A line that says something.

    place  its number
    table  the table that it stands in; "" outside of all
    kind   "*" begins a table, ":" declares a chain, "-" is a command, "A" one of the usual rules
    words  of a declaration, the chain and its policy; of a usual rule, its chain and what it calls
    """

    place: int
    table: str
    kind: str
    words: list[str]


def read(lines: list[str]) -> Iterator[Line]:
    """Every line but comments, empty ones and COMMIT."""
    table = ""
    for place, line in enumerate(lines, 1):
        if not line or line[0] == "#":
            continue
        usual = _USUAL.fullmatch(line)
        if usual and '"' not in line:
            yield Line(place, table, "A", [*usual.groups()])
        elif table and line == "COMMIT":
            table = ""
        elif line[0] == "*" and not table:
            table = "".join(line[1:].split()[:1])
            yield Line(place, table, "*", [])
        elif line[0] == ":" and table:
            yield Line(place, table, ":", line[1:].split())
        else:  # counters may stand before a command, and count as nothing
            yield Line(place, table, "-", words(line.partition("]")[2] if line[0] == "[" else line))


def words(line: str) -> list[str]:
    """A quotation mark ends the word that it closes. Inside, a backslash stands before a mark that is meant."""
    if '"' not in line:
        return line.split() if line.isascii() else [word for word in re.split("[ \t]+", line) if word]
    found = _WORD.findall(line)
    return [plain or before + re.sub(r"\\(.)", r"\1", inside) for before, inside, plain in found]


def options(words: list[str]) -> Iterator[tuple[str, str]]:
    """The letter and the value of each option: what is attached to it, or the next word."""
    text = False  # whether this word is a text
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if text or word[:1] != "-" or len(word) < 2:
            text = False
        elif word[1] == "-":
            name, attached, value = word[2:].partition("=")
            letter = _letter(name)
            text = letter == '"' and not attached
            yield letter, value if attached else following
        else:
            rest = word[1:].lstrip(_FLAGS)
            yield from ((letter, "") for letter in word[1 : len(word) - len(rest)])
            yield rest[:1], rest[1:] or following


@lru_cache(512)
def _letter(name: str) -> str:
    """Of a long option, whole or abbreviated; "" for one that does not matter."""
    return _LONG.get(name) or next((letter for option, letter in _LONG.items() if name and option.startswith(name)), "")
