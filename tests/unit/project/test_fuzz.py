# SPDX-License-Identifier: GPL-2.0-or-later
"""A short fuzzing campaign of each parser: `python -m tests.fuzz` runs long ones."""

import warnings
from collections.abc import Iterator

import pytest

from tests.fuzz.campaign import campaign
from tests.fuzz.parsers import PARSERS

#: Parsing YAML is slow, so `lab` mutates the parsed data instead.
SHORT = {"rulesets": 3000, "lab": 500, "lab-text": 150, "streams": 1000, "results": 400, "predictions": 2000}


@pytest.fixture(autouse=True)
def restored_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        yield


@pytest.mark.parametrize("name", PARSERS)
def test_mutated_input_is_accepted_or_refused(name: str) -> None:
    outcomes, defects = campaign(PARSERS[name], SHORT[name], seed=7)
    assert defects == {}
    kinds = {outcome.partition(" ")[0].rstrip(":,") for outcome in outcomes}
    assert kinds == {"accepted", "refused"}, "inputs must be neither all valid nor all invalid"
