# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad lab.yml files: the message names the file, the field and what is wrong with it, and the next step."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from fwlab import __version__
from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_USAGE, BadInput
from tests import DATA, ROOT
from tests.fakes.student_checkout import door

LAB = "lab98-trouble"
GOOD = yaml.safe_load((DATA / "errors" / "good.yml").read_text())
BAD = yaml.safe_load((DATA / "errors" / "table.yml").read_text())["bad"]


def written(bad: dict[str, Any]) -> str:
    """The text of the lab.yml that one entry of the table describes."""
    data = copy.deepcopy(GOOD)
    if "twice" in bad:
        data[bad["twice"]] *= 2
    for place, value in bad.get("put", {}).items():
        *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
        holder = data
        for part in path:
            holder = holder[part]
        if value is None:
            del holder[last]
        else:
            holder[last] = value
    return str(bad["text"]) if "text" in bad else json.dumps(data)


def checkout(folder: Path, text: str) -> Project:
    """A checkout with one lab."""
    (folder / "labs" / LAB).mkdir(parents=True)
    shutil.copy(ROOT / "topology.yml", folder)
    (folder / "labs" / LAB / "lab.yml").write_text(text)
    return Project(folder)


def test_the_good_file_is_accepted(tmp_path: Path) -> None:
    assert list(load_lab(checkout(tmp_path, written({})), LAB).cases) == ["raw-drop", "rules-16", "rules-64"]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad["says"][0])
def test_bad_file_is_rejected_by_name_and_field(bad: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as rejected:
        load_lab(checkout(tmp_path, written(bad)), LAB)
    lines = rejected.value.message.splitlines()
    assert len(lines) == len(bad["says"])
    for line, part in zip(lines, bad["says"], strict=True):
        assert line.startswith(f"labs/{LAB}/lab.yml:")
        assert part in line
    assert rejected.value.hint


def test_message_names_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout(tmp_path, written({"put": {"cases.0.traffic": "trickle"}}))
    monkeypatch.chdir(tmp_path)
    said = f"fwlab: labs/{LAB}/lab.yml: case raw-drop: unknown traffic trickle\n"
    hint = f"  next: fix labs/{LAB}/lab.yml, then `fwlab list`\n"
    assert door(monkeypatch, capsys)("list", LAB) == (EXIT_USAGE, "", said + hint)


def test_an_unknown_field_may_be_that_of_a_newer_version(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="difficulty: there is no such field") as rejected:
        load_lab(checkout(tmp_path, written({"put": {"difficulty": "high"}})), LAB)
    assert rejected.value.hint.endswith(f"(a newer lab needs a newer fwlab; this is {__version__})")
