# SPDX-License-Identifier: GPL-2.0-or-later
"""`--machines LAB` uses the running machines of another lab. It never starts machines, and each command says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fwlab.cli import main
from fwlab.model.errors import EXIT_UNMEASURED
from fwlab.testbed import selection
from fwlab.testbed.machines import Machines
from tests import ROOT
from tests.fakes import factories

LAB, OTHER = "lab98-trouble", "lab97-stand"
SAID = f"{OTHER} is not up, and --machines starts none\n  next: vagrant up {OTHER}\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two labs that are not up, on unused ports."""
    good = (ROOT / "tests/data/errors/good.yml").read_text()
    for lab in (LAB, OTHER):
        folder = tmp_path / "labs" / lab
        for name in ("raw-drop", "rules", "ex1-block/start"):
            (folder / "rulesets" / name).mkdir(parents=True)
            (folder / "rulesets" / name / "rules.iptables").write_text("*raw\n-A PREROUTING -j DROP\nCOMMIT\n")
        (folder / "lab.yml").write_text(good.replace(LAB, lab))
        (folder / "profile.py").write_text(factories.PROFILE)
    shutil.copy(ROOT / "topology.yml", tmp_path)
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
    monkeypatch.setattr("sys.argv", ["fwlab", *words, "--machines", OTHER])
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == EXIT_UNMEASURED
    assert capsys.readouterr().err.endswith(f"fwlab: {SAID}")
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
