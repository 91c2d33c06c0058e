# SPDX-License-Identifier: GPL-2.0-or-later
"""What the hosts behind the DUT send goes back by the first link. The generator counts it where QEMU does not."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from fwlab.judge.checks import judge_exercise
from fwlab.metrics import delivery, plays
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Nodes
from fwlab.metrics.registry import METRICS
from fwlab.metrics.returned import count_returned
from fwlab.model.lab import Exercise
from fwlab.model.results import Measured
from fwlab.model.verdict import Outcome
from tests.checkout import lab_named
from tests.fakes.factories import a_lab, a_run, attempt
from tests.unit.metrics.test_delivery import Way

LAB = lab_named("lab02-conntrack")
UNTRACKED = [exercise for exercise in LAB.exercises if exercise.id in ("ex3-dns-flood", "ex4-reply")]


class Back(Way):
    """A tenth of the packets is for hosts beyond the first link; the DUT sends this share of them back."""

    def __init__(self, share: float, before: float = 1e9) -> None:
        super().__init__(before)
        self.share, self.back = share, 0

    def start(self, *, load: float, count: int) -> SimpleNamespace:
        self.back = round(count * 0.1 * self.share)
        return super().start(load=load, count=count)

    def count_returned(self, classes: object) -> None:
        self.back = 0

    def returned(self) -> dict[str, int]:
        return {"questions": self.back, "answers": 3, "other": 50}


def returned(way: Way, monkeypatch: pytest.MonkeyPatch) -> Measured:
    for module in (delivery, plays):
        monkeypatch.setattr(module, "SETTLED_S", 0)
    tables = SimpleNamespace(offered=lambda traffic, sent: {"questions": sent // 10, "answers": sent - sent // 10})
    nodes = Nodes(way, way, way, tables, a_lab().classes, lambda step: nullcontext(), 1)
    task = MeasurementSpec(id="x", title="X", ruleset="x", files=[], metrics=["returned"], traffic="flood")
    return count_returned(MeasuringSession(nodes), task, attempt())


@pytest.mark.parametrize(("share", "value"), [(1, 1.0), (1.05, 1.0), (0.5, 0.5), (0, 0.0)])
def test_the_share_that_is_sent_back(share: float, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    found = returned(Back(share), monkeypatch)
    assert METRICS["returned"].values(found, a_run([]).testbed, "questions") == [value]
    assert found.problems == []


def test_after_losses_a_smaller_load_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    way = Back(1, before=600)
    assert returned(way, monkeypatch).problems == []
    assert way.loads == [8000, 2000, 500]
    [problem] = returned(Back(1, before=1), monkeypatch).problems
    assert problem == "96 of 960 packets were lost on their way to the DUT"


@pytest.mark.parametrize("exercise", UNTRACKED, ids=lambda exercise: exercise.id)
@pytest.mark.parametrize(("share", "outcome"), [(1, Outcome.PASS), (0.5, Outcome.FAIL), (None, Outcome.INCONCLUSIVE)])
def test_untracked_packets_must_pass_in_both_directions(
    exercise: Exercise, share: float | None, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result from before it was counted is inconclusive."""
    found = attempt() if share is None else returned(Back(share), monkeypatch)
    verdicts = judge_exercise(exercise, found, a_run([]), METRICS)
    [verdict] = [verdict for verdict in verdicts if verdict.metric == "returned"]
    assert (verdict.check, verdict.outcome) == ("returned-questions", outcome)
