# SPDX-License-Identifier: GPL-2.0-or-later
"""Sets as ipset restores them."""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fwlab.rulesets.memory import BUCKET, ENTRY, MOST_BYTES, MOST_ENTRIES, number

IPSET_COMMANDS = {
    *("create", "add", "del", "flush", "destroy", "swap", "rename", "COMMIT"),
    *("-N", "-A", "-D", "-F", "-X", "-W", "-E", "--create", "--add", "--del", "--flush", "--destroy"),
}
#: Options of ipset itself that it takes in a line as well: a file to write to, and what lists.
IPSET_OPTION = re.compile(r"-{1,2}(f|file|o|output|r|resolve|s|sorted|t|terse|n|name|v|version|h|help|L|S|R|T)")
_CREATES = {"create", "-N", "--create"}
_ADDS = {"add", "-A", "--add"}
#: What the kernel takes where nothing else is said.
_USUAL_HASH, _USUAL_MOST = 1024, 65536
_LESS = "make the sets smaller, or fewer"
_PORTS = re.compile(r"(?P<first>\d{1,5})-(?P<last>\d{1,5})", re.ASCII)


@dataclass
class _Set:
    """`nets`: a prefix is one entry of it. `most` and `held`: entries that it may have, and has."""

    empty: int
    most: int
    nets: bool = False
    held: int = 0

    def add(self, element: str) -> int:
        """Bytes that the element takes: a set that is full takes no more."""
        more = max(0, min(_entries(element, self.nets), self.most - self.held))
        self.held += more
        return more * ENTRY


def ipset(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    taken, sets, unknown = 0, {}, _Set(0, MOST_ENTRIES)
    for place, line in enumerate(lines, 1):
        if line.startswith("add ") and "-" not in line:  # by far the most lines of a long file
            words = line.split()
        else:
            words = re.sub(r"[\"'\\]", "", line).split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] not in IPSET_COMMANDS:
                hint = "use create, add, del, flush, destroy, swap, rename"
                yield place, f"{words[0]} loads nothing into a set", hint
            for word in words[1:]:
                if IPSET_OPTION.fullmatch(word):
                    yield place, f"{word} has no place in a ruleset", f"remove {word}"
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
    """How many entries an element may become: an address of a range each, a port of a range each."""
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
    """One for a prefix of IPv6: sets that hold addresses one by one do not take it."""
    first, prefix, bits = part.partition("/")
    try:
        if prefix:
            ipaddress.IPv4Address(first)
            return 1 << max(0, 32 - int(bits[:3]))
        first, _, last = part.partition("-")
        return max(1, int(ipaddress.IPv4Address(last)) - int(ipaddress.IPv4Address(first)) + 1)
    except ValueError:
        return 1
