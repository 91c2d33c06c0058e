# SPDX-License-Identifier: GPL-2.0-or-later
"""ipset: sets, in the form that `ipset restore` reads."""

import ipaddress
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from fwlab.rulesets.kind import Faults, KernelView, Loader, RulesetKind
from fwlab.rulesets.kinds.limits import BUCKET, ENTRY, MAX_BYTES, MAX_ENTRIES, number
from fwlab.rulesets.kinds.lines import asks_for, is_address, is_host_name, longer_than, unquoted

COMMANDS = {
    *("create", "add", "del", "flush", "destroy", "swap", "rename", "COMMIT"),
    *("-N", "-A", "-D", "-F", "-X", "-W", "-E", "--create", "--add", "--del", "--flush", "--destroy"),
}
#: Options that ipset accepts anywhere in a line: a file to write to, and what lists sets.
REFUSED = re.compile(r"-{1,2}(f|file|o|output|r|resolve|s|sorted|t|terse|n|name|v|version|h|help|L|S|R|T)")
#: Options without a value that ipset accepts anywhere in a line. They do no harm.
_HARMLESS = {"-!", "-exist", "--exist", "-q", "-quiet", "--quiet"}
#: ipset reads lines of 1023 bytes at most and takes the rest of a line for another one.
MAX_LINE = 1000
_CREATES = {"create", "-N", "--create"}
_ADDS = {"add", "-A", "--add"}
_ELEMENTS = {*_ADDS, "del", "-D", "--del"}
#: The kernel's defaults.
_USUAL_HASH, _USUAL_MOST = 1024, 65536
#: ipset's largest number. It is no limit: packets may fill such a set (SET --add-set).
_UNLIMITED = (1 << 32) - 1
#: Bytes of a comment in addition to its text. Each entry of a range has its own comment.
COMMENT = 32
_COMMENT = re.compile(r"\scomment\s")
#: A host's name without dots. With a hyphen, ipset takes it for a range.
_NAME = re.compile(r"\w+", re.ASCII)
_LESS = "make the sets smaller, or fewer"
_PORTS = re.compile(r"(?P<first>\d{1,5})-(?P<last>\d{1,5})", re.ASCII)


@dataclass
class _Set:
    """One set.

    empty      bytes that it takes without entries
    most       how many entries it may have; `held`: how many it has
    nets       a prefix is one entry
    addresses  which parts of an element are addresses; nothing if that is not known
    """

    empty: int
    most: int
    nets: bool = False
    addresses: tuple[bool, ...] = ()
    held: int = 0

    def add(self, element: str) -> int:
        """How many entries the element becomes; none if the set is full."""
        more = max(0, min(_entries(element, self.nets), self.most - self.held))
        self.held += more
        return more

    def host(self, element: str) -> str | None:
        """The first part of an element that is a host's name instead of an address."""
        if is_address(element):
            return None
        for part, address in zip(element.split(","), self.addresses or (None,), strict=False):
            name = part.partition("/")[0].strip("[]")
            plain = address and not is_address(name) and _NAME.fullmatch(name)
            if plain or (address is not False and is_host_name(name)):
                return name
        return None


def validate(lines: list[str]) -> Faults:
    """Only the commands of COMMANDS, no host's name, and no more memory than the DUT has for sets."""
    taken, unknown = 0, _Set(0, _UNLIMITED)
    sets: dict[str, _Set] = {}
    for place, line in enumerate(lines, 1):
        if longer_than(line, MAX_LINE):
            yield place, f"a line of more than {MAX_LINE} bytes: ipset would read it as two", "make it shorter"
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
        host = None
        if words[0] in _CREATES and len(words) > 2:
            made = _declared(words)
            if made.most >= _UNLIMITED:
                yield place, f"maxelem {made.most}: the DUT has memory for {MAX_ENTRIES} entries", _LESS
            sets[words[1]] = made
            taken += made.empty
            host = made.host(_given(words).get("range", "")) if made.addresses[:1] == (True,) else None
        elif words[0] in _ELEMENTS and len(words) > 2:
            of = sets.get(words[1], unknown)
            host = of.host(words[2])
            if words[0] in _ADDS:
                text = _COMMENT.search(line)
                taken += of.add(words[2]) * (ENTRY + (COMMENT + len(line[text.end() :].encode()) if text else 0))
        if host is not None:
            yield place, *asks_for(host)
        if taken > MAX_BYTES:
            yield place, f"the sets take more than {MAX_BYTES >> 20} MiB of the DUT's memory", _LESS
            return


def command(words: list[str]) -> list[str]:
    """The words of a line without harmless options, the command first: `-exist add ...` is `add ...`."""
    return [word for word in words if word not in _HARMLESS] or words[:1]


def _given(words: list[str]) -> dict[str, str]:
    """The options of a set, by name."""
    return {word.lstrip("-"): value for word, value in itertools.pairwise(words[2:])}


def _declared(words: list[str]) -> _Set:
    given, kind = _given(words), words[2]
    parts = kind.partition(":")[2] or kind  # without a colon: a type of ipset 4, such as iphash
    addresses = tuple(part.startswith(("ip", "net")) for part in parts.split(","))
    if kind.startswith(("bitmap:", "ipmap", "macipmap", "portmap")):
        size = min(_entries(given.get("range", "")), _USUAL_MOST)
        return _Set(size * ENTRY, 0, addresses=addresses)
    if kind.startswith(("list:", "setlist")):
        return _Set(0, _USUAL_MOST, addresses=addresses)
    buckets = number(given.get("hashsize", "")) or _USUAL_HASH
    most = number(given.get("maxelem", "")) or _USUAL_MOST
    return _Set(BUCKET * (1 << max(buckets - 1, 0).bit_length()), most, "net" in kind, addresses)


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


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
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
    missing_from_kernel=missing_from_kernel,
    cumulative=True,
)
