# SPDX-License-Identifier: GPL-2.0-or-later
"""A stranger's words as others may read them: no control characters, no half letters, not too long."""

from __future__ import annotations

import re

#: What a name, of a file say, may take of a message.
LONGEST_NAME = 120
#: A tool's message may quote a line of a file, and a line may be the whole file.
LONGEST_LINE = 2000
MOST_LINES = 60
#: A word that nobody reads: a name of a file's whole line, say.
_LONG_WORD = re.compile(r"\S{301,}")


def plain(text: object, most: int = LONGEST_NAME) -> str:
    """One line of at most `most` characters; the middle goes first, so that a file keeps its ending."""
    line = str(text)
    if len(line) > 4 * most:  # no need to look at all of it
        line = line[: 2 * most] + line[-2 * most :]
    line = "".join(map(_printable, line))
    if len(line) <= most:
        return line
    tail = most // 3
    return f"{line[: most - tail - 1]}…{line[-tail:]}"


def plain_lines(text: object) -> str:
    """A message: its lines and tabs stay."""
    shortened = _LONG_WORD.sub(lambda found: f"{found[0][:200]}…{found[0][-60:]}", str(text))
    lines = shortened.split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} lines more"]
    return "\n".join("\t".join(plain(part, LONGEST_LINE) for part in line.split("\t")) for line in lines)


def _printable(letter: str) -> str:
    if letter.isprintable():
        return letter
    if "\udc80" <= letter <= "\udcff":  # a byte of a file's name that is no text
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode()
