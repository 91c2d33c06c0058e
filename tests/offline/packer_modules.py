# SPDX-License-Identifier: GPL-2.0-or-later
"""The modules of packer/, for the tests of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PACKER = ROOT / "packer"


def load(name: str) -> ModuleType:
    """A module of packer/, which is a folder of programs and no package. Loaded once."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, PACKER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


box_cache = load("box_cache")
children = load("children")
load("fetching")
cloud_image = load("cloud_image")
box_form = load("box_form")
