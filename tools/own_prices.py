# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers of `fwlab price` for its page, from results/own (tests/live/own_figures.py)."""

import json
from statistics import median
from typing import Any

from fwlab.checkout.project import find_project
from fwlab.checkout.raw_results import raw_result, read_document


class OwnPrices:
    """A result is named by its file in results/own."""

    def percent_apart(self, result: str) -> float:
        """How far the prices of one class lie apart over all runs, in per cent of their median: the widest of all."""
        return max(100 * (max(one) - min(one)) / median(one) for one in self._repeated(result))

    def classes(self, result: str) -> int:
        """How many classes were priced in each run."""
        return len(self._repeated(result))

    def within(self, result: str, percent: float) -> int:
        """How many of these classes have prices that lie no further apart than this."""
        return sum(100 * (max(one) - min(one)) / median(one) <= percent for one in self._repeated(result))

    def mean_apart(self, result: str) -> float:
        """How far the means by counters lie apart over all runs, in per cent."""
        means = [run["mean_by_counters"] for run in self._read(result)["repeated"]]
        return float(100 * (max(means) - min(means)) / median(means))

    def flooded(self, result: str) -> float:
        """Instructions per packet of the flood of which each rule drops an equal part."""
        return float(self._read(result)["mix"]["flood"]["all"])

    def foretold(self, result: str) -> float:
        """The same by prices: their mean by the counters, and what one that the first rule drops costs more there."""
        found = self._read(result)["mix"]
        first = found["prices"]["classes"][0]["instructions"]
        return float(found["prices"]["mean_by_counters"] + found["flood"]["one"] - first)

    def percent_off(self, result: str) -> float:
        """By how many per cent the second differs from the first."""
        return 100 * abs(self.foretold(result) / self.flooded(result) - 1)

    def seconds(self, result: str, rules: int) -> float:
        """How long it took to price so many rules."""
        return float(self._read(result)["timed"][str(rules)]["seconds"])

    def rulesets(self, result: str, outcome: str = "") -> int:
        """How many rulesets were translated for nft, or those of one outcome (tests/bench/translations.py)."""
        found = [one["outcome"] for one in self._read(result)["rulesets"].values()]
        return found.count(outcome) if outcome else len(found)

    def _repeated(self, result: str) -> list[list[float]]:
        runs = [run["classes"] for run in self._read(result)["repeated"]]
        return [[one["instructions"] for one in same] for same in zip(*runs, strict=True)]

    def _read(self, result: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(read_document(raw_result(find_project(), f"own/{result}")))
        return found
