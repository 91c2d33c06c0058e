# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of words, as the tools of iproute2 and their like read them."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The DUT's two links (topology.yml); its management is none of a ruleset's business.
LINKS = ("eth0", "eth1")


def instructions(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(number, words) of every line that says something; what follows a # is a comment."""
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            yield number, words


def plain(words: list[str], word: re.Pattern[str]) -> str | None:
    """The first that is not such a word; so no quotes and no backslashes, by which a tool would split otherwise."""
    return next((w for w in words if not word.fullmatch(w)), None)
