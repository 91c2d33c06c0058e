# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of gradings share: a checkout with a class on fake machines, and a place for submissions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.grading.submissions import Submissions
from tests.fakes.fake_grading import FakeGrading


@pytest.fixture
def grading(tmp_path: Path) -> FakeGrading:
    return FakeGrading(tmp_path)


@pytest.fixture
def submissions() -> Iterator[Submissions]:
    with contextlib.closing(Submissions()) as opened:
        yield opened
