# SPDX-License-Identifier: GPL-2.0-or-later
"""Make text from untrusted input safe to print: no control characters, valid Unicode, limited length."""

import re

#: Characters of a name, such as a file's, that a message shows.
MAX_NAME = 120
#: Characters of one line of a message. A tool may quote a line of its input, which may be the whole file.
MAX_LINE = 2000
MAX_LINES = 60
#: Too long to read, such as a name that fills a line.
_LONG_WORD = re.compile(r"\S{301,}")


def printable(text: object, longest: int = MAX_NAME) -> str:
    """One line of at most `longest` characters. Cuts from the middle, so that a path keeps its suffix."""
    line = str(text)
    if len(line) > 4 * longest:  # escape only what can be shown
        line = line[: 2 * longest] + line[-2 * longest :]
    line = "".join(map(_escaped, line))
    if len(line) <= longest:
        return line
    tail = longest // 3
    return f"{line[: longest - tail - 1]}…{line[-tail:]}"


def printable_lines(text: object) -> str:
    """A message of at most MAX_LINES lines. Keeps newlines and tabs."""
    shortened = _LONG_WORD.sub(lambda found: f"{found[0][:200]}…{found[0][-60:]}", str(text))
    lines = shortened.split("\n")
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"… and {len(lines) - MAX_LINES} more lines"]
    return "\n".join("\t".join(printable(part, MAX_LINE) for part in line.split("\t")) for line in lines)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # an undecodable byte of a file name (PEP 383)
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
