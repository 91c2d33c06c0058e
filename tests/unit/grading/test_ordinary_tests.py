# SPDX-License-Identifier: GPL-2.0-or-later
"""pytest's plugin changes nothing in tests that are not a grading."""

import subprocess
import sys
from pathlib import Path

from tests import ROOT

TEST = """from fwlab.model.errors import CannotMeasure

def test_it() -> None:
    raise CannotMeasure("no QEMU", "vagrant up LAB")
"""


def test_what_cannot_be_measured_fails_an_ordinary_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    words = ["-p", "no:cacheprovider", "--rootdir", str(ROOT), str(tmp_path / "test_it.py")]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "1 failed" in done.stdout
