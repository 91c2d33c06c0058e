# SPDX-License-Identifier: GPL-2.0-or-later
"""iptables, ip6tables and iptables-nft: tables in the form that iptables-save writes."""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import ClassVar

from fwlab.rulesets.kind import Faults, Loader, RulesetKind, Shown
from fwlab.rulesets.kinds.jumps import MOST_RULES, Chain, too_many
from fwlab.rulesets.kinds.lines import longer_than, unquoted
from fwlab.rulesets.kinds.memory import BUCKET, MOST_BYTES, number

#: The tools run the program that this option names. getopt accepts abbreviations, and -M after other letters.
NAMES_A_PROGRAM = re.compile(r"-[46fnvxw]*M.*|--mo(d(p(r(o(be?)?)?)?)?)?(=.*)?")
#: The bpf match reads a program from a file.
NAMES_AN_OBJECT = re.compile(r"--ob.*")
#: iptables-restore reads lines of 10239 bytes at most and takes the rest of a line for another one.
LONGEST_LINE = 10_000
#: The chains in which packets begin.
BUILT_IN = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
#: Which of them a table has, if it has not all of them.
_CHAINS_OF = {
    "raw": ("PREROUTING", "OUTPUT"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
}
#: Those of them that packets on their way through the machine enter.
THROUGH = ("PREROUTING", "FORWARD", "POSTROUTING")
#: Options that put a rule into a chain, call a chain, make one or rename one. Long options may be abbreviated.
_PUTS = re.compile(r"-[46fnvxw]*[AIR](?P<short>.*)|--(ap\w*|ins\w*|repl\w*)(=(?P<long>.*))?")
_CALLS = re.compile(r"-[46fnvxw]*[jg](?P<short>.*)|--(j\w*|g\w*)(=(?P<long>.*))?")
_MAKES = re.compile(r"-[46fnvxw]*N(?P<short>.*)|--new\w*(=(?P<long>.*))?")
_RENAMES = re.compile(r"-[46fnvxw]*E(?P<short>.*)|--ren\w*(=(?P<long>.*))?")
_HASH = re.compile(r"--hashlimit-htable-s\w*(=(?P<long>.*))?")
_HASH_NAME = re.compile(r"--hashlimit-na\w*(=.*)?")
#: A file without these has built-in chains only.
_OWN_CHAIN = re.compile(r"^:\s*\S+\s+[\"']?-|-[46fnvxw]*N|--n")
#: Default number of hashlimit's buckets, on a machine with as much memory as the DUT.
_USUAL_HASH = 8192


def validate(lines: list[str]) -> Faults:
    """No program or file named, no hash that takes all memory, no chains that call each other too often."""
    hashes = 0
    for place, line in enumerate(lines, 1):
        if longer_than(line, LONGEST_LINE):
            fault = f"a line of more than {LONGEST_LINE} bytes: iptables-restore would read it as two"
            yield place, fault, "make it shorter"
            continue
        if ("M" not in line and "--" not in line) or line.startswith("#"):
            continue
        words = unquoted(line)
        if any(NAMES_A_PROGRAM.fullmatch(word) for word in words):
            yield place, "a ruleset must not name a program", "remove the option -M (--modprobe)"
        if any(NAMES_AN_OBJECT.fullmatch(word) for word in words):
            yield place, "a ruleset must not name a file", "remove the option --object-pinned"
        if "hashlimit" in line:
            hashes += _hash_bytes(_words(line))
            if hashes > MOST_BYTES:
                what = f"the hashes of hashlimit take more than {MOST_BYTES >> 20} MiB of the DUT's memory"
                yield place, what, "make --hashlimit-htable-size smaller, or limit with fewer rules"
                return
    yield from _missing_chains(lines)
    yield from _bombs(lines)


def _missing_chains(lines: list[str]) -> Faults:
    """Rules outside of a table, or for a built-in chain that it does not have. The tool would only give a number."""
    table = ""
    for place, line in enumerate(lines, 1):
        if line.startswith("*"):
            table = line[1:].strip()
        elif line.rstrip() == "COMMIT":
            table = ""
        elif line.startswith(("-A ", "-I ")) and not table:
            yield place, "a rule outside of a table", "begin with a line such as *raw or *filter, and end with COMMIT"
            return
        elif line.startswith("-A ") and table in _CHAINS_OF:
            chain = line[3:40].split(None, 1)[:1]
            if chain and chain[0] in BUILT_IN and chain[0] not in _CHAINS_OF[table]:
                there = ", ".join(_CHAINS_OF[table])
                yield place, f"the table {table} has no chain {chain[0]}", f"use one of its chains: {there}"
                return


def _words(line: str) -> list[str]:
    """The words of a line without regard to quotes: this counts too many rather than too few."""
    return re.sub(r"[\"'\\]", "", line).split()


def _hash_bytes(words: list[str]) -> int:
    buckets = [number(size) or 0 for size in _values(words, _HASH)]
    named = any(_HASH_NAME.fullmatch(word) for word in words)
    return BUCKET * max([0, *buckets, _USUAL_HASH if named and not buckets else 0])


def _values(words: list[str], option: re.Pattern[str]) -> Iterator[str]:
    """The values of this option, whether attached to it or in the next word."""
    for place, word in enumerate(words):
        found = option.fullmatch(word)
        if found:
            attached = found.groupdict().get("short") or found.groupdict().get("long")
            yield attached or (words[place + 1] if place + 1 < len(words) else "")


def _bombs(lines: list[str]) -> Faults:
    """Chains that call each other too often, table by table: a table replaces what it was before."""
    if len(lines) < MOST_RULES and not any(map(_OWN_CHAIN.search, lines)):
        return
    begin = 1
    chains: dict[Hashable, Chain] = {}
    renamed: dict[str, str] = {}
    for place, line in enumerate([*lines, "*"], 1):
        if line.startswith("*"):
            complaint = too_many(chains, BUILT_IN)
            if complaint:
                yield begin, *complaint
            begin, chains, renamed = place, {}, {}
        elif line.startswith("-A ") and '"' not in line and "'" not in line:  # as iptables-save writes it
            words = line.split()
            _put(chains, renamed, "".join(words[1:2]), words[2:])
        elif line.startswith(":") or ("-" in line and not line.lstrip().startswith("#")):
            words = _words(line)
            for name in _values(words, _RENAMES):
                after = words.index(name) + 1 if name in words else len(words)
                renamed.update({new: renamed.get(name, name) for new in words[after : after + 1]})
            for chain in [*_values(words, _PUTS)][:1]:
                _put(chains, renamed, chain, words)


def _put(chains: dict[Hashable, Chain], renamed: dict[str, str], chain: str, words: list[str]) -> None:
    into = chains.setdefault(renamed.get(chain, chain), Chain())
    into.rules += 1
    for at, word in enumerate(words):
        if word[:1] == "-" and ("j" in word or "g" in word):
            for name in _values(words[at : at + 2], _CALLS):
                into.calls[renamed.get(name, name)] += 1
                break


#: A file may delete its own rules, or those of another file.
_DELETES = re.compile(r"(-D|--delete)\b")
_FLUSHES = re.compile(r"(-F|--flush)\b")
#: With its counters, or without.
_APPENDS = re.compile(r"(\[\d+:\d+\]\s*)?(-A|-I|--append|--insert)\b")
_TABLE = re.compile(r"^\*(\w+)", re.MULTILINE)
#: The built-in chains of each table.
CHAINS = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
    "security": ("INPUT", "FORWARD", "OUTPUT"),
}


def _absent(save: str) -> Callable[[Shown, list[str]], str | None]:
    def absent(shown: Shown, lines: list[str]) -> str | None:
        if any(_FLUSHES.match(line) for line in lines):
            return None
        rules = sum((_APPENDS.match(line) is not None) - (_DELETES.match(line) is not None) for line in lines)
        listed = int(shown.check_output(f"{save} | grep -c ^-A || true"))
        return f"{rules - listed} of {rules} rules" if listed < rules else None

    return absent


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
    todo = [key for key in rules if key[1] in THROUGH]
    reached = set(todo)
    while todo:
        table, chain = todo.pop()
        more = {(table, called) for called in calls.get((table, chain), ()) if (table, called) in rules} - reached
        reached |= more
        todo += more
    return sum(rules[key] for key in reached)


class IptablesNftLoader(Loader):
    """Has no undo of its own: undoing nft flushes these tables too."""

    tool = ("iptables-nft-restore",)
    command: ClassVar[str] = "iptables-nft"

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
    save: ClassVar[str] = "iptables-legacy-save"
    #: The module of the tables, and /proc/net/...: the names of those that the kernel has.
    module: ClassVar[str] = "ip_tables"
    kind: ClassVar[str] = "iptables"

    def undo(self, loaded: bool) -> None:
        """Empty every table, whatever filled it: no rule, no chain but the built-in ones, and the default policies."""
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
        return _met(self.machine.run(self.save).stdout.splitlines())

    def hooks(self) -> Iterable[str]:
        return [f"{self.kind} {table}" for table in self._tables()]

    def _tables(self) -> list[str]:
        try:
            return self.machine.read(f"/proc/net/{self.module}_names").split()
        except OSError:
            return []


class Ip6tablesLoader(IptablesLoader):
    """The same for IPv6."""

    tool = ("ip6tables-legacy-restore",)
    command = "ip6tables-legacy"
    save = "ip6tables-legacy-save"
    module = "ip6_tables"
    kind = "ip6tables"


def _kind(name: str, position: int, loader: type[Loader], save: str, legacy: bool) -> RulesetKind:
    def hooks(text: str) -> list[str]:
        return [f"{name} {table}" for table in _TABLE.findall(text)] if legacy else []

    return RulesetKind(
        name=name,
        suffix=f".{name}",
        position=position,
        validate=validate,
        loader=loader,
        absent=_absent(save),
        hooks=hooks,
    )


KIND = (
    _kind("iptables", 40, IptablesLoader, IptablesLoader.save, legacy=True),
    _kind("ip6tables", 41, Ip6tablesLoader, Ip6tablesLoader.save, legacy=True),
    _kind("iptables-nft", 42, IptablesNftLoader, "iptables-nft-save", legacy=False),
)
