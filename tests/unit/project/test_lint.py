# SPDX-License-Identifier: GPL-2.0-or-later
"""The linters of .pre-commit-config.yaml, as tests. A missing program skips its test; in CI it fails it.

Other tests run the engine's compilers, Packer's validation and Vagrant's.
"""

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from identify.identify import tags_from_path

from tests import ROOT
from tests.fakes.programs import program

CONFIG = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
HOOKS = {hook["id"]: hook for repository in CONFIG["repos"] for hook in repository["hooks"]}
#: Folders of generated files.
GENERATED = {".git", ".venv", ".vagrant", ".fwlab", "build", "site", "reports", "__pycache__"}
#: Hooks for file types of which the project has at least this many files.
MIN_FILES = {
    "ruff": 200,
    "ruff-format": 200,
    "shellcheck": 20,
    "ruby": 4,
    "clang-format": 15,
    "packer-fmt": 4,
    "workflows": 6,
}


@cache
def sources() -> dict[Path, set[str]]:
    """The project's files, found without git, with their types according to `identify`."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in GENERATED and not name.endswith((".egg-info", "_cache"))]
        found += [Path(folder) / name for name in names]
    return {path: tags_from_path(str(path)) for path in sorted(found) if path.is_file()}


def files_of(hook: dict[str, Any]) -> list[Path]:
    """The files that pre-commit would give to the hook."""
    wanted, pattern = set(hook.get("types", ())), re.compile(hook.get("files", ""))
    return [path for path, tags in sources().items() if wanted <= tags and pattern.search(str(path.relative_to(ROOT)))]


@pytest.mark.timeout(600)  # on a busy host, mypy took more than two minutes
@pytest.mark.parametrize("name", HOOKS)
def test_linter_finds_nothing(name: str) -> None:
    hook = HOOKS[name]
    first, *words = shlex.split(hook["entry"])
    command = [program(Path(first).name, Path(sys.executable).parent), *words]
    if first == "sh":
        program(name.partition("-")[0])
    if hook.get("pass_filenames", True):
        files = files_of(hook)
        assert len(files) >= MIN_FILES[name]
        command += map(str, files)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_need_no_network() -> None:
    assert {repository["repo"] for repository in CONFIG["repos"]} == {"local"}
    assert {hook["language"] for hook in HOOKS.values()} == {"system"}


def test_scripts_without_a_suffix_are_executable() -> None:
    scripts = [path for path, tags in sources().items() if tags & {"shell", "python"} and not path.suffix]
    assert len(scripts) > 10
    assert not [str(path) for path in scripts if not os.access(path, os.X_OK)]
