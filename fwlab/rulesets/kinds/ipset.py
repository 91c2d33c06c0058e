# SPDX-License-Identifier: GPL-2.0-or-later
"""ipset: sets, in the form that `ipset restore` reads."""

import ipaddress
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from fwlab.rulesets.kind import Faults, Loader, RulesetKind, Shown
from fwlab.rulesets.kinds.lines import longer_than, unquoted
from fwlab.rulesets.kinds.memory import BUCKET, ENTRY, MOST_BYTES, MOST_ENTRIES, number

COMMANDS = {
    *("create", "add", "del", "flush", "destroy", "swap", "rename", "COMMIT"),
    *("-N", "-A", "-D", "-F", "-X", "-W", "-E", "--create", "--add", "--del", "--flush", "--destroy"),
}
#: Options that ipset accepts anywhere in a line: a file to write to, and what lists sets.
REFUSED = re.compile(r"-{1,2}(f|file|o|output|r|resolve|s|sorted|t|terse|n|name|v|version|h|help|L|S|R|T)")
#: Options without a value that ipset accepts anywhere in a line. They do no harm.
_HARMLESS = {"-!", "-exist", "--exist", "-q", "-quiet", "--quiet"}
#: ipset reads lines of 1023 bytes at most and takes the rest of a line for another one.
LONGEST_LINE = 1000
_CREATES = {"create", "-N", "--create"}
_ADDS = {"add", "-A", "--add"}
#: The kernel's defaults.
_USUAL_HASH, _USUAL_MOST = 1024, 65536
_LESS = "make the sets smaller, or fewer"
_PORTS = re.compile(r"(?P<first>\d{1,5})-(?P<last>\d{1,5})", re.ASCII)


@dataclass
class _Set:
    """One set.

    empty  bytes that it takes without entries
    most   how many entries it may have; `held`: how many it has
    nets   a prefix is one entry
    """

    empty: int
    most: int
    nets: bool = False
    held: int = 0

    def add(self, element: str) -> int:
        """Bytes that the element takes; none if the set is full."""
        more = max(0, min(_entries(element, self.nets), self.most - self.held))
        self.held += more
        return more * ENTRY


def validate(lines: list[str]) -> Faults:
    """Only the commands of COMMANDS, and no more memory than the DUT has for sets."""
    taken, unknown = 0, _Set(0, MOST_ENTRIES)
    sets: dict[str, _Set] = {}
    for place, line in enumerate(lines, 1):
        if longer_than(line, LONGEST_LINE):
            yield place, f"a line of more than {LONGEST_LINE} bytes: ipset would read it as two", "make it shorter"
            continue
        if line.startswith("add ") and "-" not in line:  # nearly all lines of a long file
            words = line.split()
        else:
            words = command(unquoted(line))
            if not words or words[0].startswith("#"):
                continue
            if words[0] not in COMMANDS:
                hint = "use create, add, del, flush, destroy, swap, rename"
                yield place, f"the ipset command {words[0]} is not allowed", hint
            for word in words[1:]:
                if REFUSED.fullmatch(word):
                    yield place, f"{word} is not allowed in a ruleset", f"remove {word}"
        if words[0] in _CREATES and len(words) > 2:
            made = _declared(words)
            if made.most > MOST_ENTRIES:
                yield place, f"maxelem {made.most}: the DUT has memory for {MOST_ENTRIES} entries", _LESS
            sets[words[1]] = made
            taken += made.empty
        elif words[0] in _ADDS and len(words) > 2:
            taken += sets.get(words[1], unknown).add(words[2])
        if taken > MOST_BYTES:
            yield place, f"the sets take more than {MOST_BYTES >> 20} MiB of the DUT's memory", _LESS
            return


def command(words: list[str]) -> list[str]:
    """The words of a line without harmless options, the command first: `-exist add ...` is `add ...`."""
    return [word for word in words if word not in _HARMLESS] or words[:1]


def _declared(words: list[str]) -> _Set:
    given = {word.lstrip("-"): value for word, value in itertools.pairwise(words[2:])}
    kind = words[2]
    if kind.startswith(("bitmap:", "ipmap", "macipmap", "portmap")):
        return _Set(min(_entries(given.get("range", "")), _USUAL_MOST) * ENTRY, 0)
    if kind.startswith(("list:", "setlist")):
        return _Set(0, _USUAL_MOST)
    buckets = number(given.get("hashsize", "")) or _USUAL_HASH
    most = number(given.get("maxelem", "")) or _USUAL_MOST
    return _Set(BUCKET * (1 << max(buckets - 1, 0).bit_length()), most, "net" in kind)


def _entries(element: str, nets: bool = False) -> int:
    """How many entries an element may become: one for each address and each port of its ranges."""
    if "-" not in element and "/" not in element:
        return 1
    count = 1
    for part in element.split(","):
        _, _, port = part.rpartition(":")
        found = _PORTS.fullmatch(port)
        if found:
            count *= max(1, int(found["last"]) - int(found["first"]) + 1)
        elif not nets:
            count *= _addresses(part)
    return count


def _addresses(part: str) -> int:
    """How many addresses a range or prefix has; 1 for an IPv6 prefix, which sets of single addresses refuse."""
    first, prefix, bits = part.partition("/")
    try:
        if prefix:
            ipaddress.IPv4Address(first)
            return 1 << max(0, 32 - int(bits[:3]))
        first, _, last = part.partition("-")
        return max(1, int(ipaddress.IPv4Address(last)) - int(ipaddress.IPv4Address(first)) + 1)
    except ValueError:
        return 1


def absent(shown: Shown, lines: list[str]) -> str | None:
    """Sets and maps that do not exist."""
    wanted: set[str] = set()
    # A list may have hundreds of thousands of entries, and splitting a line takes a while.
    for words in map(command, map(shlex.split, (line for line in lines if not line.startswith("add ")))):
        names = [word for word in words[1:] if not word.startswith("-")]
        if words[0] in _CREATES:
            wanted.add(names[0])
        elif words[0] in ("destroy", "-X", "--destroy"):
            wanted = wanted - set(names) if names else set()
        elif words[0] in ("rename", "-E"):
            wanted = wanted - {names[0]} | {names[1]}
    missing = wanted - set(shown.check_output("ipset list -n").split())
    return f"sets {', '.join(sorted(missing))}" if missing else None


class IpsetLoader(Loader):
    """Restores a file with `ipset restore`."""

    tool = ("ipset", "restore")

    def one_by_one(self, name: str, text: str) -> Iterator[list[str]]:
        for line in map(str.strip, text.splitlines()):
            if line and not line.startswith(("#", "COMMIT")):
                yield ["ipset", *shlex.split(line)]

    def undo(self, loaded: bool) -> None:
        # A set that is a member of another can be destroyed only once that one is empty.
        if "ip_set" in self.machine.modules() and self.machine.run("ipset", "destroy").returncode:
            self.machine.run("ipset", "flush")
            self.machine.run("ipset", "destroy")

    def entries(self) -> int:
        """Those of the sets that something asks: a rule, a filter, or a list of sets."""
        if "ip_set" not in self.machine.modules():
            return 0
        count = asked = 0
        for line in self.machine.run("ipset", "list", "-t").stdout.splitlines():
            word, _, value = line.partition(":")
            if word == "References":
                asked = int(value)
            elif word == "Number of entries" and asked:
                count += int(value)
        return count


#: Before the rules that name sets, and undone after them.
KIND = RulesetKind(
    name="ipset",
    suffix=".ipset",
    position=30,
    validate=validate,
    loader=IpsetLoader,
    absent=absent,
    cumulative=True,
)
