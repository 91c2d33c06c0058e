# SPDX-License-Identifier: GPL-2.0-or-later
"""The language of *.xdp-table: tables of packets' fields, tried in order; the first entry that matches decides.

    table eth0 hash saddr,dport drop
    198.18.1.1 53
    198.18.1.7 123
    table eth0 list daddr pass
    198.19.7.0/24

A table line names the device, the data structure, the fields and the verdict. Each line below it is an entry: a value
for each field. The kernel never sees this text, and no word of it names a program or a file.
"""

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

from fwlab.rulesets.kinds.lines import LINKS, Fault, instructions, other_link

#: The first and the last value of a field that an entry matches.
Range = tuple[int, int]

#: Bits of each field of a packet, in the order in which a program reads them.
FIELDS = {"saddr": 32, "daddr": 32, "protocol": 8, "sport": 16, "dport": 16}
STRUCTURES = ("list", "hash", "lpm", "array")
VERDICTS = {"drop": 1, "pass": 2}  # XDP_DROP, XDP_PASS
PROTOCOLS = {"icmp": 1, "tcp": 6, "udp": 17}
#: Entries of all tables of a file, and those in lists, which are code: the kernel takes seconds to verify more.
MAX_ENTRIES = 65_536
MAX_LISTED = 20_000
#: Fields of an entry in a list, less the last one. The verifier puts a path aside for each, and may do so 8192 times.
MAX_ASIDE = 8000
#: More tables than a ruleset needs. Each is a lookup for every packet.
MAX_TABLES = 64
#: Characters of a line that a message shows.
MAX_SHOWN = 80

_ADDRESS = re.compile(r"(?:(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])(?:\.(?!$)|$)){4}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,4}", re.ASCII)
HOW_TABLE = "write `table eth0 hash saddr drop`: device, list, hash, lpm or array, fields, drop or pass"


@dataclass
class Table:
    """One table: where it stands, what it compares, and its entries, a range for each field."""

    number: int
    device: str
    structure: str
    fields: list[str]
    verdict: str
    entries: list[list[Range]] = field(default_factory=list)


def tables_in(lines: list[str]) -> list[Table]:
    """The tables of a file. Raises Fault."""
    found: list[Table] = []
    entries = listed = aside = 0
    for number, words in instructions(lines):
        if words[0] == "table":
            _reject_empty(found)
            found.append(_table(number, words))
            if len(found) > MAX_TABLES:
                raise Fault(number, f"more than {MAX_TABLES} tables", "put entries of the same fields into one table")
            continue
        if not found:
            raise Fault(number, f"{_shown(*words[:3])} stands before the first table", HOW_TABLE)
        found[-1].entries.append(_entry(number, found[-1], words))
        entries += 1
        if found[-1].structure == "list":
            listed += 1
            aside += len(words) - 1
        if entries > MAX_ENTRIES:
            raise Fault(number, f"more than {MAX_ENTRIES} entries", "merge entries into prefixes or ranges")
        if listed > MAX_LISTED:
            raise Fault(number, f"more than {MAX_LISTED} entries in lists", "use a hash or an lpm")
        if aside > MAX_ASIDE:
            what = f"lists of several fields with more than {MAX_ASIDE} values before an entry's last"
            raise Fault(number, f"{what}: the kernel would refuse the program", "use a hash, or fewer fields")
    _reject_empty(found)
    return found


def _shown(*words: str) -> str:
    return " ".join(words)[:MAX_SHOWN]


def _reject_empty(found: list[Table]) -> None:
    if found and not found[-1].entries:
        raise Fault(found[-1].number, "a table without an entry", "write its entries below it, one a line")


def _table(number: int, words: list[str]) -> Table:
    if len(words) != 5:
        raise Fault(number, f"{_shown(*words[:6])} is not a table", HOW_TABLE)
    _, device, structure, named, verdict = words
    fields = named.split(",")
    if device not in LINKS:
        raise Fault(number, *other_link(_shown(device)))
    if structure not in STRUCTURES:
        raise Fault(number, f"{_shown(structure)} is not a data structure", f"use one of: {' '.join(STRUCTURES)}")
    for name in fields:
        if name not in FIELDS:
            raise Fault(number, f"{_shown(name) or 'nothing'} is not a field", f"use some of: {','.join(FIELDS)}")
    if len(set(fields)) < len(fields):
        raise Fault(number, f"{_shown(named)} names a field twice", "name each field once")
    if verdict not in VERDICTS:
        raise Fault(number, f"{_shown(verdict)} is not a verdict", f"use {' or '.join(VERDICTS)}")
    if structure == "lpm" and (len(fields) > 1 or FIELDS[fields[0]] != 32):
        raise Fault(number, f"an lpm cannot hold {named}", "use one address: saddr or daddr")
    if structure == "array" and (len(fields) > 1 or FIELDS[fields[0]] > 16):
        raise Fault(number, f"an array cannot hold {named}", "use one of: protocol, sport, dport")
    return Table(number, device, structure, fields, verdict)


def _entry(number: int, table: Table, words: list[str]) -> list[Range]:
    if len(words) != len(table.fields):
        what = f"{_shown(*words[:6])} is not one value for each of {','.join(table.fields)}"
        raise Fault(number, what, "write one entry a line, and a blank between its values")
    return [_value(number, table.structure, name, word) for name, word in zip(table.fields, words, strict=True)]


def _value(number: int, structure: str, name: str, word: str) -> Range:
    bits = FIELDS[name]
    found = _prefix(word) if bits == 32 and "/" in word else _span(bits, name, word)
    if found is None:
        how = "write 198.18.1.1, 198.18.1.0/24 or 198.18.1.1-198.18.1.9" if bits == 32 else "write 1000 or 1000-1999"
        raise Fault(number, f"{_shown(word)} is not a value of {name}", how)
    first, last = found
    if structure == "hash" and first != last:
        raise Fault(number, f"a hash holds single values, not {word}", "use list, or an lpm of prefixes")
    if structure == "lpm" and prefix_length(found) is None:
        raise Fault(number, f"an lpm holds prefixes, and {word} is none", "write it as several prefixes, or use list")
    return found


def prefix_length(values: Range) -> int | None:
    """The length of the prefix that has these addresses; None if there is no such prefix."""
    first, last = values
    size = last - first + 1
    return 33 - size.bit_length() if not size & (size - 1) and not first & (size - 1) else None


def _prefix(word: str) -> Range | None:
    """All addresses of a prefix. None if the address has bits behind the prefix, which `ip` and nft accept."""
    text, _, length = word.partition("/")
    if not _ADDRESS.fullmatch(text) or not _NUMBER.fullmatch(length) or int(length) > 32:
        return None
    first, size = _number_of(text), 1 << (32 - int(length))
    return (first, first + size - 1) if not first & (size - 1) else None


def _span(bits: int, name: str, word: str) -> Range | None:
    ends = list(_ends(bits, name, word))
    if len(ends) > 2 or None in ends:
        return None
    first, last = ends[0], ends[-1]
    return (first, last) if first is not None and last is not None and first <= last else None


def _ends(bits: int, name: str, word: str) -> Iterator[int | None]:
    for text in word.split("-"):
        if bits == 32:
            yield _number_of(text) if _ADDRESS.fullmatch(text) else None
        elif name == "protocol" and text in PROTOCOLS:
            yield PROTOCOLS[text]
        else:
            yield int(text) if _NUMBER.fullmatch(text) and int(text) < 1 << bits else None


def _number_of(address: str) -> int:
    return int.from_bytes(socket.inet_aton(address), "big")
