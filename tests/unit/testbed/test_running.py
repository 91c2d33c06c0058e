# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a lab's machines run: libvirt is asked, and each state has the one command that helps."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.model.errors import CannotMeasure
from fwlab.testbed import machines as module
from fwlab.testbed.hardware import checkout_key
from fwlab.testbed.machines import Machines
from fwlab.testbed.selection import TestbedRequest
from tests import ROOT

LAB = "lab03-ipset"
Made = Callable[..., Machines]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Machines in these states, by role, of which these do not answer; libvirt has other checkouts' as well."""

    def make(states: dict[str, str], silent: tuple[str, ...] = ()) -> Machines:
        project = Project(tmp_path)
        prefix = f"fwlab-{checkout_key(tmp_path)}-{LAB}"
        rows = [f" -   {prefix if role == 'dut' else f'{prefix}-{role}'}   {state}" for role, state in states.items()]
        other = [f" 7   fwlab-00000000-{LAB}{role}   running" for role in ("", "-generator", "-sink")]
        listed = subprocess.CompletedProcess([], 0, "\n".join([*other, *rows, ""]), "")
        monkeypatch.setattr(module, "virsh", lambda *words, timeout_s: listed)
        lab = SimpleNamespace(id=LAB, number=3)
        found = Machines(project, load_topology(Project(ROOT)), lab, TestbedRequest())
        monkeypatch.setattr(found, "_answers", lambda role: role not in silent)
        return found

    return make


ALL, UP = ("generator", "dut", "sink"), f"vagrant up {LAB}"


@pytest.mark.parametrize(
    ("states", "running"),
    [
        ({}, False),
        (dict.fromkeys(ALL, "shut off"), False),
        ({"dut": "shut off"}, False),
        (dict.fromkeys(ALL, "running"), True),
    ],
)
def test_machines_run_or_are_started(made: Made, states: dict[str, str], running: bool) -> None:
    assert made(states).running() is running


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            "Timed out while waiting for the machine to boot.",
            "export FWLAB_BOOT_TIMEOUT=1800, then the same command again",
        ),
        ("No space left on device", "fwlab doctor"),
    ],
)
def test_a_host_that_is_too_slow_is_given_time(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, hint: str
) -> None:
    (tmp_path / "vagrant").write_text(f"#!/bin/sh\necho '{said}'; exit 1\n")
    (tmp_path / "vagrant").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("FWLAB_BOOT_TIMEOUT", raising=False)
    with pytest.raises(CannotMeasure, match=said) as found:
        made({}).destroy(lambda line: None)
    assert found.value.hint == hint


@pytest.mark.parametrize(
    ("states", "said", "hint"),
    [
        (dict.fromkeys(ALL, "paused"), "not running: generator (paused), dut (paused), sink (paused)", UP),
        ({"generator": "shut off", "dut": "running", "sink": "running"}, "not running: generator (shut off)", UP),
        ({"generator": "running", "dut": "running"}, "not running: sink (not there)", UP),
        (dict.fromkeys(ALL, "running"), "no answer from: sink", f"vagrant destroy -f {LAB}; {UP}"),
    ],
)
def test_those_that_do_not_run_or_answer_are_named(made: Made, states: dict[str, str], said: str, hint: str) -> None:
    with pytest.raises(CannotMeasure) as found:
        made(states, silent=("sink",)).running()
    assert (found.value.message, found.value.hint) == (f"{LAB}: {said}", hint)
