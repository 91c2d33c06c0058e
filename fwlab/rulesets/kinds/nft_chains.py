# SPDX-License-Identifier: GPL-2.0-or-later
"""The call graph of an nftables file: rules, jumps and verdict maps, chain by chain.

This is no parser of the language. It knows blocks, statements and the words that matter, and counts too many rules
rather than too few.
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass, field

from fwlab.rulesets.kinds.jumps import Chain

_TOKEN = re.compile(r'"[^"]*"|#[^\n]*|\\\n|[@$]?[A-Za-z_][\w.-]*|[{};\n]')
_FAMILIES = {"ip", "ip6", "inet", "arp", "bridge", "netdev"}
_VERBS = {"add", "create", "insert", "replace", "reset"}
#: Statements of a chain's block that begin with these words are no rules.
_NO_RULE = {"type", "policy", "comment", "devices", "flags", "hook", "elements"}
Key = tuple[Hashable, ...]


@dataclass
class _Block:
    """The text between two braces (or at the top level), with the statement that is being read.

    kind   top, table, chain, map, branches (of a verdict map within a rule), other
    owner  the table, chain or map that it belongs to
    """

    kind: str
    owner: Key = ()
    words: list[str] = field(default_factory=list)
    calls: list[Key] = field(default_factory=list)
    branches: list[list[Key]] = field(default_factory=list)


def chains_of(text: str) -> tuple[dict[Hashable, Chain], set[Hashable]]:
    """All chains, and the names of those that have a hook."""
    return _Reader().read(text)


class _Reader:
    def __init__(self) -> None:
        self._rules: dict[Key, int] = {}
        self._calls: list[tuple[Key, list[Key], list[list[Key]]]] = []
        self._hooked: set[Key] = set()
        self._maps: dict[Key, list[Key]] = {}
        self._names: dict[Key, Key] = {}
        self._defined: dict[str, list[str]] = {}

    def read(self, text: str) -> tuple[dict[Hashable, Chain], set[Hashable]]:
        stack = [_Block("top")]
        for token in _TOKEN.findall(text):
            block = stack[-1]
            if token[0] in "#\\":
                continue
            if token == "{":
                stack.append(self._opened(block))
            elif token == "}":
                self._end(block)
                if len(stack) > 1:
                    stack.pop()
                    if stack[-1].kind in ("top", "table") and "rule" not in stack[-1].words:
                        stack[-1].words = []
            elif token in ";\n":
                if block.kind in ("top", "table", "chain"):
                    self._end(block)
            else:
                self._word(stack, token.strip('"'))
        for block in reversed(stack):
            self._end(block)
        return self._chains(), {self._known(key) for key in self._hooked}

    def _opened(self, block: _Block) -> _Block:
        words = [word for word in block.words if word not in _VERBS] or [""]
        if block.kind in ("top", "table") and words[0] in ("define", "redefine"):
            return _Block("map", ("$" + "".join(words[1:2]),))
        if block.kind == "top":
            made = {"table": "table", "chain": "chain", "map": "map", "element": "map"}.get(words[0])
            if made:
                return _Block(made, _key(words[1:], 1 if made == "table" else 2))
        if block.kind == "table" and words[0] in ("chain", "map"):
            return _Block(words[0], (*block.owner, "".join(words[1:2])))
        if block.kind == "map":
            return block if words[0] == "" else _Block("map", block.owner)
        if block.kind == "branches":
            return block
        if words[-1] == "vmap":
            group: list[Key] = []
            block.branches.append(group)
            return _Block("branches", self._table(block), calls=group)
        if words[-1] in ("jump", "goto"):  # an anonymous chain: its rules count as the caller's
            return _Block("chain", block.owner if block.kind == "chain" else _key(words[1:], 2))
        return _Block("other", block.owner)

    def _word(self, stack: list[_Block], word: str) -> None:
        block, before = stack[-1], stack[-1].words[-1:]
        if block.kind in ("top", "chain", "branches", "map") and before in (["jump"], ["goto"]):
            targets = [word] if word[:1] != "$" else self._defined.get(word[1:], [])
            for target in targets:
                block.calls.append((*self._table(block), target))
            if block.kind == "map":
                self._maps.setdefault(block.owner, []).extend(block.calls)
                block.calls.clear()
        elif before == ["vmap"] and word[:1] in ("@", "$"):
            block.branches.append([(word[0], *self._table(block), word[1:] if word[0] == "@" else word)])
        block.words.append(word)

    def _table(self, block: _Block) -> Key:
        """Family and table that a name in this block belongs to."""
        if block.kind == "top":
            return _key([word for word in block.words if word not in _VERBS][1:], 1)
        return block.owner[:2]

    def _end(self, block: _Block) -> None:
        words = [word for word in block.words if word not in _VERBS]
        if block.kind == "chain" and words:
            self._rule(block, block.owner, words)
        elif block.kind == "top" and words[:1] == ["rule"]:
            self._rule(block, _key(words[1:], 2), words)
        elif block.kind in ("top", "table") and words[:1] in (["define"], ["redefine"]):
            self._defined.setdefault("".join(words[1:2]), []).extend(words[2:])
        elif block.kind == "top" and words[:2] == ["rename", "chain"]:
            self._renamed(words[2:])
        if block.kind != "branches":
            block.words, block.calls, block.branches = [], [], []

    def _rule(self, block: _Block, chain: Key, words: list[str]) -> None:
        if "hook" in words and words[0] in _NO_RULE:
            self._hooked.add(chain)
        if words[0] in _NO_RULE:
            return
        self._rules[chain] = self._rules.get(chain, 0) + 1
        if block.calls or block.branches:
            self._calls.append((chain, block.calls, block.branches))

    def _renamed(self, words: list[str]) -> None:
        key = _key(words, 2)
        new = words[3:4] if words[:1] and words[0] in _FAMILIES else words[2:3]
        self._names[(*key[:2], *new)] = self._known(key)

    def _known(self, key: Key) -> Key:
        return self._names.get(key, key)

    def _chains(self) -> dict[Hashable, Chain]:
        made: dict[Hashable, Chain] = {}
        groups: dict[Key, tuple[Hashable, ...]] = {}
        for key, count in self._rules.items():
            made.setdefault(self._known(key), Chain()).rules += count
        for chain, calls, branches in self._calls:
            into = made[self._known(chain)].calls
            for target in calls:
                into[(self._known(target),)] += 1
            for group in branches:
                if len(group) == 1 and group[0][0] in ("@", "$"):
                    if group[0] not in groups:
                        groups[group[0]] = tuple(self._in_map(group[0]))
                    into[groups[group[0]]] += 1
                else:
                    into[tuple(self._known(key) for key in group)] += 1
        return made

    def _in_map(self, key: Key) -> list[Key]:
        """The chains that a named map ("@", family, table, name) or a variable ("$", ...) leads to."""
        sign, family, table, *name = key
        if sign == "@":
            return [self._known(key) for key in self._maps.get((family, table, *name), ())]
        return [self._known((family, table, key[-1])) for key in self._maps.get(tuple(name), ())]


def _key(words: list[str], names: int) -> Key:
    """(family, table, …) with so many `names`. nft's default family is ip."""
    family = words[0] if words and words[0] in _FAMILIES else "ip"
    rest = words[1:] if words and words[0] in _FAMILIES else words
    return (family, *rest[:names])
