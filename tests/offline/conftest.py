# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures that several files of offline tests use."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.host.project import find_project, load_topology
from tests.offline import factories

ROOT = Path(__file__).resolve().parents[2]
#: Seconds that one test may take, on a busy host too.
TIMEOUT_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the boxes' keys are made from."""
    for name in ("packer", "provision", "engine"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.fixture
def setting(tmp_path: Path) -> SimpleNamespace:
    """What grading needs to know of a session: which lab, and where."""
    lab = factories.a_lab()
    lab._folder = tmp_path / "labs" / lab.id
    project = find_project(ROOT)
    return SimpleNamespace(project=project, topology=load_topology(project), lab=lab)
