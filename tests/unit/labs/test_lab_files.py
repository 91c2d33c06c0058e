# SPDX-License-Identifier: GPL-2.0-or-later
"""Every lab.yml is short, declares nothing unused, and gives a source for each number that it judges by."""

from __future__ import annotations

import pytest
import yaml

from fwlab.metrics.registry import METRICS
from tests.unit.labs.test_labs import LABS, PROJECT, TEMPLATE

each_lab = pytest.mark.parametrize("name", LABS)


@each_lab
def test_every_shared_check_is_used(name: str) -> None:
    """A check that no exercise uses judges nobody."""
    raw = yaml.safe_load((LABS[name].folder / "lab.yml").read_text())
    items = [check for exercise in raw["exercises"] for check in exercise["checks"]]
    flat = [check for item in items for check in (item if isinstance(item, list) else [item])]
    used = {check if isinstance(check, str) else check.get("use") for check in flat}
    assert {*raw.get("checks", {})} <= used


@each_lab
def test_every_limit_and_range_has_a_source_that_exists(name: str) -> None:
    if name == TEMPLATE:
        return
    lab = LABS[name]
    sources = {source for exercise in lab.exercises for check in exercise.checks for source in check.source}
    sources |= {source for expectation in lab.expectations for source in expectation.source}
    missing = [source for source in sources if not (PROJECT.root / source).is_file() and source not in lab.sources]
    assert not missing
    for exercise in lab.exercises:
        for check in exercise.checks:
            if METRICS[check.metric].needs_clock:
                assert check.kernel, exercise.id
                assert all(source.startswith("results/") for source in check.source), exercise.id
