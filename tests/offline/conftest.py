# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures that several files of offline tests use."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the boxes' keys are made from."""
    for name in ("packer", "provision", "engine"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path
