# SPDX-License-Identifier: GPL-2.0-or-later
"""The download of lab01's ex5 must be forwarded: a mean of dropped and expensive packets can have any capacity."""

from __future__ import annotations

from pathlib import Path

from fwlab.host.project import Project
from fwlab.judge.verdicts import judge_exercise
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.results import Measured, Run
from fwlab.model.trial import Trial
from fwlab.model.verdict import Outcome
from tests.offline.factories import a_run, attempt

ROOT = Path(__file__).resolve().parents[2]
LAB = load_lab(Project(ROOT), "lab01-forwarding")
EXERCISE = next(exercise for exercise in LAB.exercises if exercise.id == "ex5-download")
KEPT = ROOT / "results" / "lab01-forwarding" / "2026-11-22-graded-variants.json"


def outcomes(measured: Measured, run: Run) -> dict[str, Outcome]:
    return {verdict.check: verdict.outcome for verdict in judge_exercise(EXERCISE, measured, run, METRICS)}


def test_a_download_that_is_dropped_in_part_fails_at_the_right_capacity() -> None:
    third = [Trial(duration_s=0.1, busy_s=0.1, processed=3900, forwarded=2600)] * 3
    found = outcomes(attempt(trials=third, entries=65, metric="capacity", also=["forwarded", "entries"]), a_run([]))
    assert found == {"entries": Outcome.PASS, "forwarded": Outcome.FAIL, "capacity": Outcome.PASS}


def test_the_kept_rulesets_that_drop_nothing_forward_everything() -> None:
    run = Run.model_validate_json(KEPT.read_text())
    found = {m.ruleset.rpartition("/")[2]: outcomes(m, run)["forwarded"] for m in run.exercises if m.id == EXERCISE.id}
    assert found.pop("dropped") is Outcome.FAIL
    assert set(found.values()) == {Outcome.PASS}
    assert len(found) > 8
