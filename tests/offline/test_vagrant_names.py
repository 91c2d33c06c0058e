# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of labs as people type them to Vagrant: their beginnings, and slips."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.offline.test_vagrantfile import MACHINES, needs_vagrant, small_checkout, vagrant


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


@needs_vagrant
def test_the_beginning_of_a_labs_name_is_enough(checkout: Path) -> None:
    done = vagrant(checkout, "status", "lab03", "--machine-readable", VAGRANT_LOG="debug")
    assert done.returncode == 0, done.stderr
    named = {line.split(",")[1] for line in done.stdout.splitlines() if ",state," in line}
    evaluated = set(re.findall(r"Loading from: \d+_machine_(\S+) \(evaluating\)", done.stderr))
    assert evaluated == named == set(MACHINES.values()), "the configuration of all labs takes seconds"


@needs_vagrant
def test_a_mistyped_lab_is_answered_with_the_one_that_is_near(checkout: Path) -> None:
    said = vagrant(checkout, "up", "lab11-sriow")
    assert "next: vagrant up lab11-sriov" in said.stdout + said.stderr
