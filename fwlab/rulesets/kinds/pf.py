# SPDX-License-Identifier: GPL-2.0-or-later
"""pf: a pf.conf, loaded by pfctl on a DUT with FreeBSD.

The product itself says `set skip on` the management port, before the file is read, so no rule can shut SSH out. What a
file may not do: read other files, name other ports than the links, write to the console for each packet, or take more
memory than there is. The agent that loads it is fwlab/dut/freebsd/agent/pf.lua.
"""

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from fwlab.rulesets.kind import Faults, KernelView, RulesetKind
from fwlab.rulesets.kinds.limits import MAX_BYTES
from fwlab.rulesets.kinds.lines import Fault, asks_for, is_host_name, other_link

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
MAX_MACRO = 1 << 16
#: Characters of all macros where they are used. A word that is read again for each use takes its time.
MAX_EXPANDED = 1 << 19
#: Tokens of a file with macros expanded: a table of 100 000 addresses with commas has 200 000.
MAX_TOKENS = 2_000_000

#: Words of a rule that a list may follow.
_BEFORE_LISTS = (
    *("on", "received-on", "for", "proto", "from", "to", "port", "os", "user", "group", "icmp-type", "icmp6-type"),
    *("route-to", "reply-to", "dup-to", "bridge-to", "flags", "tos"),
)


class Token(NamedTuple):
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
    its statement. Raises Fault."""
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
            if count > MAX_TOKENS:
                raise Fault(token.line, f"more than {MAX_TOKENS} words", "use fewer and shorter macros")
            if expanded > MAX_EXPANDED:
                what = f"macros that expand to more than {MAX_EXPANDED >> 10} KiB"
                raise Fault(token.line, what, "use a table in place of a long macro")
            if part.kind == "mark":
                lists += (part.text == "{") - (part.text == "}")
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


def _tokens(text: str) -> Iterator[Token]:
    line = 1
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
                raise Fault(line, "a quoted text does not end", f"add the other {value}")
            yield Token(line, value, kind)
        line += value.count("\n")


def _expanded(token: Token, macros: dict[str, Statement]) -> Iterator[Token]:
    """The macro's value; nothing for an unknown macro, which pfctl rejects."""
    return (Token(token.line, part.text, part.kind, macro=True) for part in macros.get(token.text, ()))


def _define(statement: Statement, macros: dict[str, Statement]) -> None:
    """Keep the macro that the statement defines, if it is a definition."""
    if len(statement) < 2 or statement[0].kind != "word" or not statement[1].is_mark("="):
        return
    value = " ".join(token.text for token in statement[2:])
    line = statement[0].line
    if len(value) > MAX_MACRO:
        raise Fault(line, f"a macro of {len(value)} characters; {MAX_MACRO} are allowed", "use a table")
    if _HIDING.search(value):
        raise Fault(line, "a macro with a quotation mark, # or $ in it", "write that part where it is used")
    macros[statement[0].text] = list(_tokens(value))


#: The DUT's two links under FreeBSD (topology.yml), and the loopback, which does no harm; `lo` is its group.
LINKS = ("vtnet0", "vtnet1")
_PORTS = {*LINKS, "lo0", "lo"}
#: Words by which pfctl reads other files: include, load anchor ... from, table ... file, set fingerprints. A macro's
#: value becomes words where it is used, so they are refused in quotes, too.
_READING = {"include", "load", "file", "fingerprints"}
_MAY_READ = re.compile("|".join(_READING))
#: pfctl drops a backslash and reads what follows as part of the word.
_HIDES = re.compile(r"\\(?!$)|\S\\$")
_ROUTING = ("route-to", "reply-to", "dup-to", "bridge-to")
#: After these words comes a name that is no address.
_NAMING = ("label", "tag", "tagged", "anchor", "nat-anchor", "rdr-anchor", "binat-anchor", "os", "user", "group")
_ADDRESS = re.compile(r"[0-9a-fA-F:]*[.:0-9][0-9a-fA-F.:]*")
#: Bytes that the kernel needs for one of each, roughly, with its keys and counters.
_BYTES = {"states": 640, "src-nodes": 256, "frags": 256, "table-entries": 256, "anchors": 4096, "eth-anchors": 4096}
#: Rules after all lists were expanded. A rule takes some 4 KiB of the kernel's memory.
MAX_RULES = MAX_BYTES // 4096
#: Larger products are not computed: they may have a million digits.
_MAX_NUMBER = 10**12
_RULES = ("pass", "block", "match", "scrub", "nat", "rdr", "binat", "no", "antispoof", "ether")


def validate(lines: list[str]) -> Faults:
    """What the file says that it must not, and what would take more memory than there is."""
    for number, line in enumerate(lines, 1):
        if _HIDES.search(line):
            yield number, "a backslash inside a word", "remove it, or put a blank before it at the end of the line"
            return
    rules = 0
    try:
        for statement in statements("\n".join(lines)):
            yield from _faults(statement)
            yield from _broken(statement, lines)
            rules += _expanded_rules(statement)
            if rules > MAX_RULES:
                what = f"{rules} rules once the lists are expanded: the DUT has memory for {MAX_RULES}"
                yield statement[0].line, what, "use a table"
                return
    except Fault as error:
        yield error.args


def _faults(statement: Statement) -> Faults:
    for place, token in enumerate(statement):
        if _MAY_READ.search(token.text):
            yield from _reading(token)
        if token.kind != "word":
            continue
        if token.text in ("on", "received-on") or (token.text == "for" and statement[0].is_word("antispoof")):
            yield from _ports(_named(_after(statement, place)))
        elif token.text == "loginterface":
            yield from _ports(name for name in itertools.islice(_after(statement, place), 1) if name.text != "none")
        elif token.text in _ROUTING:
            yield from _ports(_routed(_after(statement, place)))
        elif is_host_name(token.text) and not _is_name(statement, place):
            yield token.line, *asks_for(token.text)
    if statement[0].is_word("set") and len(statement) > 2:
        yield from _option(statement)


def _broken(statement: Statement, lines: list[str]) -> Faults:
    """Commas at the end of a line: pfctl says only "syntax error", and says it of the next line."""
    for token, following in itertools.pairwise(statement):
        if token.is_mark(",") and following.line > token.line and not lines[token.line - 1].endswith("\\"):
            yield token.line, "a line ends with a comma: pfctl does not read on", "begin the next line with the comma"


def _after(statement: Statement, place: int) -> Iterator[Token]:
    """The tokens that follow. A copy of them for each token would take minutes where a table has 100 000 addresses."""
    return (statement[index] for index in range(place + 1, len(statement)))


def _is_name(statement: Statement, place: int) -> bool:
    """Whether this word names something other than a host, such as a label or a timeout."""
    return statement[0].is_word("set") or (place > 0 and statement[place - 1].is_word(*_NAMING))


def _reading(token: Token) -> Faults:
    # A word may have a hyphen, which a macro's value keeps; it may also have quotes, which other versions may split at.
    for name in sorted(_READING.intersection(re.split(r"[^\w-]+", token.text))):
        yield token.line, f"the word {name} is not allowed: a ruleset must not read other files", f"remove {name}"


def _named(after: Iterator[Token]) -> Iterator[Token]:
    """The port or ports that follow `on`."""
    after = (token for token in after if not token.is_mark("!"))
    first = next(after, None)
    if first is not None and first.is_mark("{"):
        for token in after:
            if token.is_mark("}"):
                return
            if token.kind != "mark":
                yield token
    elif first is not None and not first.is_word("rdomain", "any"):
        yield first


def _routed(after: Iterator[Token]) -> Iterator[Token]:
    """The ports that follow route-to and the like: (port address), address@port, or a list of these."""
    depth = 0
    before = None
    for token in after:
        depth += token.is_mark("(", "{") - token.is_mark(")", "}")
        name = token.text.rpartition("@")[2]
        table = before is not None and before.is_mark("<")
        if token.kind != "mark" and not table and not _ADDRESS.fullmatch(name):
            yield Token(token.line, name, token.kind)
        joined = token.is_mark("/", "@", "<", ">", "!", ",") or (before is not None and before.is_mark("/", "@", "<"))
        before = token
        if not depth and not joined:
            return


def _ports(names: Iterator[Token]) -> Faults:
    for name in names:
        if name.text not in _PORTS:
            yield name.line, *other_link(name.text, LINKS)


def _option(statement: Statement) -> Faults:
    """`set`: what would fill the memory, or print a line for each packet."""
    name, values = statement[1], statement[2:]
    if name.is_word("debug") and values[0].text not in ("none", "urgent"):
        yield name.line, f"set debug {values[0].text} prints to the console for each packet", "use none or urgent"
    if name.is_word("limit"):
        for what, size in itertools.pairwise(values):
            most = MAX_BYTES // _BYTES.get(what.text, 1)
            digits = size.text.lstrip("0") or "0"
            if what.text in _BYTES and digits.isdigit() and (len(digits) > 12 or int(digits) > most):
                yield what.line, f"limit {what.text} {digits[:20]}: the DUT has memory for {most}", "set it lower"


def _expanded_rules(statement: Statement) -> int:
    """How many rules pfctl makes of the statement: one for each combination of its lists' items."""
    if not statement[0].is_word(*_RULES):
        return 0
    product = 1
    items = depth = 0
    before = statement[0]
    for token in statement:
        depth += token.is_mark("{") - token.is_mark("}")
        table = token.is_mark("<") and not before.is_mark(">")
        if depth and (table or (token.kind != "mark" and not before.is_mark("/", "<", ">", "=", "-"))):
            items += 1
        elif not depth and items:
            product, items = min(product * items, _MAX_NUMBER), 0
        before = token
    return min(product * max(1, items), _MAX_NUMBER)


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """What pf lacks of the file: it is off, a table that the file keeps, or rules."""
    if "Status: Enabled" not in shown.check_output("pfctl -s info"):
        return "any of it: pf is off"
    found = list(statements("\n".join(lines)))
    tables = {token.text for s in found if s[0].is_word("table") for token in s[2:3] if _persists(s)}
    missing = sorted(tables - set(shown.check_output("pfctl -s Tables").split()))
    if missing:
        return f"tables {', '.join(missing)}"
    filters = sum(statement[0].is_word("pass", "block", "match", "antispoof") for statement in found)
    listed = len(shown.check_output("pfctl -s rules").splitlines())
    # pfctl's optimiser replaces many rules by few, unless the file says otherwise.
    kept = any([token.text for token in s[:3]] == ["set", "ruleset-optimization", "none"] for s in found)
    if listed < (filters if kept else min(filters, 1)):
        return f"{filters - listed} of {filters} rules"
    return None


def _persists(statement: Statement) -> bool:
    return any(token.is_word("persist") for token in statement)


KIND = RulesetKind(
    name="pf",
    suffix="pf.conf",
    position=80,
    validate=validate,
    loader=None,  # the agents that load with Python run on Linux
    missing_from_kernel=missing_from_kernel,
    extremes={"accept-all": "pass\n", "drop-all": "block drop\n"},
    system="freebsd",
)
