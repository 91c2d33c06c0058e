# SPDX-License-Identifier: GPL-2.0-or-later
"""The worked examples of guides/own.md print what the page says."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.fakes.guide_pages import blocks

from .kernel import lacks

PAGE = ROOT / "guides" / "own.md"
EXAMPLES = [
    (one.body, other.body)
    for one, other in itertools.pairwise(blocks(PAGE))
    if (one.tag, other.tag) == ("sh", "text") and "--here" in one.body
]


def test_there_are_three() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.skipif(bool(lacks()), reason=lacks())
@pytest.mark.parametrize("number", range(3))
def test_an_example_prints_what_the_page_says(number: int, tmp_path: Path) -> None:
    typed, printed = EXAMPLES[number]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-uc", typed], cwd=tmp_path, env={**os.environ, "PATH": path}, text=True, capture_output=True
    )
    assert done.returncode == ("no difference" not in printed), done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in printed.splitlines() if line not in lines] == []
