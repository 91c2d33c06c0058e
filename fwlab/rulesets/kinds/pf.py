# SPDX-License-Identifier: GPL-2.0-or-later
"""pf: a pf.conf. No DUT runs pf yet, so such a file is validated and then refused by the DUT."""

from __future__ import annotations

import re

from fwlab.rulesets.kind import Faults, RulesetKind, Shown

#: Words by which pfctl reads other files (include, load anchor ... from, table ... file, set fingerprints). They are
#: refused in quotes and comments too: macros are expanded into words, and quotes may span lines.
_READS = re.compile(r"\b(include|load|file|fingerprints)\b")
#: pfctl drops a backslash and reads what follows as part of the word.
_HIDES = re.compile(r"\\(?!$)|\S\\$")


def validate(lines: list[str]) -> Faults:
    """Nothing that reads other files."""
    for number, line in enumerate(lines, 1):
        reads = _READS.search(line)
        if reads:
            yield (
                number,
                f"the word {reads[0]} is not allowed: a ruleset must not read other files",
                f"remove {reads[0]}",
            )
        elif _HIDES.search(line):
            yield number, "a backslash inside a word", "remove it, or put a blank before it at the end of the line"


def absent(shown: Shown, lines: list[str]) -> str | None:
    """All of it."""
    return "any of it: this DUT does not run pf"


KIND = RulesetKind(
    name="pf",
    suffix="pf.conf",
    position=80,
    validate=validate,
    loader=None,
    absent=absent,
)
