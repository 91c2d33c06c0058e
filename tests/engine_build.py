# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the replay engine for tests. They are skipped on a release whose static libelf is incomplete."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parents[1] / "engine"
#: What no static program can be linked with on Debian 13: its libelf.a needs it, and no package has it.
LACKING = "undefined reference to `eu_search_tree_init'"


def build_engine(*variables: str, environment: Mapping[str, str] | None = None) -> str:
    """Run engine/Makefile with these NAME=VALUE; returns what it wrote to standard error."""
    done = subprocess.run(
        ["make", "-s", "-C", str(ENGINE), *variables], env=environment, capture_output=True, text=True, check=False
    )
    if LACKING in done.stderr:
        pytest.skip("this release's static libelf lacks a part of itself (guides/hosts.md)")
    assert done.returncode == 0, done.stderr
    return done.stderr
