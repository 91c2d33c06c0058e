# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of an nftables file or listing, and how many rules each has."""

import re
from collections import Counter
from collections.abc import Iterator

FAMILIES = frozenset({"ip", "ip6", "inet", "arp", "bridge", "netdev"})
#: Statements of a chain that begin with these words are no rules.
_NO_RULE = frozenset({"type", "policy", "comment", "devices", "flags"})
_MAKES = frozenset({"add", "create", "insert"})
_TOKEN = re.compile(r'"[^"\n]*"|#[^\n]*|\\\n|[{};\n]|[^"#{};\n\\]+|.')
_HANDLE = re.compile(r"# handle \d+$")

Table = tuple[str, str]


def declared(text: str) -> tuple[set[Table], Counter[Table]]:
    """The tables that loading this text leaves, and the least number of rules in each. Rules are not counted once the
    text deletes or flushes something."""
    tables: set[Table] = set()
    rules: Counter[Table] = Counter()
    tokens = [token for token in _TOKEN.findall(text) if token[0] != "#" and token != "\\\n"]
    for words, body in _statements(tokens):
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
            chains = [block for words, block in _statements(body) if words[:1] == ["chain"]]
            rules[table] += sum(map(_count, chains))
        elif kind == "rule" and verb in ("add", "insert") and table is not None:
            rules[table] += 1
        elif kind == "chain" and table is not None:
            rules[table] += _count(body)
    return tables, rules


def listed(text: str) -> Counter[Table]:
    """The tables that `nft -a -t list ruleset` prints, and how many rules each has."""
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
    """The table that `inet name ...` or `name ...` (family ip) names."""
    if words and words[0] in FAMILIES:
        return (words[0], words[1]) if len(words) > 1 else None
    return ("ip", words[0]) if words else None


def _count(body: list[str]) -> int:
    """How many rules a chain's block has. The braces of a set inside a rule belong to the rule."""
    return sum(words[0] not in _NO_RULE for words, _ in _statements(body))


def _statements(tokens: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Statements on the outermost level: their words, and the tokens of the block that follows them."""
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
