# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the project; where it lies, and where the tests' data do."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
