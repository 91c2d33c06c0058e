# SPDX-License-Identifier: GPL-2.0-or-later
"""A student's checkout with one small lab, a session that measures what a test says, and the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import Door, Measuring


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    checkouts.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Measuring:
    return checkouts.measuring(monkeypatch)


@pytest.fixture
def door(
    checkout: Path, session: Measuring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Door:
    return checkouts.door(monkeypatch, capsys)
