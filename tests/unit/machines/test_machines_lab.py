# SPDX-License-Identifier: GPL-2.0-or-later
"""`--machines LAB` uses the running machines of another lab. It never starts machines, and each command says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fwlab.model.errors import EXIT_UNMEASURED
from fwlab.testbed import selection
from fwlab.testbed.machines import Machines
from tests import ROOT
from tests.fakes import factories
from tests.fakes.student_checkout import door

LAB, OTHER = "lab98-trouble", "lab97-stand"
SAID = f"{OTHER} is not up, and --machines starts none\n  next: vagrant up {OTHER}\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two labs that are not up, on unused ports."""
    for lab in (LAB, OTHER):
        factories.small_checkout(tmp_path, lab)
    path = tmp_path / "labs" / OTHER / "lab.yml"
    path.write_text(path.read_text().replace(LAB, OTHER))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FWLAB_PORT_OFFSET", "9000")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [["run", LAB, "raw-drop"], ["run", LAB, "raw-drop", "--keep"], ["check", LAB], ["profile", LAB, "raw-drop"]],
    ids=" ".join,
)
def test_nothing_is_started(
    checkout: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Machines, "up", lambda *_: pytest.fail("vagrant up"))
    monkeypatch.setattr(Machines, "destroy", lambda *_: pytest.fail("vagrant destroy"))
    monkeypatch.setattr(selection, "kvm_works", lambda: pytest.fail("nothing is started, so no testbed is chosen"))
    code, _, said = door(monkeypatch, capsys)(*words, "--machines", OTHER)
    assert code == EXIT_UNMEASURED
    assert said.endswith(f"fwlab: {SAID}")
    assert not (checkout / "reports").exists()


def test_a_class_is_not_graded_and_the_exit_code_is_3(checkout: Path) -> None:
    """The first Vagrant on the PATH is a fake that leaves a trace file."""
    (checkout / "vagrant").write_text(f"#!/bin/sh\ntouch {checkout}/called\nexit 1\n")
    (checkout / "vagrant").chmod(0o755)
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--testinfra", "--lab", LAB]
    env = {**os.environ, "PATH": f"{checkout}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*argv, "--machines", OTHER, "-k", "test_dut_forwards"], env=env, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == EXIT_UNMEASURED, done.stdout
    assert SAID.strip() in done.stderr
    assert SAID.partition("\n")[0] in done.stdout
    assert not (checkout / "called").exists()
