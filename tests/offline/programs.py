# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that tests need. One that is missing skips them on a desk and is a failure in continuous integration."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


def program(name: str, *beside: Path) -> str:
    """Its path, looked for in `beside` first; skips or fails the test where it is missing."""
    path = os.pathsep.join([*map(str, beside), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is missing: run provision/host/install")
        pytest.skip(f"{name} is not installed")
    return found


def needs(*names: str) -> pytest.MarkDecorator:
    """Marks a test that needs one of these programs; where none is there it is skipped, or fails by itself."""
    missing = not any(map(shutil.which, names)) and "CI" not in os.environ
    return pytest.mark.skipif(missing, reason=f"{' or '.join(names)} is not installed")
