# SPDX-License-Identifier: GPL-2.0-or-later
"""lab04's limits lie between the dearest right variant and the best wrong one, as they were measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from fwlab.host.project import find_project
from fwlab.measure.labs import load_lab
from fwlab.model.check import Check
from fwlab.model.lab import Exercise

PROJECT = find_project(Path(__file__).parent)
LAB = load_lab(PROJECT, "lab04-nftables")
SOURCE = "results/lab04-nftables/2026-11-22-variants.json"
MEASURED = json.loads((PROJECT.root / SOURCE).read_text())["exercises"]
#: Medians repeat to a tenth of this. Four rules of iptables and nft's cheapest look-up are no further apart (ex2).
MARGIN = 0.0075


def declared(exercise: Exercise) -> dict[str, set[str]]:
    """By variant, the checks that it must fail; the reference is a right one."""
    variants = yaml.safe_load((LAB.folder / "rulesets" / exercise.id / "variants.yml").read_text())
    right: dict[str, set[str]] = {name: set() for name in (*variants["right"], "reference")}
    return right | {name: set(wrong["fails"]) for name, wrong in variants["wrong"].items()}


FOUND = [
    pytest.param(exercise, fails, MEASURED[exercise.id][name], id=f"{exercise.id}:{name}")
    for exercise in LAB.exercises
    for name, fails in declared(exercise).items()
    if name in MEASURED.get(exercise.id, {})
]
each_measured = pytest.mark.parametrize(("exercise", "fails", "found"), FOUND)


def checks(exercise: Exercise, metric: str) -> list[Check]:
    return [check for check in exercise.checks if check.metric == metric]


@each_measured
def test_the_limit_of_capacity_keeps_its_distance(exercise: Exercise, fails: set[str], found: dict) -> None:
    (check,) = checks(exercise, "capacity")
    assert SOURCE in check.source
    if "capacity" in fails:
        assert found["capacity_pps"] <= check.between[0] * (1 - MARGIN)
    else:
        assert found["capacity_pps"] >= check.between[0] * (1 + MARGIN)


@each_measured
def test_what_is_delivered_is_as_declared(exercise: Exercise, fails: set[str], found: dict) -> None:
    failed = {
        check.id
        for check in checks(exercise, "delivered")
        if not check.between[0] <= found["delivered"][check.traffic_class] <= check.between[1]
    }
    assert failed == fails - {"capacity"}
