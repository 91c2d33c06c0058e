# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of an nftables file as nft's scanner finds them (scanner.l of nft 1.0.6), and the values of its variables.

nft looks a variable up where it stands: in the chain, then in the table, then in the file. A value keeps the variables
that it was made of, so a long value that is used often is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

#: A word begins with a letter, an underscore or a dot, and may hold - . / as well. A list of numbers is one token, so
#: that a long set is few: a line may end behind its commas. Blanks match nothing.
_TOKEN = re.compile(
    r"""(?P<quoted>"[^"]*")
    |(?P<left>\#[^\n]*|\\\n)
    |(?P<sign>[$@])(?:[ \t]|\\\n)*+(?P<name>[a-z_.][\w./-]*)
    |(?P<text>
        (?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}
        |(?:(?:[0-9a-f]{1,4}:){1,7}|:):(?:[0-9a-f]{1,4}:){0,6}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{1,4})?
        |(?:[0-9a-f]{1,2}:){5}[0-9a-f]{1,2}
        |0x[0-9a-f]+|\d[\d./\ \t-]*(?:,[\ \t\n]*[\d./\ \t-]*)*+
        |[a-z_.][\w./-]*\\?\*?
        |[^ \t])""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
#: Words that stand before the one that says what a statement is about.
VERBS = frozenset({"add", "create", "insert", "replace", "reset"})
_DEFINES = frozenset({"define", "redefine", "undefine"})
FAMILIES = frozenset({"ip", "ip6", "inet", "arp", "bridge", "netdev"})
#: Marks that end a statement, or begin one.
_ENDS = frozenset("{};\n")
#: nft rejects more scopes of variables than this, one in the other.
_MAX_SCOPES = 4


class Token(NamedTuple):
    """A word, a number, a mark, a text in quotes (without them), a variable ($name) or a set (@name).

    at     where it begins in the text
    value  the variable's value; None if it is not defined
    """

    text: str
    at: int
    quoted: bool = False
    value: list[Token] | None = None

    def is_mark(self, *marks: str) -> bool:
        """Whether it is one of these marks or keywords."""
        return self.text in marks and not self.quoted

    @property
    def is_word(self) -> bool:
        """Whether it is a word: not in quotes, and no number, address, mark, variable or set."""
        return not self.quoted and (self.text[0].isalpha() or self.text[0] in "_.") and ":" not in self.text

    @property
    def meaning(self) -> list[Token]:
        """The variable's value; of anything else, the token itself."""
        return [self] if self.value is None else self.value

    def spread(self, seen: dict[int, list[Token]]) -> Iterator[Token]:
        """The same without variables, in values neither. Values in `seen` are left out, the others are added to it."""
        todo = [self]
        while todo:
            token = todo.pop()
            if token.value is None:
                yield token
            elif id(token.value) not in seen:
                seen[id(token.value)] = token.value
                todo += reversed(token.value)


class Reader(Protocol):
    """Looks for one kind of fault, token by token."""

    @staticmethod
    def concerned(text: str) -> bool:
        """Whether the text may have such a fault. Reading takes ten times as long as asking."""

    def take(self, token: Token) -> None:
        """The next token."""

    def faults(self) -> Iterator[tuple[int, str, str]]:
        """Where each fault is in the text, what is wrong, and a hint; asked at the end."""


def tokens(text: str) -> Iterator[Token]:
    """All of them; a line end is a mark. Comments and continued lines are left out."""
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "text":
            yield Token(found[0], found.start())
        elif kind == "quoted":
            yield Token(found[0][1:-1], found.start(), quoted=True)
        elif kind == "name":
            yield Token(found["sign"] + found["name"], found.start())


def read(text: str) -> Iterator[Token]:
    """The tokens outside of definitions, each variable with its value."""
    scopes: list[dict[str, list[Token]]] = [{}]
    opened: list[bool] = []  # of each open brace: whether it is a scope of variables
    head = ""
    stream = tokens(text)
    for token in stream:
        word = "" if token.quoted else token.text
        if word in _DEFINES:
            name = next(stream, token).text
            value = [_bound(part, scopes) for part in _defined(stream)]
            if word == "undefine":
                scopes[-1].pop(name, None)
            else:
                scopes[-1][name] = value[0].meaning if len(value) == 1 else value
            head = ""
            yield Token("\n", token.at)
            continue
        if word in _ENDS:
            if word == "{":
                opened.append(head in ("table", "chain") and len(scopes) < _MAX_SCOPES)
                scopes += [{}] * opened[-1]
            elif word == "}" and opened and opened.pop():
                scopes.pop()
            head = ""
        elif not head and word not in VERBS:
            head = word
        yield _bound(token, scopes) if word[:1] == "$" else token


def _defined(stream: Iterator[Token]) -> Iterator[Token]:
    """The value of a definition: what is left of its statement. Braces may hold line ends."""
    depth = 0
    for token in stream:
        depth += token.is_mark("{") - token.is_mark("}")
        if depth <= 0 and token.is_mark(";", "\n"):
            return
        if not token.is_mark("=", "\n"):
            yield token


def _bound(token: Token, scopes: list[dict[str, list[Token]]]) -> Token:
    if token.quoted or token.text[:1] != "$":
        return token
    found = (scope[token.text[1:]] for scope in reversed(scopes) if token.text[1:] in scope)
    return token._replace(value=next(found, None))
