# SPDX-License-Identifier: GPL-2.0-or-later
"""`packer/build --lab`: a misspelt lab is refused before anything is built."""

from __future__ import annotations

import sys

import pytest

from fwlab.checkout.project import find_project, lab_named
from fwlab.images import __main__ as command
from fwlab.model.errors import EXIT_USAGE
from tests import ROOT


def test_the_beginning_of_a_name_is_enough() -> None:
    assert lab_named(find_project(ROOT), "lab03") == "lab03-ipset"


def test_an_unknown_lab_is_refused_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["packer/build", "--lab", "lab3", "--no-vagrant"])
    monkeypatch.setattr(command, "_build", lambda *_: pytest.fail("it builds"))
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    assert command.main() == EXIT_USAGE
    assert "packer/build: unknown lab lab3; there are: lab01-forwarding, " in capsys.readouterr().err
