# SPDX-License-Identifier: GPL-2.0-or-later
"""The download of lab01's ex5 must be forwarded: a mean of dropped and expensive packets can have any capacity."""

from __future__ import annotations

from fwlab.judge.checks import judge_exercise
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Run
from fwlab.model.trial import Delivery
from fwlab.model.verdict import Outcome
from tests import ROOT
from tests.checkout import lab_named
from tests.fakes.factories import a_run, attempt

LAB = lab_named("lab01-forwarding")
EXERCISE = next(exercise for exercise in LAB.exercises if exercise.id == "ex5-download")
KEPT = ROOT / "results" / "lab01-forwarding" / "2026-11-22-graded-variants.json"


def test_a_download_that_is_dropped_in_part_fails_at_the_right_capacity() -> None:
    offered = {"download": 960, "listed": 60, "bystanders": 30, "others": 30}
    arrived = {"download": 640, "bystanders": 30, "others": 30}
    play = Delivery(intended_load=1000, sent=1080, offered=offered, arrived=arrived)
    verdicts = judge_exercise(
        EXERCISE, attempt(*3 * [150_000], deliveries=[play], also=["delivered"]), a_run([]), METRICS
    )
    assert [verdict.check for verdict in verdicts if verdict.outcome is not Outcome.PASS] == ["delivered-download"]


def test_the_kept_rulesets_that_drop_nothing_forward_everything() -> None:
    run = Run.model_validate_json(KEPT.read_text())
    found = {
        measured.ruleset.rpartition("/")[2]: METRICS["forwarded"].values(measured, run.testbed)
        for measured in run.exercises
        if measured.id == EXERCISE.id
    }
    assert max(found.pop("dropped")) < 0.02
    assert all(0.98 <= share <= 1.02 for shares in found.values() for share in shares)
    assert len(found) > 8
