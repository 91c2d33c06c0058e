# SPDX-License-Identifier: GPL-2.0-or-later
"""The workflows in .github: actionlint finds nothing, and what they run is there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.unit.project.test_lint import HOOKS

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load(path.read_text())["jobs"].values())


def commands(path: Path) -> list[list[str]]:
    """The words of each line that a workflow runs."""
    steps = [step for job in jobs(path) for step in job["steps"]]
    return [line.split() for step in steps for line in step.get("run", "").splitlines()]


def test_there_is_one_for_each_purpose() -> None:
    assert {path.stem for path in WORKFLOWS} == {"image", "nightly", "pages", "release", "test", "weekly"}
    assert "workflows" in HOOKS


@each
def test_actionlint_finds_nothing(path: Path) -> None:
    found = shutil.which("actionlint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip("actionlint is not installed: `make test-setup` installs it where Go is")
    done = subprocess.run([found, "-no-color", path], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@each
def test_what_it_runs_is_there(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(path):
        if "make" in words[:4]:
            asked = [word for word in words[words.index("make") + 1 :] if "=" not in word and word.isascii()]
            assert [word for word in asked if re.fullmatch("[a-z-]+", word) and word not in targets] == []
        named = [word for word in words if re.match(r"(?:tests|packer|provision)/", word)]
        assert [word for word in named if not (ROOT / word).exists()] == []


@each
def test_it_may_only_read_unless_a_job_says_more(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in jobs(path))


@each
def test_only_the_forges_own_actions_are_used(path: Path) -> None:
    used = [step["uses"] for job in jobs(path) for step in job["steps"] if "uses" in step]
    assert not [name for name in used if not re.fullmatch(r"actions/[a-z-]+@v\d+", name)]
