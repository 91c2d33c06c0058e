# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad lab.yml files, each with the exact message that a user gets.

errors/NAME.yml differs from errors/good.yml in one place; errors/NAME.txt is what `fwlab` then says on standard
error: the file, the field, what is wrong with it, and the next step.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.cli.main import main
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_USAGE, BadInput
from tests import DATA, ROOT

ERRORS = DATA / "errors"
LAB = "lab98-trouble"
BAD = sorted(path.stem for path in ERRORS.glob("*.yml") if path.stem != "good")


def checkout(folder: Path, name: str) -> Path:
    """A checkout with one lab, whose lab.yml is errors/NAME.yml."""
    (folder / "labs" / LAB).mkdir(parents=True)
    shutil.copy(ROOT / "topology.yml", folder)
    shutil.copy(ERRORS / f"{name}.yml", folder / "labs" / LAB / "lab.yml")
    return folder


def test_every_message_has_a_lab_file() -> None:
    assert sorted(path.stem for path in ERRORS.glob("*.txt")) == BAD
    assert len(BAD) >= 30


def test_the_good_file_is_accepted(tmp_path: Path) -> None:
    """The bad files differ from it in one item each."""
    lab = load_lab(Project(checkout(tmp_path, "good")), LAB)
    assert list(lab.cases) == ["raw-drop", "rules-16", "rules-64"]


@pytest.mark.parametrize("name", BAD)
def test_bad_file_gets_this_message(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout(tmp_path, name))
    monkeypatch.setattr("sys.argv", ["fwlab", "list", LAB])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    assert said.err == (ERRORS / f"{name}.txt").read_text()
    assert said.out == ""
    assert left.value.code == EXIT_USAGE


@pytest.mark.parametrize("name", BAD)
def test_bad_file_gets_a_hint(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        load_lab(Project(checkout(tmp_path, name)), LAB)
    assert f"labs/{LAB}/lab.yml:" in refused.value.message
    assert refused.value.hint
