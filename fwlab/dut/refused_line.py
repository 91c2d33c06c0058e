# SPDX-License-Identifier: GPL-2.0-or-later
"""The line that a tool complains about.

Some tools give its number alone: "iptables-legacy-restore: line 1 failed". nft prints the whole line, even if a
thousand addresses are on it.
"""

import re
from collections.abc import Iterable

from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile

_NUMBER = re.compile(r"\bline:? (\d{1,7})\b")
#: nft: "/dev/stdin:3:45-56: Error: …", then the line, then a line that marks these columns.
_COLUMN = re.compile(r":(\d{1,7}):(\d{1,7})(-\d+)?: ")
#: Characters of the line that are shown, and how many of them before the column that is wrong.
MAX_SHOWN = 160
BEFORE = 60


def with_line(message: str, files: Iterable[RulesetFile]) -> str:
    """The message, and behind it the line that it gives by number alone; of a long line, the part that is wrong."""
    name, _, said = message.partition(": ")
    lines = next((file.text.split("\n") for file in files if file.name == name), [])
    head, _, quoted = message.partition("\n")
    place = _COLUMN.search(head)
    if place and any(len(line) > MAX_SHOWN for line in quoted.split("\n")) and 0 < int(place[1]) <= len(lines):
        return "\n".join([head, *_around(lines[int(place[1]) - 1], int(place[2]))])
    found = _NUMBER.search(said)
    if found is None or not 0 < int(found[1]) <= len(lines):
        return message
    line = lines[int(found[1]) - 1].strip()
    if not line or line[:40] in said:
        return message
    return f"{message}\n  {name}:{found[1]}: {printable(line, MAX_SHOWN)}"


def _around(line: str, column: int) -> tuple[str, str]:
    """The part of a long line around a column, counted from 1, and the line below it that marks the column."""
    column = max(1, min(column, len(line)))
    begin = max(0, column - 1 - BEFORE)
    before, after = "… " if begin else "", " …" if begin + MAX_SHOWN < len(line) else ""
    part = line[begin : begin + MAX_SHOWN].replace("\t", " ")
    return f"  {before}{printable(part, MAX_SHOWN)}{after}", " " * (2 + len(before) + column - 1 - begin) + "^"
