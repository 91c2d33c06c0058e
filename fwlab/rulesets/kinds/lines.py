# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines and words, as the tools that load them read them."""

import re
from collections.abc import Iterator

#: The DUT's two links (topology.yml). A ruleset has nothing to do with the management NIC.
LINKS = ("eth0", "eth1")
_LABELS = re.compile(r"[\w-]+(?:\.[\w-]+)++\.?", re.ASCII)
_LETTER = re.compile("[A-Za-z]")
_ADDRESS = re.compile(r"(?:0[xX][0-9a-fA-F]+|[\d./-]+)*+|[0-9a-fA-F]*:[0-9a-fA-F:./-]*", re.ASCII)


def is_address(word: str) -> bool:
    """Whether it is an address, a prefix or a range in numbers."""
    return _ADDRESS.fullmatch(word) is not None


def is_host_name(word: str) -> bool:
    """Whether it is a name with dots: its last part is no number."""
    return _LABELS.fullmatch(word) is not None and _LETTER.search(word.rstrip(".").rpartition(".")[2]) is not None


class Fault(Exception):
    """(line number, what is wrong, what to do about it): the first thing in a file that is not allowed."""


def other_link(name: str, links: tuple[str, ...] = LINKS) -> tuple[str, str]:
    """The fault and the hint where a file names a device that is none of the links."""
    return f"{name} is not one of the DUT's test links", f"use {' or '.join(links)}"


def asks_for(name: str) -> tuple[str, str]:
    """The fault and the hint where a tool would ask for a host's address."""
    return f"the name {name[:100]}: a ruleset must not ask a name server", "use its address"


def instructions(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(line number, words) of every line that is not empty. A # begins a comment."""
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            yield number, words


def unquoted(line: str) -> list[str]:
    """The words of a line for a tool that reads double quotes, such as iptables-restore and ipset; quotes removed.

    A quoted text is one word if every tool must read it as one. In all other cases each blank ends a word, so a word
    that a tool might find is never hidden.
    """
    parts = line.split('"')
    outside, last = parts[::2], len(parts) - 1
    certain = len(parts) % 2 == 1 and "\\" not in line and "'" not in "".join(outside)
    for place in range(1, last, 2) if certain else ():
        before, text, after = parts[place - 1 : place + 2]
        begins = before[-1:] in (" ", "\t") or (place == 1 and not before)
        ends = after[:1] in (" ", "\t") or (place + 1 == last and not after)
        if not (begins and ends) or text.startswith("-"):
            certain = False
    if not certain:
        return re.sub(r"[\"'\\]", "", line).split()
    words: list[str] = []
    for place, part in enumerate(parts):
        words += [part] if place % 2 else part.split()
    return words


def longer_than(line: str, max_bytes: int) -> bool:
    """Whether a tool with a line buffer of this size would read the rest of the line as another line."""
    return len(line) * 4 > max_bytes and len(line.encode()) > max_bytes
