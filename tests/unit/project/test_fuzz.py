# SPDX-License-Identifier: GPL-2.0-or-later
"""A short fuzzing campaign of each parser, and the results of long ones in results/fuzz."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from fwlab.model.errors import BadInput
from tests import ROOT
from tests.fuzz.campaign import campaign
from tests.fuzz.parsers import PARSERS, Parser

SHORT = {"rulesets": 3000, "lab": 1500, "lab-text": 150, "streams": 2000, "results": 800, "predictions": 2000}
#: Inputs of the long campaigns. Parsing YAML is slow, so `lab` mutates the parsed data instead.
LONG = {"rulesets": 10**6, "lab": 10**6, "lab-text": 20_000, "streams": 10**6, "results": 10**6, "predictions": 10**6}


@pytest.fixture(autouse=True)
def restored_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        yield


@pytest.mark.parametrize("name", PARSERS)
def test_mutated_input_is_accepted_or_refused(name: str) -> None:
    found = campaign(PARSERS[name], SHORT[name], seed=7)
    assert found.defects == {}
    kinds = {outcome.partition(" ")[0].rstrip(":,") for outcome in found.outcomes}
    assert kinds == {"accepted", "refused"}, "inputs must be neither all valid nor all invalid"


@pytest.mark.parametrize("name", PARSERS)
def test_an_input_can_be_reproduced(name: str) -> None:
    assert PARSERS[name].make(Random((7 << 40) + 5)) == PARSERS[name].make(Random((7 << 40) + 5))


def test_a_defect_is_reported_with_its_input() -> None:
    def ask(number: int) -> str:
        if number == 3:
            raise BadInput("")
        return f"accepted {1 // (number - 5)}"

    numbers = iter(range(10))
    found = campaign(Parser(lambda _: next(numbers), ask), 10, seed=1, first=20)
    assert found.outcomes["traceback: ZeroDivisionError"] == 1
    assert found.traced == 2
    (silent, zero) = found.defects.values()
    assert (silent["index"], silent["input"]) == (23, "3")
    assert (zero["index"], zero["input"]) == (25, "5")
    assert "ZeroDivisionError" in zero["said"]


KEPT = sorted((ROOT / "results" / "fuzz").glob("*.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_saved_campaign_is_long_and_found_no_defect(path: Path) -> None:
    kept = json.loads(path.read_text())
    assert path.stem == f"{kept['date']}-{kept['parser']}"
    assert kept["count"] >= LONG[kept["parser"]]
    assert kept["tracebacks"] == 0
    assert kept["defects"] == {}
    assert kept["accepted"] + kept["refused"] == kept["count"] == sum(kept["outcomes"].values())
