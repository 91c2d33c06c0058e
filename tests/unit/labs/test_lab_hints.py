# SPDX-License-Identifier: GPL-2.0-or-later
"""The labs' own hints: each exercise has two or three, and none is a line of the solution."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests import ROOT

LABS = sorted(path.parent for path in ROOT.glob("labs/*/hints.yml"))


def significant(text: str) -> list[str]:
    """Lines that say something: no comments, no table names."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if len(line) >= 8 and not line.startswith(("#", "*", "COMMIT"))]


@pytest.mark.parametrize("folder", LABS, ids=lambda path: path.name)
def test_no_hint_contains_a_line_of_the_reference(folder: Path) -> None:
    hints = yaml.safe_load((folder / "hints.yml").read_text())
    for exercise, levels in hints.items():
        told = [" ".join(hint.split()) for hint in levels]
        assert 2 <= len(told) <= 3, exercise
        for path in (folder / "rulesets" / exercise / "reference").iterdir():
            start = folder / "rulesets" / exercise / "start" / path.name
            given = significant(start.read_text()) if start.exists() else []
            for line in significant(path.read_text()):
                assert line in given or not [hint for hint in told if line in hint], f"{exercise}: {line}"
    known = {path.name for path in (folder / "rulesets").glob("ex*")}
    assert set(hints) == known, "an exercise has no hints"
