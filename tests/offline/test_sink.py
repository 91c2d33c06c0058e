# SPDX-License-Identifier: GPL-2.0-or-later
"""The sink's counters, asked until all is in: packets may be on their way when it is asked first."""

from __future__ import annotations

import json

import pytest

from fwlab.outside import sink
from fwlab.outside.sink import Sink


class Answers:
    """Stands for the sink's node: each question is answered by the next pair of counts, the last one for ever."""

    def __init__(self, *pairs: tuple[int, int]) -> None:
        self.pairs, self.asked = list(pairs), 0

    def run(self, command: str) -> str:
        assert command.startswith("nft -j list counters")
        self.asked += 1
        counts = self.pairs.pop(0) if len(self.pairs) > 1 else self.pairs[0]
        named = zip(("class-attacker", "class-other"), counts, strict=True)
        return json.dumps({"nftables": [{"metainfo": {}}, *({"counter": {"name": n, "packets": p}} for n, p in named)]})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink.time, "sleep", lambda _seconds: None)


@pytest.mark.parametrize(("pairs", "all_of", "found", "asked"), [
    ([(7, 1)], None, (7, 1), 2),  # twice the same: settled
    ([(3, 0), (6, 1), (7, 1)], None, (7, 1), 4),
    ([(7, 1)], 8, (7, 1), 1),  # all that was sent on
    ([(0, 0)], 0, (0, 0), 1),
    ([(3, 0), (7, 1)], 8, (7, 1), 2),
    ([(7, 1)], 9, (7, 1), 2),  # one was lost, or was none of ours
    ([(7, 1)], 6, (7, 1), 2),
])
def test_counts_settle(pairs: list[tuple[int, int]], all_of: int | None, found: tuple[int, int], asked: int) -> None:
    node = Answers(*pairs)
    counts = Sink(node, "eth0").settled_counts(all_of)
    assert (counts, node.asked) == ({"attacker": found[0], "other": found[1]}, asked)


def test_patience_has_an_end() -> None:
    node = Answers((1, 0), (2, 0), (3, 0))
    assert Sink(node, "eth0").settled_counts(9, patience_s=0) == {"attacker": 1, "other": 0}
