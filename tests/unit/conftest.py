# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of several unit tests; what holds for all offline tests (those of unit/ and contract/)."""

from __future__ import annotations

import gc
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.checkout import PROJECT, TOPOLOGY
from tests.fakes import factories

ROOT = Path(__file__).resolve().parents[2]
#: The files that take longest, after all that is about one lab. Begun first, they do not keep one process busy when the
#: other has nothing left.
FIRST = (
    "test_own_tests",
    "test_lint",
    "test_wheel",
    "test_vagrantfile",
    "test_site",
    "test_grading_resumed",
)
#: The file that keeps most of each traffic, so it tests one exercise after the other.
BY_EXERCISE = "test_nothing_fixed"
#: Seconds that one test may take, also on a busy host.
TIMEOUT_S = 120

# Modules, labs and thousands of tests are made while tests are collected, and stay. Looking for garbage among them
# takes a third of the time.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/unit/") and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
    items.sort(key=_turn)


def _scope(nodeid: str) -> str:
    """What one process runs at a time: a file, or of the labs' tests those about one lab, which share its traffic."""
    file = nodeid.partition("::")[0]
    lab = re.search(r"lab\d\d", nodeid) if file.startswith("tests/unit/labs/") else None
    return lab[0] if lab else file


def _turn(item: pytest.Item) -> tuple[int, str, str, str]:
    scope, stem = _scope(item.nodeid), item.nodeid.partition(".py::")[0].rpartition("/")[2]
    if scope.startswith("lab"):
        return -1, scope, stem, item.callspec.params["exercise"] if stem == BY_EXERCISE else ""
    return FIRST.index(stem) if stem in FIRST else len(FIRST), "", "", ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByScope(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return ByScope(config, log) if config.getvalue("dist") == "loadfile" else None


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
