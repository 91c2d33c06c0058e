# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits of lab01's exercises against measured variants; those of other labs are in test_make_labs.

A limit on the wrong side of a variant is found here without a machine. Variants not measured yet are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fwlab.grading.variant_files import load_variants
from fwlab.host.project import find_project
from fwlab.measure.labs import load_lab
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Exercise, Lab
from fwlab.model.variants import REFUSED

PROJECT = find_project(Path(__file__).parent)
KEPT = "2026-11-22-variants.json"
LABS = [load_lab(PROJECT, name) for name in ("lab01-forwarding",)]
EXERCISES = [pytest.param(lab, exercise, id=exercise.id) for lab in LABS for exercise in lab.exercises]
#: The least distance of a cost limit from the nearest right and wrong variant.
ROOM = 0.007


def kept(lab: Lab, exercise: Exercise) -> dict[str, dict]:
    path = PROJECT.root / "results" / lab.id / KEPT
    return json.loads(path.read_text())["exercises"].get(exercise.id, {})


def failed(exercise: Exercise, row: dict) -> set[str]:
    """The measured checks that the figures of this row fail."""
    if REFUSED in row:
        return {REFUSED}
    measured = {check: value for check, (_, value) in row["verdicts"].items() if value is not None}
    return {
        check.id
        for check in exercise.checks
        if check.id in measured and not check.between[0] <= measured[check.id] <= check.between[1]
    }


@pytest.mark.parametrize(("lab", "exercise"), EXERCISES)
def test_each_variant_has_its_declared_outcome(lab: Lab, exercise: Exercise) -> None:
    variants = load_variants(PROJECT, lab, exercise)
    for name, row in kept(lab, exercise).items():
        found = failed(exercise, row)
        if name in variants.wrong:
            wanted = {check for check in variants.wrong[name].fails if check == REFUSED or check in row["verdicts"]}
            assert found == wanted, name
        elif name in ("start", "mistake"):
            assert found or "without" in row, name
        else:
            assert name in {"reference", *variants.right}, name
            assert not found, name


@pytest.mark.parametrize(("lab", "exercise"), EXERCISES)
def test_cost_limits_leave_room_on_both_sides(lab: Lab, exercise: Exercise) -> None:
    """Trials after one load lie within 0.5 % of each other, and so do trials on two hosts."""
    rows = kept(lab, exercise).values()
    for check in exercise.checks:
        values = [row["verdicts"][check.id][1] for row in rows if check.id in row.get("verdicts", {})]
        if METRICS[check.metric].needs_clock:
            assert not [value for value in values if abs(value / check.between[0] - 1) < ROOM]
