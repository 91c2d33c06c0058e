# SPDX-License-Identifier: GPL-2.0-or-later
"""Grade a lab's own rulesets on the real machines, and once more those that a busy host left undecided."""

from __future__ import annotations

import csv
import io

from .conftest import Checkout

#: By who (a part of the lab, or a variant) and exercise, the verdict.
Verdicts = dict[tuple[str, str], str]
#: The exit status of a grading in which something is inconclusive, and nothing is worse.
INCONCLUSIVE = 3


def own_verdicts(checkout: Checkout, lab: str, selection: str, *words: str, file: str = "marks.csv") -> Verdicts:
    """The verdicts of the lab's own rulesets that `selection`, an expression for -k, chooses.

    An instructor grades an inconclusive ruleset again, and so does this; once. What was decided stays as it was.
    words  further words for pytest
    file   where the marks are, in the folder of the grading
    """
    verdicts = _graded(checkout, lab, selection, words, file)
    again = [f"{who}/{exercise}" for (who, exercise), verdict in verdicts.items() if verdict == "inconclusive"]
    if again:
        verdicts |= _graded(checkout, lab, " or ".join(again), words, file)
    return verdicts


def _graded(checkout: Checkout, lab: str, selection: str, words: tuple[str, ...], file: str) -> Verdicts:
    done = checkout.pytest("--testinfra", "--lab", lab, *words, "-q", "-k", selection)
    assert done.returncode in (0, INCONCLUSIVE), done.stdout[-6000:] + done.stderr[-2000:]
    text = (checkout.top / "reports" / lab / "grading" / file).read_text()
    rows = csv.DictReader(io.StringIO(text))
    decided = ("pass", "fail", "inconclusive")
    return {(row["who"], row["exercise"]): row["verdict"] for row in rows if row["verdict"] in decided}
