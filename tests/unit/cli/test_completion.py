# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell completes labs, cases and exercises, and one step puts `fwlab` on the PATH."""

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
    ("words", "offered"),
    [
        ("fwlab st", {"start", "status"}),
        (f"fwlab check {LAB} ", {EX1, EX2}),
        (f"fwlab hint {LAB} ex2", {EX2}),
        (f"fwlab run {LAB} ru", {"rules", "rules-16", "rules-64"}),
        (f"fwlab run {LAB} raw-drop rules-1", {"rules-16"}),
        (f"fwlab hold {LAB} e", {EX1, EX2}),
        ("fwlab check lab00-none ", set()),
    ],
)
def test_the_shell_completes_labs_cases_and_exercises(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: str, offered: set[str]
) -> None:
    """In this process, because a new one would spend most of its time on imports."""
    assert set(completed(monkeypatch, capfd, **asked(words)).split()) == offered


def completed(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], **environment: str) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["fwlab"])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # it names the program under `python -m pytest`
    with pytest.raises(SystemExit) as left:
        main()
    said = capfd.readouterr()
    assert (left.value.code, said.err) == (0, "")
    return said.out


def asked(words: str) -> dict[str, str]:
    """The environment in which bash asks for what could follow."""
    count = len(words.split(" ")) - 1
    return {"_FWLAB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}


def test_the_program_completes_for_the_shell(checkout: Path) -> None:
    env = {**os.environ, **asked("fwlab check lab9")}
    done = subprocess.run([ROOT / ".venv/bin/fwlab"], env=env, text=True, capture_output=True)
    assert (done.stdout.split(), done.stderr) == ([LAB], "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(
    shell: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert "_FWLAB_COMPLETE" in completed(monkeypatch, capfd, _FWLAB_COMPLETE=f"source_{shell}")


def test_activating_puts_fwlab_on_the_path() -> None:
    script = f"cd {ROOT} && . .venv/bin/activate && command -v fwlab"
    done = subprocess.run(["sh", "-ec", script], env={"PATH": "/usr/bin:/bin"}, text=True, capture_output=True)
    assert done.stdout.strip() == str(ROOT / ".venv" / "bin" / "fwlab")
