# SPDX-License-Identifier: GPL-2.0-or-later
"""iptables, ip6tables and iptables-nft: tables in the form that iptables-save writes."""

import re
import shlex
from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import ClassVar, NamedTuple

from fwlab.rulesets.kind import Call, DutShell, Faults, KernelView, Loader, RulesetKind, is_update
from fwlab.rulesets.kinds.limits import BUCKET, MAX_BYTES, Chain, number, reached, too_many
from fwlab.rulesets.kinds.lines import asks_for, is_address, longer_than, unquoted

#: A word: what stands before a quotation mark, and up to the next one; or without any.
_WORD = re.compile(r'([^" \t]*)"([^"\\]*(?:\\.[^"\\]*)*)\\?(?:"|$)|([^" \t]+)', re.DOTALL)
#: Nearly all lines of a long file: a rule without extensions and names, its chain, and what it calls.
_USUAL = re.compile(r"-A (\S+)(?: (?:! )?-(?:[sd] [\d./]+|[iop] \w+))* -j (\S+)", re.ASCII)
#: Letters of options without a value: others may follow in the same word.
_FLAGS = "46fnvxw"
#: The short letter of each long option that matters here. Of an extension: @ where the value is an address, # the size
#: of a hash, % its name, and " a text, which may look like an option.
_LONG = {
    "append": "A", "insert": "I", "replace": "R", "delete": "D", "check": "C", "flush": "F", "zero": "Z",
    "policy": "P", "new-chain": "N", "rename-chain": "E", "jump": "j", "goto": "g", "match": "m",
    "source": "s", "src": "s", "destination": "d", "dst": "d", "ipv4": "4", "ipv6": "6",
    "ctorigsrc": "@", "ctorigdst": "@", "ctreplsrc": "@", "ctrepldst": "@", "tunnel-src": "@", "tunnel-dst": "@",
    "gateway": "@", "on-ip": "@", "to": "@", "to-source": "@", "to-destination": "@",
    "src-range": "@", "dst-range": "@",
    "hashlimit-htable-size": "#", "hashlimit-name": "%",
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


#: The tools run the program that this option names. getopt accepts abbreviations, and -M after other letters.
NAMES_A_PROGRAM = re.compile(r"-[46fnvxw]*M.*|--mo(d(p(r(o(be?)?)?)?)?)?(=.*)?")
#: The bpf match reads a program from a file.
NAMES_AN_OBJECT = re.compile(r"--ob.*")
#: iptables-restore reads lines of 10239 bytes at most and takes the rest of a line for another one.
MAX_LINE = 10_000
#: The chains in which packets begin.
BUILT_IN = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
#: Those of them that packets on their way through the machine enter.
THROUGH = ("PREROUTING", "FORWARD", "POSTROUTING")
#: The built-in chains of each table.
CHAINS = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": BUILT_IN,
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "security": ("INPUT", "FORWARD", "OUTPUT"),
}
#: Default number of hashlimit's buckets, on a machine with as much memory as the DUT.
_USUAL_HASH = 8192
#: Bytes of a rule or chain with its target and counters, roughly, and of a match; some matches are large.
RULE, MATCH = 256, 128
_MATCHES = {"u32": 2016, "comment": 288, "bpf": 600, "cgroup": 4160, "recent": 4096, "policy": 320, "sctp": 256}
#: Commands for a chain that must be there.
_OF_A_CHAIN = ("A", "I", "R", "D", "C", "F", "Z", "P")
#: Characters of a host's name.
_NAME = re.compile(r"[\w.-]+", re.ASCII)


def validate(lines: list[str], other: str = "6") -> Faults:
    """No program, file or host named, no more memory than the DUT has, no chains that call each other too often.

    other  the family whose lines the tool passes over
    """
    for place, line in enumerate(lines, 1):
        if longer_than(line, MAX_LINE):
            fault = f"a line of more than {MAX_LINE} bytes: iptables-restore would read it as two"
            yield place, fault, "make it shorter"
        elif ("M" in line or "--" in line) and not line.startswith("#"):
            words = unquoted(line)
            if any(NAMES_A_PROGRAM.fullmatch(word) for word in words):
                yield place, "a ruleset must not name a program", "remove the option -M (--modprobe)"
            if any(NAMES_AN_OBJECT.fullmatch(word) for word in words):
                yield place, "a ruleset must not name a file", "remove the option --object-pinned"
    yield from _tables(lines, other)


class _Table:
    """What is said of one table.

    own      chains that are declared; one may have the name of another table's built-in chain
    renamed  what a chain was called at first
    """

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.own: set[str] = set()
        self.chains: dict[Hashable, Chain] = {}
        self.renamed: dict[str, str] = {}

    def called(self, name: str) -> str:
        """What the chain was called at first."""
        return self.renamed.get(name, name)

    def put(self, chain: str, calls: Iterable[str]) -> None:
        """Add a rule."""
        name = self.called(chain)
        if name not in self.chains:
            self.chains[name] = Chain()
        self.chains[name].rules += 1
        for call in calls:
            self.chains[name].calls[self.called(call)] += 1


def _tables(lines: list[str], other: str) -> Faults:
    """Commands outside of a table or for a chain that it does not have, of which the tool would only give a number;
    hosts; memory; and chains that call each other too often."""
    table, taken, hashes = _Table(1), 0, 0
    tables = {"": table}  # what a table has in several files adds up
    for line in read(lines):
        if line.kind == "*":
            table = tables.setdefault(line.table, _Table(line.place))
        elif line.kind == ":":
            taken += RULE
            if line.words[1:2] == ["-"]:
                table.own.add(line.words[0])
        elif line.kind == "A":
            taken += RULE
            yield from _misplaced(line, line.words[0], table)
            table.put(line.words[0], line.words[1:])
        else:
            bytes_taken, buckets = yield from _command(line, table, other)
            taken, hashes = taken + bytes_taken, hashes + buckets * BUCKET
        if hashes > MAX_BYTES:
            what = f"the hashes of hashlimit take more than {MAX_BYTES >> 20} MiB of the DUT's memory"
            yield line.place, what, "make --hashlimit-htable-size smaller, or limit with fewer rules"
            return
        if taken > MAX_BYTES:
            what = f"the rules take more than {MAX_BYTES >> 20} MiB of the DUT's memory"
            yield line.place, what, "match with a set, or with fewer matches"
            return
    for table in tables.values():
        complaint = too_many(table.chains, BUILT_IN)
        if complaint:
            yield table.begin, *complaint


def _misplaced(line: Line, chain: str, table: _Table) -> Faults:
    there = CHAINS.get(line.table, BUILT_IN)
    if not line.table:
        yield line.place, "a rule outside of a table", "begin with a line such as *raw or *filter, and end with COMMIT"
    elif chain in BUILT_IN and chain not in there and chain not in table.own:
        yield line.place, f"the table {line.table} has no chain {chain}", f"use one of its chains: {', '.join(there)}"


def _command(line: Line, table: _Table, other: str) -> Generator[tuple[int, str, str], None, tuple[int, int]]:
    """The faults of one command. Returns the bytes that it takes, and the buckets of its hash."""
    command = chain = ""
    calls: list[str] = []
    sizes: list[int] = []
    taken, passed_over, named = 0, False, False
    for letter, value in options(line.words):
        if letter in _OF_A_CHAIN:
            command, chain = (command, chain) if command else (letter, value)
        elif letter in ("j", "g"):
            calls.append(value)
        elif letter == "m":
            taken += _MATCHES.get(value, MATCH)
        elif letter in ("s", "d", "@"):
            yield from _hosts(line.place, value)
        elif letter == "#":
            sizes.append(number(value) or 0)
        elif letter == "%":
            named = True
        elif letter == other:
            passed_over = True
        elif letter == "N":
            taken += RULE
            table.own.add(value)
        elif letter == "E":  # -E OLD NEW
            new = [word for word in line.words if word[:1] != "-"][-1:]
            table.renamed.update({name: table.called(value) for name in new})
            table.own.update(new)
    if command and not passed_over:
        yield from _misplaced(line, chain, table)
    if command in ("A", "I", "R"):
        taken += RULE
        table.put(chain, calls)
    return taken, max(sizes, default=_USUAL_HASH if named else 0)


def _hosts(place: int, value: str) -> Faults:
    """An address may be a list, with prefixes; one of NAT may have a port."""
    for part in value.split(","):
        name = part if is_address(part) else re.split("[/:]", part, maxsplit=1)[0]
        if not is_address(name) and _NAME.fullmatch(name):
            yield place, *asks_for(name)


#: A file may delete its own rules, or those of another file.
_DELETES = re.compile(r"(-D|--delete)\b")
_FLUSHES = re.compile(r"(-F|--flush)\b")
#: With its counters, or without.
_APPENDS = re.compile(r"(\[\d+:\d+\]\s*)?(-A|-I|--append|--insert)\b")
_TABLE = re.compile(r"^\*[ \t]*(\w+)", re.MULTILINE)
#: The lines that begin a table, declare a chain, or make one.
_DECLARES = re.compile(
    r"^(\*[ \t]*(?P<table>\w+)|(:[ \t]*|(-N|--new-chain)[ \t]+)(?P<chain>\S+)[ \t]*(?P<policy>\S*)).*", re.MULTILINE
)


def missing_from_kernel(command: str, shown: KernelView, lines: list[str]) -> str | None:
    """How many rules the kernel lacks."""
    if any(_FLUSHES.match(line) for line in lines):
        return None
    rules = sum((_APPENDS.match(line) is not None) - (_DELETES.match(line) is not None) for line in lines)
    listed = int(shown.check_output(f"{command}-save | grep -c ^-A || true"))
    return f"{rules - listed} of {rules} rules" if listed < rules else None


#: A listed rule: its chain, and the chain that it calls. Such a rule ends with that name.
_LISTED = re.compile(r"-A (\S+)(?:.* -[jg] (\S+))?$")


def _met(saved: Iterable[str]) -> int:
    """How many of the rules that iptables-save lists can be reached from a chain that passing packets enter."""
    rules: Counter[tuple[str, str]] = Counter()
    calls: dict[tuple[str, str], set[str]] = {}
    table = ""
    for line in saved:
        if line.startswith("*"):
            table = line[1:]
        elif found := _LISTED.match(line):
            rules[table, found[1]] += 1
            calls.setdefault((table, found[1]), set()).add(found[2] or "")
        elif line.startswith("-A "):
            rules[table, line.split()[1]] += 1
    entered = (key for key in rules if key[1] in THROUGH)
    return sum(rules[key] for key in reached(entered, lambda key: [(key[0], one) for one in calls.get(key, ())]))


def _remarks(texts: Mapping[str, str]) -> Iterator[str]:
    """Tables that several files fill, or that one file fills more than once. An update is meant to."""
    filled: dict[str, list[str]] = {}
    for name, text in texts.items():
        if is_update(name):
            continue
        for table, times in Counter(_TABLE.findall(text)).items():
            filled.setdefault(table, []).append(name)
            if times > 1:
                yield f"{name} begins the table {table} {times} times: each replaces what was before it in the file."
    for table, names in filled.items():
        if len(names) > 1:
            yield f"{' and '.join(names)} add up in the table {table}, in this order."


class IptablesNftLoader(Loader):
    """Does not take its tables away: undoing nft flushes them, too.

    The tool replaces a table. So a file that says more of one is loaded with --noflush, and without the lines that
    would empty a chain again: what several files say of a table adds up. An update is read as it is, also with
    --noflush: it empties the chains that it declares, as kube-proxy's do.

    _chains  by table, the chains of the files that were loaded
    """

    tool = ("iptables-nft-restore",)
    command: ClassVar[str] = "iptables-nft"

    def __init__(self, machine: DutShell) -> None:
        super().__init__(machine)
        self._chains: dict[str, set[str]] = {}

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        if each:
            return super().calls(name, text, each=each)
        if is_update(name):
            return [([*self.tool, "--noflush"], text)]
        if self._chains.keys().isdisjoint(_TABLE.findall(text)):
            self._declared(text)
            return [([*self.tool], text)]
        return [([*self.tool, "--noflush"], self._declared(text))]

    def _declared(self, text: str) -> str:
        """Remember the tables and chains; returns the text without the chains that are there, but for a policy DROP."""
        chains = set[str]()

        def declare(line: re.Match[str]) -> str:
            nonlocal chains
            if line["table"]:
                chains = self._chains.setdefault(line["table"], set())
            elif line["chain"] in chains and line["policy"] != "DROP":
                return ""  # the line stays, so that the others keep their numbers
            else:
                chains.add(line["chain"])
            return line[0]

        return _DECLARES.sub(declare, text)

    def undo(self, loaded: bool) -> None:
        self._chains.clear()

    def one_by_one(self, name: str, text: str) -> Iterator[list[str]]:
        table = "filter"
        for line in map(str.strip, text.splitlines()):
            if line.startswith("*"):
                table = line[1:]
            elif line and not line.startswith(("#", ":", "COMMIT")):
                yield [self.command, "-t", table, *shlex.split(line)]


class IptablesLoader(IptablesNftLoader):
    """Restores a file with iptables-legacy."""

    tool = ("iptables-legacy-restore",)
    command = "iptables-legacy"
    #: The module of the tables, and /proc/net/...: the names of those that the kernel has.
    module: ClassVar[str] = "ip_tables"

    def undo(self, loaded: bool) -> None:
        """Empty every table, whatever filled it: no rule, no chain but the built-in ones, and the default policies."""
        super().undo(loaded)
        emptied = ""
        for table in self._tables():
            policies = "".join(f":{chain} ACCEPT\n" for chain in CHAINS.get(table, ()))
            emptied += f"*{table}\n{policies}COMMIT\n"
        if emptied:
            self.machine.run(*self.tool, text=emptied)

    def entries(self) -> int:
        """Rules that a packet can meet on its way through the machine."""
        if self.module not in self.machine.modules():
            return 0
        return _met(self.machine.run(f"{self.command}-save").stdout.splitlines())

    def hooks(self) -> Iterable[str]:
        return [f"{self.command.removesuffix('-legacy')} {table}" for table in self._tables()]

    def _tables(self) -> list[str]:
        try:
            return self.machine.read(f"/proc/net/{self.module}_names").split()
        except OSError:
            return []


class Ip6tablesLoader(IptablesLoader):
    """The same for IPv6."""

    tool = ("ip6tables-legacy-restore",)
    command = "ip6tables-legacy"
    module = "ip6_tables"


def _kind(name: str, position: int, loader: type[IptablesNftLoader]) -> RulesetKind:
    def hooks(text: str) -> list[str]:
        return [f"{name} {table}" for table in _TABLE.findall(text)] if issubclass(loader, IptablesLoader) else []

    return RulesetKind(
        name=name,
        suffix=f".{name}",
        position=position,
        validate=partial(validate, other="4" if name == "ip6tables" else "6"),
        loader=loader,
        missing_from_kernel=partial(missing_from_kernel, loader.command),
        cumulative=True,
        hooks=hooks,
        remarks=_remarks,
    )


KIND = (
    _kind("iptables", 40, IptablesLoader),
    _kind("ip6tables", 41, Ip6tablesLoader),
    _kind("iptables-nft", 42, IptablesNftLoader),
)
