# SPDX-License-Identifier: GPL-2.0-or-later
"""Grade labs' own rulesets on the real machines, and once more those that a busy host left undecided."""

from __future__ import annotations

import csv
from pathlib import Path

from .conftest import Checkout

#: By who (a part of the lab, or a variant) and exercise, the verdict.
Verdicts = dict[tuple[str, str], str]
#: A lab and an expression for -k, which chooses among the lab's rulesets.
Selection = dict[str, str]
#: The exit status of a grading in which something is inconclusive, and nothing is worse.
INCONCLUSIVE = 3


def own_verdicts(checkout: Checkout, selection: Selection, *words: str) -> dict[str, Verdicts]:
    """By lab, the verdicts of its own rulesets that were chosen. All labs are graded in one go.

    An instructor grades an inconclusive ruleset again, and so does this; once. What was decided stays as it was.
    words  further words for pytest
    """
    verdicts = _graded(checkout, selection, words)
    again = {lab: _undecided(found) for lab, found in verdicts.items() if "inconclusive" in found.values()}
    for lab, found in (_graded(checkout, again, words) if again else {}).items():
        verdicts[lab] |= found
    return verdicts


def _undecided(verdicts: Verdicts) -> str:
    return " or ".join(f"{who}/{exercise}" for (who, exercise), said in verdicts.items() if said == "inconclusive")


def _graded(checkout: Checkout, selection: Selection, words: tuple[str, ...]) -> dict[str, Verdicts]:
    chosen = " or ".join(f"({lab} and ({expression}))" for lab, expression in selection.items())
    labs = [word for lab in selection for word in ("--lab", lab)]
    done = checkout.pytest("--testinfra", *labs, *words, "-q", "-k", chosen)
    assert done.returncode in (0, INCONCLUSIVE), done.stdout[-6000:] + done.stderr[-2000:]
    return {lab: _marks(checkout.top / "reports" / lab / "grading") for lab in selection}


def _marks(folder: Path) -> Verdicts:
    """A lab for several systems has marks of each; one of them was graded here."""
    [path] = folder.glob("marks*.csv")
    decided = ("pass", "fail", "inconclusive")
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["verdict"] in decided]
    return {(row["who"], row["exercise"]): row["verdict"] for row in rows}
