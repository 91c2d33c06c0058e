# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers of guides/own.md, from a small result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fwlab.checkout.raw_results import write_document
from tools import own_prices
from tools.own_prices import OwnPrices


def runs(*prices: tuple[float, float]) -> list[dict]:
    return [{"classes": [{"instructions": one} for one in run], "mean_by_counters": run[0]} for run in prices]


def test_numbers_of_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "repeated": runs((1000, 500), (1002, 500), (1001, 510)),
        "mix": {
            "flood": {"one": 700, "all": 800},
            "prices": {"classes": [{"instructions": 500}], "mean_by_counters": 604},
        },
        "timed": {"300": {"seconds": 61.5}},
        "rulesets": {"a": {"outcome": "same"}, "b": {"outcome": "differs"}, "c": {"outcome": "same"}},
    }
    monkeypatch.setattr(own_prices, "raw_result", lambda project, name: tmp_path / f"{name}.json.gz")
    write_document(tmp_path / "own" / "x.json.gz", json.dumps(found))
    numbers = OwnPrices()
    assert numbers.classes("x") == 2
    assert numbers.percent_apart("x") == pytest.approx(2)
    assert numbers.within("x", 0.3) == 1
    assert numbers.mean_apart("x") == pytest.approx(100 * 2 / 1001)
    assert (numbers.foretold("x"), numbers.flooded("x")) == (804, 800)
    assert numbers.percent_off("x") == pytest.approx(0.5)
    assert (numbers.rulesets("x"), numbers.rulesets("x", "same")) == (3, 2)
    assert numbers.seconds("x", 300) == 61.5
