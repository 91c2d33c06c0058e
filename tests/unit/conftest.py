# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of several unit tests; what holds for all offline tests (those of unit/ and contract/)."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.checkout import PROJECT, TOPOLOGY
from tests.fakes import factories

ROOT = Path(__file__).resolve().parents[2]
#: The files that take longest. Begun first, they do not keep one process busy when the other has nothing left.
FIRST = (
    "test_nothing_fixed",
    "test_labs",
    "test_variants",
    "test_own_tests",
    "test_lint",
    "test_wheel",
    "test_vagrantfile",
    "test_site",
    "test_classes",
    "test_grading_resumed",
)
#: The file that keeps most of each lab, so it tests one lab after the other.
BY_LAB = "test_nothing_fixed"
#: Seconds that one test may take, also on a busy host.
TIMEOUT_S = 120

# Modules, labs and thousands of tests are made while tests are collected, and stay. Looking for garbage among them
# takes a third of the time.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[int, str]:
    stem = item.path.stem
    return FIRST.index(stem) if stem in FIRST else len(FIRST), item.callspec.params["name"] if stem == BY_LAB else ""


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that the boxes' cache keys depend on."""
    for name in ("packer", "provision", "engine"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.fixture
def setting(tmp_path: Path) -> SimpleNamespace:
    """The parts of a run context that grading needs."""
    lab = factories.a_lab()
    lab._folder = tmp_path / "labs" / lab.id
    return SimpleNamespace(project=PROJECT, topology=TOPOLOGY, lab=lab)


@pytest.fixture
def unplayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan a grading without building all of the lab's frame tables, which other tests do."""
    monkeypatch.setattr("fwlab.grading.grading_plan.reject_unplayable_traffic", lambda *_: None)
