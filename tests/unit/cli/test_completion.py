# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell completes labs, cases and exercises, and one step puts `fwlab` on the PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fwlab.cli.main import main
from tests import ROOT
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, EX2, LAB


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    checkouts.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "words", "offered"),
    [
        ("bash", "fwlab st", {"start", "status"}),
        ("bash", f"fwlab check {LAB} ", {EX1, EX2}),
        ("bash", f"fwlab hint {LAB} ex2", {EX2}),
        ("bash", f"fwlab run {LAB} ru", {"rules", "rules-16", "rules-64"}),
        ("bash", f"fwlab run {LAB} raw-drop rules-1", {"rules-16"}),
        ("bash", f"fwlab hold {LAB} e", {EX1, EX2}),
        ("bash", "fwlab check lab00-none ", set()),
        ("zsh", f"fwlab check {LAB} ", {EX1, EX2}),
        ("zsh", f"fwlab run {LAB} ru", {"rules", "rules-16", "rules-64"}),
        ("fish", f"fwlab check {LAB} ", {EX1, EX2}),
        ("fish", f"fwlab run {LAB} ru", {"rules", "rules-16", "rules-64"}),
    ],
)
def test_the_shell_completes_labs_cases_and_exercises(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    shell: str,
    words: str,
    offered: set[str],
) -> None:
    """In this process, because a new one would spend most of its time on imports."""
    for name, value in asked(shell, words).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["fwlab"])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # it names the program under `python -m pytest`
    with pytest.raises(SystemExit) as left:
        main()
    said = capfd.readouterr()
    assert (left.value.code, said.err) == (0, "")
    assert found(shell, said.out) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_program_completes_for_the_shell(checkout: Path, shell: str) -> None:
    environment = {**os.environ, **asked(shell, "fwlab check lab9")}
    program = ROOT / ".venv" / "bin" / "fwlab"
    done = subprocess.run([program], env=environment, cwd=checkout, text=True, capture_output=True)
    assert done.stderr == ""
    assert found(shell, done.stdout) == {LAB}


def asked(shell: str, words: str) -> dict[str, str]:
    """The environment in which a shell asks for what could follow."""
    if shell == "bash":
        line = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    else:
        line = {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return {"_FWLAB_COMPLETE": f"complete_{shell}", **line}


def found(shell: str, said: str) -> set[str]:
    """What is offered in an answer."""
    if shell == "bash":
        return set(said.split())
    if shell == "zsh":
        lines = said.replace("_arguments '*: :((", "").replace("))'", "").splitlines()
        return {line.strip('"').partition('":')[0].replace("\\", "") for line in lines if line.startswith('"')}
    return {line.partition("\t")[0] for line in said.splitlines() if line}


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
