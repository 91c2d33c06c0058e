# SPDX-License-Identifier: GPL-2.0-or-later
"""How alike submissions are: a hint for the instructor, who then reads them. It changes no mark.

A submission becomes a set of statements: its lines, split at `;` and `,` as well, without comments, with one space
between words. Which address stands in a statement does not matter, so a long list is one statement. Statements that the
exercise's start already has are left out, and so are bare addresses and numbers.

    shared   the statements that both have
    rare     those of them that hardly anybody else in the class has
    alike    the shared among all statements of both, each weighted by log((n + 1) / k), where k of n have it
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from fwlab.model.declared import Frozen

#: Characters of a file that are read: what follows is a long list.
MAX_TEXT = 1 << 20
#: Statements of one submission that are compared.
MAX_STATEMENTS = 20_000
#: Pairs of an exercise that are reported.
MAX_PAIRS = 50
#: A statement is rare if at most this number of students, or this share of the class, has it.
FEW, RARE = 2, 0.1

_COMMENT = re.compile(r"#.*")
_COUNTERS = re.compile(r"\[\d+:\d+\]")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b")
_DATA = re.compile(r"(?:[\d./:-]+|ADDRESS)*+")


class Pair(Frozen):
    """Two submissions of one exercise. `identical`: the same files, byte by byte."""

    exercise: str
    one: str
    other: str
    shared: int
    rare: int
    alike: float
    identical: bool


def statements(texts: Iterable[str]) -> frozenset[str]:
    """What these files say, apart from layout, comments and bare data."""
    found: set[str] = set()
    for text in texts:
        for line in set(_ADDRESS.sub("ADDRESS", text[:MAX_TEXT]).splitlines()):
            plain = _COUNTERS.sub("", _COMMENT.sub("", line))
            words = (" ".join(part.split()).strip("{} ") for part in re.split("[;,]", plain))
            found.update(word for word in words if not _DATA.fullmatch(word))
            if len(found) > MAX_STATEMENTS:
                return frozenset(found)
    return frozenset(found)


def similar(exercise: str, said: Mapping[str, frozenset[str]], contents: Mapping[str, str]) -> list[Pair]:
    """The pairs of an exercise that share something rare, the most alike first.

    said      by student, the statements, without those of the exercise's start
    contents  by student, a hash of the files
    """
    own = {student: words for student, words in said.items() if words}
    having = Counter(word for words in own.values() for word in words)
    few = max(FEW, int(RARE * len(own)))
    weights = {word: math.log((len(own) + 1) / count) for word, count in having.items()}
    pairs = []
    for one, other in itertools.combinations(sorted(own), 2):
        shared = own[one] & own[other]
        rare = sum(having[word] <= few for word in shared)
        if not rare:
            continue
        total = sum(weights[word] for word in own[one] | own[other])
        alike = sum(weights[word] for word in shared) / total
        same = contents[one] == contents[other]
        known = {"exercise": exercise, "one": one, "other": other, "shared": len(shared), "rare": rare}
        pairs.append(Pair(**known, alike=round(alike, 4), identical=same))
    return sorted(pairs, key=lambda pair: (-pair.rare * pair.alike, pair.one, pair.other))[:MAX_PAIRS]
