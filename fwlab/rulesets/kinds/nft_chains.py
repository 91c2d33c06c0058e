# SPDX-License-Identifier: GPL-2.0-or-later
"""The call graph of an nftables file: rules, jumps and verdict maps, chain by chain.

This is no parser of the language. It knows blocks, statements and the words that matter, and counts too many rules
rather than too few.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from fwlab.rulesets.kinds.limits import MAX_RULES, TOO_MANY_BRANCHES, Chain, too_many
from fwlab.rulesets.kinds.nft_tokens import FAMILIES, VERBS, Token

#: Statements of a chain's block that begin with these words are no rules.
_NO_RULE = {"type", "policy", "comment", "devices", "flags", "hook", "elements"}
Key = tuple[Hashable, ...]


@dataclass
class _Block:
    """What stands between two braces (or at the top level), with the statement that is being read.

    kind   top, table, chain, map (of verdicts, named or within a rule), other
    table  family and table that names in it belong to
    owner  the chain or map
    calls  what the statement calls
    """

    kind: str
    table: Key = ()
    owner: Key = ()
    words: list[str] = field(default_factory=list)
    calls: list[Key] = field(default_factory=list)


class Chains:
    """Reads a file token by token, as a Reader."""

    def __init__(self) -> None:
        self._stack = [_Block("top")]
        self._made: dict[Key, Chain] = {}
        self._hooked: set[Key] = set()
        self._names: dict[Hashable, Hashable] = {}
        #: By table and id of a variable's value, the map that it makes there. The value is stored so its id is unique.
        self._values: dict[Key, tuple[Key, list[Token]]] = {}
        self._branches = 0

    @staticmethod
    def concerned(text: str) -> bool:
        return "jump" in text or "goto" in text

    def take(self, token: Token) -> None:
        block = self._stack[-1]
        if token.is_mark("{"):
            self._stack.append(self._opened(block))
        elif token.is_mark("}"):
            self._end(block)
            if len(self._stack) > 1:
                self._stack.pop()
                if self._stack[-1].kind in ("top", "table") and "rule" not in self._stack[-1].words[:1]:
                    self._stack[-1].words = []
        elif token.is_mark(";", "\n"):
            if block.kind in ("top", "table", "chain"):
                self._end(block)
        elif token.is_word or token.text[:1] in ("$", "@"):
            self._word(block, token)
        elif token.quoted:
            block.words.append("")

    def faults(self) -> Iterator[tuple[int, str, str]]:
        """The fault and a hint if a packet may pass too many rules."""
        for block in reversed(self._stack):
            self._end(block)
        known: dict[Hashable, Chain] = {}
        for key, chain in self._made.items():
            into = known.setdefault(self._known(key), Chain(one=chain.one))
            into.rules += chain.rules
            for called, times in chain.calls.items():
                into.calls[self._known(called)] += times
        complaint = too_many(known, {self._known(key) for key in self._hooked})
        if self._branches > MAX_RULES:
            complaint = TOO_MANY_BRANCHES
        if complaint:
            yield 0, *complaint

    def _opened(self, block: _Block) -> _Block:
        words = block.words or [""]
        if block.kind == "top" and words[0] == "table":
            return _Block("table", _key(words[1:], 1))
        if block.kind in ("top", "table") and words[0] in ("chain", "map", "element"):
            name = (*block.table, *words[1:2]) if block.kind == "table" else _key(words[1:], 2)
            return _Block("chain", name[:2], name) if words[0] == "chain" else self._map(name[:2], ("@", *name))
        if block.kind == "map":
            return _Block("map", block.table, block.owner)
        table = self._table(block)
        if words[-1] == "vmap":
            made = self._map(table, ("vmap", len(self._made)))
            block.calls.append(made.owner)
            return made
        if words[-1] in ("jump", "goto"):  # an anonymous chain: its rules count as the caller's
            return _Block("chain", table, block.owner if block.kind == "chain" else _key(words[1:], 2))
        return _Block("other", table)

    def _map(self, table: Key, owner: Key) -> _Block:
        self._made.setdefault(owner, Chain(one=True))
        return _Block("map", table, owner)

    def _word(self, block: _Block, token: Token) -> None:
        before = block.words[-1] if block.words else ""
        if before in ("jump", "goto") and block.kind != "other":
            meant = token.meaning
            if len(meant) == 1:  # nft refuses a variable of several words
                called = (*self._table(block), meant[0].text)
                if block.kind == "map":
                    self._made[block.owner].calls[called] += 1
                else:
                    block.calls.append(called)
        elif before == "vmap" and token.text[0] == "@":
            block.calls.append(("@", *self._table(block), token.text[1:]))
        elif before == "vmap" and token.value is not None:
            block.calls.append(self._variable(self._table(block), token.meaning))
        if token.text not in VERBS:
            block.words.append(token.text)

    def _variable(self, table: Key, value: list[Token]) -> Key:
        """The verdict map in a variable."""
        place = (*table, id(value))
        if place not in self._values:
            made = self._map(table, ("vmap", len(self._made)))
            self._values[place] = made.owner, value
            self._branches += len(value)
            for token in value if self._branches <= MAX_RULES else ():
                if token.is_word or token.value is not None:
                    self._word(made, token)
        return self._values[place][0]

    def _table(self, block: _Block) -> Key:
        """Family and table that a name in this block belongs to."""
        return _key(block.words[1:], 1) if block.kind == "top" else block.table

    def _end(self, block: _Block) -> None:
        words = block.words
        if block.kind == "chain" and words:
            self._rule(block, block.owner)
        elif block.kind == "top" and words[:1] == ["rule"]:
            self._rule(block, _key(words[1:], 2))
        elif block.kind == "top" and words[:2] == ["rename", "chain"]:
            self._renamed(words[2:])
        block.words, block.calls = [], []

    def _rule(self, block: _Block, chain: Key) -> None:
        if block.words[0] in _NO_RULE:
            if "hook" in block.words:
                self._hooked.add(chain)
            return
        made = self._made.setdefault(chain, Chain())
        made.rules += 1
        made.calls.update(block.calls)

    def _renamed(self, words: list[str]) -> None:
        key = _key(words, 2)
        new = words[3:4] if words[:1] and words[0] in FAMILIES else words[2:3]
        self._names[(*key[:2], *new)] = self._known(key)

    def _known(self, key: Hashable) -> Hashable:
        return self._names.get(key, key)


def _key(words: list[str], names: int) -> Key:
    """(family, table, …) with this many `names`. nft's default family is ip."""
    family = words[0] if words and words[0] in FAMILIES else "ip"
    rest = words[1:] if words and words[0] in FAMILIES else words
    return (family, *rest[:names])
