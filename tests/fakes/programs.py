# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that tests need. A missing one skips the test; in CI (environment variable CI) it fails the test."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def program(name: str, *beside: Path, packages: str = "") -> str:
    """The path of a program, searched in `beside` first. Skips or fails the test if it is missing.

    packages  the list in provision/host that has it, if not the usual one
    """
    path = os.pathsep.join([*map(str, beside), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is missing: run provision/host/install {packages}".strip())
        pytest.skip(f"{name} is not installed")
    return found


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark a test that needs at least one of these programs. Without any it is skipped; in CI it runs and fails."""
    missing = not any(map(shutil.which, names)) and "CI" not in os.environ
    return pytest.mark.skipif(missing, reason=f"{' or '.join(names)} is not installed")
