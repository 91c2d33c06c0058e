# SPDX-License-Identifier: GPL-2.0-or-later
"""A pf.conf as pfctl reads it: words, quoted texts and marks, with macros expanded, statement by statement."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: A comment ends with its line, and a line goes on after a backslash. A word begins with a letter, a digit, a colon or
#: an underscore, and may hold almost any mark, quotes too (yylex and allowed_in_string of pfctl's parse.y).
_TOKEN = re.compile(
    r"""(?P<skip>[ \t\f]+|\\\n)
    |(?P<comment>\#(?:[^\n\\]+|\\\n?)*+)
    |(?P<newline>\n)
    |(?P<quoted>"[^"]*"|'[^']*')
    |\$(?P<macro>\w*)
    |(?P<word>[0-9A-Za-z:_](?:[^\s(){}<>!=/\#,\\]+|\\\n)*+)
    |(?P<mark>.)""",
    re.VERBOSE | re.ASCII,
)
#: A macro's value is read again where it is used. With these it could swallow what follows there.
_HIDING = re.compile(r"[\"'#$\\]")
#: Macros may be made of macros, each twice as long as the one before.
LONGEST_MACRO = 1 << 16
#: Characters of all macros where they are used. A word that is read anew for each use takes its time.
MOST_EXPANDED = 1 << 19
#: Tokens of a file with macros expanded: a table of 100 000 addresses with commas has 200 000.
MOST_TOKENS = 2_000_000

#: Words of a rule that a list may follow.
_BEFORE_LISTS = (
    *("on", "received-on", "for", "proto", "from", "to", "port", "os", "user", "group", "icmp-type", "icmp6-type"),
    *("route-to", "reply-to", "dup-to", "bridge-to", "flags", "tos"),
)


class Unreadable(ValueError):
    """(line, what is wrong, what to do about it)"""


@dataclass(frozen=True)
class Token:
    """A word, a quoted text (without its quotes) or a mark. `macro`: it comes from a macro."""

    line: int
    text: str
    kind: str
    macro: bool = False

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text in words

    def is_mark(self, *marks: str) -> bool:
        return self.kind == "mark" and self.text in marks


Statement = list[Token]


def statements(text: str) -> Iterator[Statement]:
    """Every statement; definitions of macros too, as they are. A list may hold line ends, the block of an anchor ends
    its statement. Raises Unreadable."""
    macros: dict[str, Statement] = {}
    statement: Statement = []
    lists = count = expanded = 0
    for token in _tokens(text):
        if token.kind == "newline":
            lists -= _opens_block(statement)
            if statement and lists <= 0:
                _define(statement, macros)
                yield statement
                statement, lists = [], 0
            continue
        for part in [token] if token.kind != "macro" else _expanded(token, macros):
            count += 1
            expanded += len(part.text) + 1 if part.macro else 0
            if count > MOST_TOKENS:
                raise Unreadable(token.line, f"more than {MOST_TOKENS} words", "use fewer and shorter macros")
            if expanded > MOST_EXPANDED:
                what = f"macros that stand for more than {MOST_EXPANDED >> 10} KiB"
                raise Unreadable(token.line, what, "use a table in place of a long macro")
            lists += part.is_mark("{") - part.is_mark("}")
            statement.append(part)
    if statement:
        _define(statement, macros)
        yield statement


def _opens_block(statement: Statement) -> bool:
    """Whether the brace at the end begins an anchor's block, and no list."""
    if len(statement) < 2 or not statement[-1].is_mark("{"):
        return False
    before = statement[-2]
    list_follows = before.is_word(*_BEFORE_LISTS) or (before.kind == "mark" and not before.is_mark(")", "}", ">"))
    return any(token.is_word("anchor") for token in statement[:2]) and not list_follows


def _tokens(text: str, line: int = 1) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        kind, value = found.lastgroup or "mark", found[0]
        if kind == "quoted":
            yield Token(line, value[1:-1].replace("\n", ""), "quoted")
        elif kind == "macro":
            yield Token(line, found["macro"], "macro")
        elif kind == "word":
            yield Token(line, value.replace("\\\n", ""), "word")
        elif kind in ("newline", "mark"):
            if value in "\"'":
                raise Unreadable(line, "a quoted text does not end", f"add the other {value}")
            yield Token(line, value, kind)
        line += value.count("\n")


def _expanded(token: Token, macros: dict[str, Statement]) -> Iterator[Token]:
    """What the macro stands for; nothing for an unknown macro, which pfctl refuses."""
    return (Token(token.line, part.text, part.kind, macro=True) for part in macros.get(token.text, ()))


def _define(statement: Statement, macros: dict[str, Statement]) -> None:
    """Keep the macro that the statement defines, if it is a definition."""
    if len(statement) < 2 or statement[0].kind != "word" or not statement[1].is_mark("="):
        return
    value = " ".join(token.text for token in statement[2:])
    line = statement[0].line
    if len(value) > LONGEST_MACRO:
        raise Unreadable(line, f"a macro of {len(value)} characters; {LONGEST_MACRO} are allowed", "use a table")
    if _HIDING.search(value):
        raise Unreadable(line, "a macro with a quotation mark, # or $ in it", "write that part where it is used")
    macros[statement[0].text] = list(_tokens(value))
