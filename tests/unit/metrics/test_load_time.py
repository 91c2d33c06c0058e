# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a ruleset is loaded for its load time, and which of these times count."""

from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.metrics import load_time
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.case import Trials
from fwlab.model.ruleset import RulesetFile


def loaded(size: int, *metrics: str, **fields: Any) -> tuple[list[float], list[dict[str, Any]]]:
    """The times that count, of loadings that take 1 s, 2 s and so on; and how the DUT was asked."""
    asked: list[dict[str, Any]] = []

    def load(_files: list[RulesetFile], **how: Any) -> list[list[float]]:
        asked.append(how)
        return [[float(turn)] for turn in range(1, how.get("times", 1) + 1)]

    files = [RulesetFile("x.nft", "nft", "x" * size)]
    spec = MeasurementSpec("one", "One", "drop", files, list(metrics), **fields)
    nodes: Any = SimpleNamespace(dut=SimpleNamespace(load=load))
    return load_time.load(nodes, spec), asked


@pytest.mark.parametrize(
    ("size", "fields", "seconds"),
    [
        (load_time.TINY - 1, {}, [2, 3, 4]),  # the first time also loads modules
        (load_time.TINY - 1, {"trial": Trials(count=2)}, [2, 3]),
        (load_time.TINY, {}, [2]),
        (load_time.SMALL - 1, {}, [2]),
        (load_time.SMALL, {}, [1]),
        (1, {"each": True}, [1]),
    ],
)
def test_a_longer_ruleset_is_loaded_less_often(size: int, fields: dict[str, Any], seconds: list[float]) -> None:
    assert loaded(size, "capacity", "load_time", **fields)[0] == seconds


def test_where_nobody_asks_for_the_time_it_is_loaded_faster() -> None:
    assert loaded(1, "capacity") == ([], [{"each": False, "timed": False}])
