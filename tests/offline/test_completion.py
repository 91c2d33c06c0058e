# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell completes labs, cases and exercises, and one step puts `fwlab` on the PATH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.offline import student_checkout as checkouts
from tests.offline.student_checkout import EX1, EX2, LAB

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    checkouts.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "words", "offered"),
    [
        ("bash", "fwlab st", {"start", "status"}),
        ("bash", "fwlab check lab9", {LAB}),
        ("bash", f"fwlab check {LAB} ", {EX1, EX2}),
        ("bash", f"fwlab hint {LAB} ex2", {EX2}),
        ("bash", f"fwlab run {LAB} ru", {"rules", "rules-16", "rules-64"}),
        ("bash", f"fwlab run {LAB} raw-drop rules-1", {"rules-16"}),
        ("bash", f"fwlab hold {LAB} e", {EX1, EX2}),
        ("bash", "fwlab check lab00-none ", set()),
        ("zsh", "fwlab check lab9", {LAB}),
        ("zsh", f"fwlab check {LAB} ", {EX1, EX2}),
        ("zsh", f"fwlab run {LAB} ru", {"rules", "rules-16", "rules-64"}),
        ("fish", "fwlab check lab9", {LAB}),
        ("fish", f"fwlab check {LAB} ", {EX1, EX2}),
        ("fish", f"fwlab run {LAB} ru", {"rules", "rules-16", "rules-64"}),
    ],
)
def test_the_shell_completes_labs_cases_and_exercises(
    checkout: Path, shell: str, words: str, offered: set[str]
) -> None:
    if shell == "bash":
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    else:
        asked = {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    environment = {**os.environ, "_FWLAB_COMPLETE": f"complete_{shell}", **asked}
    program = ROOT / ".venv" / "bin" / "fwlab"
    done = subprocess.run([program], env=environment, cwd=checkout, text=True, capture_output=True)
    assert done.stderr == ""
    if shell == "bash":
        found = set(done.stdout.split())
    elif shell == "zsh":
        lines = done.stdout.replace("_arguments '*: :((", "").replace("))'", "").splitlines()
        found = {line.strip('"').partition('":')[0].replace("\\", "") for line in lines if line.startswith('"')}
    else:
        found = {line.partition("\t")[0] for line in done.stdout.splitlines() if line}
    assert found == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_can_be_had(shell: str) -> None:
    environment = {**os.environ, "_FWLAB_COMPLETE": f"source_{shell}"}
    done = subprocess.run([ROOT / ".venv/bin/fwlab"], env=environment, text=True, capture_output=True)
    assert "fwlab" in done.stdout
    assert "_FWLAB_COMPLETE" in done.stdout


def test_activating_puts_fwlab_on_the_path() -> None:
    script = f"cd {ROOT} && . .venv/bin/activate && command -v fwlab"
    done = subprocess.run(["sh", "-ec", script], env={"PATH": "/usr/bin:/bin"}, text=True, capture_output=True)
    assert done.stdout.strip() == str(ROOT / ".venv" / "bin" / "fwlab")
