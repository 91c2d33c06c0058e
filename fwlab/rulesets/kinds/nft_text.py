# SPDX-License-Identifier: GPL-2.0-or-later
"""What a text of nftables holds, as far as it can be counted: its tables, and how many rules are in each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

FAMILIES = frozenset({"ip", "ip6", "inet", "arp", "bridge", "netdev"})
#: In a chain these are no rules.
_NO_RULE = frozenset({"type", "policy", "comment", "devices", "flags"})
_MAKES = frozenset({"add", "create", "insert"})
_TOKEN = re.compile(r'"[^"\n]*"|#[^\n]*|\\\n|[{};\n]|[^"#{};\n\\]+|.')
_HANDLE = re.compile(r"# handle \d+$")

Table = tuple[str, str]


def declared(text: str) -> tuple[set[Table], Counter[Table]]:
    """The tables that loading this text leaves, and the least number of rules in each; not counted where it deletes."""
    tables: set[Table] = set()
    rules: Counter[Table] = Counter()
    for words, body in _statements(text):
        verb = words[0] if words[0] in _MAKES | {"delete", "destroy", "flush", "replace", "reset"} else ""
        words = words[1:] if verb else words
        kind = words[0] if words else ""
        table = _table(words[1:])
        if verb in ("delete", "destroy", "flush"):
            if kind == "ruleset":
                family = words[1] if len(words) > 1 else None
                tables = {table for table in tables if family not in (None, table[0])}
            elif kind == "table" and verb != "flush":
                tables.discard(table or ("", ""))
            rules.clear()
        elif kind == "table" and table is not None:
            tables.add(table)
            rules[table] += _rules_in(body)
        elif kind == "rule" and verb in ("add", "insert") and table is not None:
            rules[table] += 1
        elif kind == "chain" and table is not None:
            rules[table] += _count(body)
    return tables, rules


def listed(text: str) -> Counter[Table]:
    """The same of what `nft -a -t list ruleset` prints."""
    rules: Counter[Table] = Counter()
    table: Table = ("", "")
    for line in text.splitlines():
        if line.startswith("table "):
            _, family, name = line.split()[:3]
            table = (family, name)
            rules[table] += 0
        elif (found := _HANDLE.search(line)) and not line[: found.start()].rstrip().endswith("{"):
            rules[table] += 1
    return rules


def _table(words: list[str]) -> Table | None:
    """`inet name ...` or `name ...`, which is family ip."""
    if words and words[0] in FAMILIES:
        return (words[0], words[1]) if len(words) > 1 else None
    return ("ip", words[0]) if words else None


def _statements(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Commands on the outermost level: their words, and the tokens of the block that follows, if any."""
    words: list[str] = []
    body: list[str] = []
    depth = 0
    for token in _TOKEN.findall(text):
        if token.startswith("#") or token == "\\\n":
            continue
        if depth:
            depth += (token == "{") - (token == "}")
            if depth:
                body.append(token)
        elif token == "{":
            depth = 1
        elif token in (";", "\n"):
            if words:
                yield words, body
            words, body = [], []
        elif token != "}":
            words += token.split()
    if words:
        yield words, body


def _rules_in(body: list[str]) -> int:
    """The rules in a table's block: those of its chains."""
    return sum(_count(block) for words, block in _blocks(body) if words[:1] == ["chain"])


def _count(body: list[str]) -> int:
    """The rules in a chain's block. The braces of a set within a rule are part of it."""
    return sum(words[0] not in _NO_RULE for words, _ in _blocks(body))


def _blocks(tokens: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    words: list[str] = []
    body: list[str] = []
    depth = 0
    for token in [*tokens, "\n"]:
        if depth or token == "{":
            depth += (token == "{") - (token == "}")
            if depth and not (token == "{" and depth == 1):
                body.append(token)
        elif token in (";", "\n"):
            if words:
                yield words, body
            words, body = [], []
        else:
            words += token.split()
