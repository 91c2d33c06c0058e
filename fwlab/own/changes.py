# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes that often help: a state rule first, a run of rules that becomes a set, order by weight.

Each is made in the text of the rules, and measured with the same packets. What another ruleset does with packets from
both decides whether it is offered: one under which a packet becomes something else is not.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.own.bench_client import Start, opened
from fwlab.own.comparing import Comparison, compare
from fwlab.own.forms import optimizable, short
from fwlab.own.layout import layout_of
from fwlab.own.prices import dearer, side_by_side

#: Rules that follow each other and differ in one address or port, from which on they are made a set.
RUN = 4
STATE_FIRST, STATE_MOVED = "a new rule for established connections, first", "the rule for established connections first"
SETS, OPTIMIZED = "runs of rules as sets (ipset)", "runs of rules as sets (nft --optimize)"
WEIGHT = "rules of one verdict that follow each other, by their counters"


@dataclass(frozen=True)
class Change:
    """One change, made and tried.

    files    the rules with it
    found    both rulesets compared; None if the change could not be loaded (`reason`)
    more     how much dearer the rules are with it, as a share; None unless nothing behaved otherwise
    """

    title: str
    files: list[RulesetFile]
    found: Comparison | None = None
    more: float | None = None
    reason: str = ""


def changes(
    start: Start,
    files: Sequence[RulesetFile],
    listed: str,
    own: Sequence[str],
    seed: int,
    ns_per_instruction: float,
    notify: Callable[[str], None],
) -> list[Change]:
    """Every change that these rules allow, made and tried; what helps most first.

    listed  what nft lists of them
    """
    tried = []
    for title, made, form in made_of(files, listed):
        notify(f"trying a change: {title}")
        with opened(start, "as given") as old, opened(start, title) as new:
            before = old.load(files)
            try:
                after = new.load(made, form)
            except (CannotMeasure, Refused) as error:
                tried.append(Change(title, made, reason=short(error.message.removeprefix(f"{title}: "))))
                continue
            found = compare(old, new, (before, after), layout_of((before, after), own), seed, notify)
            pairs = [] if found.differences else side_by_side(old, new, found.old, ns_per_instruction, notify)
            tried.append(Change(title, made, found, dearer(pairs)))
    return sorted(tried, key=lambda one: (one.more is None, one.more or 0))


@dataclass(frozen=True)
class _Line:
    """A line of a file, or of nft several that belong together. chain: of a rule, with its table."""

    text: str
    chain: str = ""

    @property
    def verdict(self) -> str:
        found = re.search(r"(?:-j |\b)(ACCEPT|DROP|accept|drop)\s*$", self.text) if self.chain else None
        return found[1].lower() if found else ""

    @property
    def packets(self) -> int:
        found = re.search(r"^\[(\d+):|\bcounter packets (\d+)", self.text)
        return int(found[1] or found[2]) if found else 0

    @property
    def of_state(self) -> bool:
        """Whether it accepts established connections."""
        return self.verdict == "accept" and bool(re.search(r"state\b[^-]*\bestablished\b", self.text, re.IGNORECASE))


def made_of(files: Sequence[RulesetFile], listed: str) -> Iterator[tuple[str, list[RulesetFile], str]]:
    """Title, files and form of each change that changes something."""
    tables = [file for file in files if file.kind in ("iptables", "ip6tables")]
    others = [file for file in files if file not in tables]
    if not tables:
        tables, others = [RulesetFile("rules.nft", "nft", listed)], []
    parsed = [_lines(file) for file in tables]
    moved = any(line.of_state for lines in parsed for line in lines)
    state = STATE_MOVED if moved else STATE_FIRST
    for title, change in ((state, _moved if moved else _inserted), (WEIGHT, _by_weight)):
        made = [change(lines) for lines in parsed]
        if made != parsed:
            yield title, [*map(_file, tables, made), *others], ""
    if tables[0].kind == "nft":
        yield OPTIMIZED, [optimizable(listed)], "optimized"
        return
    sets: list[str] = []
    made = [_with_sets(lines, file.kind, sets) for lines, file in zip(parsed, tables, strict=True)]
    if sets:
        saved = RulesetFile("sets.ipset", "ipset", "".join(f"{line}\n" for line in sets))
        yield SETS, [saved, *map(_file, tables, made), *others], ""


def _file(file: RulesetFile, lines: Sequence[_Line]) -> RulesetFile:
    return RulesetFile(file.name, file.kind, "".join(f"{line.text}\n" for line in lines))


def _lines(file: RulesetFile) -> list[_Line]:
    return list(_nft_lines(file.text) if file.kind == "nft" else _saved_lines(file.text))


def _saved_lines(text: str) -> Iterator[_Line]:
    table = ""
    for line in text.splitlines():
        table = line if line.startswith("*") else table
        found = re.match(r"(?:\[\d+:\d+\] )?-A (\S+)", line)
        yield _Line(line, f"{table} {found[1]}" if found else "")


def _nft_lines(listed: str) -> Iterator[_Line]:
    """What `nft -a list ruleset` prints, without the handles."""
    table, chain, begun = "", "", []
    for line in listed.splitlines():
        bare = re.sub(r" # handle \d+$", "", line)
        opening = re.match(r"\s*(table|chain) .*\{$", bare)
        if opening:
            table, chain = (bare, "") if opening[1] == "table" else (table, bare.strip())
        begun.append(bare)
        handled = bare != line
        if chain and not opening and not handled and line.strip() not in ("}", "") and not _plain(bare):
            continue  # a rule's first lines; its handle stands on the last one
        rule = chain and handled and not opening
        yield _Line("\n".join(begun), f"{table} {chain}" if rule else "")
        chain = "" if line.strip() == "}" else chain
        begun = []


def _plain(line: str) -> bool:
    return line.strip().startswith(("type ", "policy ", "comment ", "devices"))


def _moved(lines: Sequence[_Line]) -> list[_Line]:
    """The rule for established connections first in its chain."""
    first: dict[str, _Line] = {}
    for line in lines:
        if line.of_state:
            first.setdefault(line.chain, line)
    found: list[_Line] = []
    for line in lines:
        state = first.get(line.chain)
        if state is not None and state not in found:
            found.append(state)
        if line is not state:
            found.append(line)
    return found


def _inserted(lines: Sequence[_Line]) -> list[_Line]:
    """A rule for established connections in each chain that filters what is forwarded or delivered."""
    found: list[_Line] = []
    seen, filters = set[str](), False
    for line in lines:
        filters = filters or "type filter hook forward" in line.text or "type filter hook input" in line.text
        named = re.fullmatch(r"\*filter (FORWARD|INPUT)", line.chain)
        if line.chain and line.chain not in seen and (named or filters):
            text = f"-A {named[1]} -m conntrack --ctstate ESTABLISHED -j ACCEPT" if named else ""
            found.append(_Line(text or "\t\tct state established accept", line.chain))
        filters = filters and not line.chain and line.text.strip() != "}"
        seen.add(line.chain)
        found.append(line)
    return found


def _by_weight(lines: Sequence[_Line]) -> list[_Line]:
    """Rules of one chain and one verdict that follow each other, the one that counted most first."""
    found: list[_Line] = []
    for _, several in groupby(lines, key=lambda line: (line.chain, line.verdict)):
        run = list(several)
        found += sorted(run, key=lambda line: -line.packets) if run[0].verdict else run
    return found


#: What may differ in a run: its option, the type of the set, and which end of a packet that is.
_ONE_OF = (
    (re.compile(r" -s ([0-9a-f.:/]+)"), "hash:net", "src"),
    (re.compile(r" -d ([0-9a-f.:/]+)"), "hash:net", "dst"),
    (re.compile(r"(?<= -p tcp)(?: -m tcp)? --dport (\d+)"), "bitmap:port range 0-65535", "dst"),
    (re.compile(r"(?<= -p udp)(?: -m udp)? --dport (\d+)"), "bitmap:port range 0-65535", "dst"),
)


def _with_sets(lines: Sequence[_Line], kind: str, sets: list[str]) -> list[_Line]:
    """Rules that follow each other and differ in one address or port as one, with a set of ipset; fills `sets`."""
    found = list(lines)
    for option, of_type, end in _ONE_OF:
        result: list[_Line] = []
        for (chain, rest), several in groupby(found, key=lambda line: (line.chain, _without(line, option))):
            run = list(several)
            if not chain or rest is None or len(run) < RUN:
                result += run
                continue
            name = f"fwlab{sum(line.startswith('create') for line in sets)}"
            family = f" family {'inet6' if kind == 'ip6tables' else 'inet'} maxelem 1048576" * ("hash" in of_type)
            sets.append(f"create {name} {of_type}{family}")
            values = [match[1] for line in run if (match := option.search(line.text))]
            sets += [f"add {name} {value}" for value in dict.fromkeys(values)]
            matches = f" -m set --match-set {name} {end}"
            result.append(_Line(option.sub(matches, re.sub(r"^\[.*?\] ", "", run[0].text), count=1), chain))
        found = result
    return found


def _without(line: _Line, option: re.Pattern[str]) -> str | None:
    """The rule without this option; None if it has none."""
    text = re.sub(r"^\[.*?\] ", "", line.text)
    return option.sub(" %", text, count=1) if line.chain and line.verdict and option.search(text) else None
