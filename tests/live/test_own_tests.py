# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples of guides/testinfra.md, on the machines: with a grading, and Testinfra's own way."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from fwlab.measure.labs import load_lab

from .class_of_five import hand_in, rulesets
from .conftest import LAB, PROJECT, ROOT, Checkout

EXERCISE = "ex3-ipset"
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "guides" / "testinfra.md").read_text(), re.MULTILINE | re.DOTALL)
VANILLA = """
def test_a_file_of_the_dut(host):
    assert host.file("/proc/sys/net/ipv4/ip_forward").content_string.strip() == "1"
    assert host.system_info.distribution == "debian"
"""


def test_the_examples_of_the_guide_pass(lab: Checkout, tmp_path: Path) -> None:
    mine = tmp_path / "test_mine.py"
    mine.write_text("\n\n".join(["import pytest", *BLOCKS]))
    exercise = load_lab(PROJECT, LAB).exercise(EXERCISE)
    assert exercise is not None
    files = rulesets(PROJECT, load_lab(PROJECT, LAB), exercise, "reference")
    hand_in(tmp_path / "class", "ada", "folder", {f"{EXERCISE}/{name}": text for name, text in files.items()})
    words = [
        "--lab",
        LAB,
        "--machines",
        LAB,
        f"--submissions={tmp_path / 'class'}",
        f"--results={tmp_path / 'results'}",
    ]
    done = lab.pytest("--testinfra", *words, str(mine), "-k", f"ada/{EXERCISE} or not ada", "-v")
    assert done.returncode == 0, done.stdout[-5000:]
    count = sum(block.count("\ndef test_") + block.startswith("def test_") for block in BLOCKS)
    assert len(re.findall(r"test_mine\.py::\S+ PASSED", done.stdout)) == count
    (row,) = list(csv.DictReader((tmp_path / "results" / "marks.csv").open(newline="")))
    assert (row["verdict"], row["passed"], row["checks"]) == ("pass", "7", "7")


def test_a_suite_of_testinfra_runs_by_itself(lab: Checkout, tmp_path: Path) -> None:
    (tmp_path / "test_state.py").write_text(VANILLA)
    config = lab.top / ".fwlab" / LAB / "ssh_config"
    words = ["--hosts=ssh://dut", f"--ssh-config={config}", "--sudo", str(tmp_path / "test_state.py")]
    done = lab.call(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words)
    assert done.returncode == 0, done.stdout[-3000:]


def test_its_host_is_not_the_dut_without_a_grading(lab: Checkout, tmp_path: Path) -> None:
    """Whoever runs other tests where this package is installed gets Testinfra as it is."""
    (tmp_path / "test_local.py").write_text(
        "def test_local(host):\n    assert host.backend.get_pytest_id() == 'local'\n"
    )
    done = lab.call(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path / "test_local.py"))
    assert done.returncode == 0, done.stdout[-3000:]
