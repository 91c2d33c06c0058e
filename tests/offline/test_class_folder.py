# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of a class: it is read once, anything odd is reported, and a mistake affects only its student."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading.graded import handed_in, own_work, unreadable
from fwlab.grading.submissions import Submissions
from fwlab.model.errors import BadInput

RULES = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"


@pytest.fixture
def submissions() -> Iterator[Submissions]:
    with contextlib.closing(Submissions()) as opened:
        yield opened


def test_missing_submissions(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        handed_in(setting, tmp_path / "class", submissions)
    assert refused.value.message == f"no folder {tmp_path / 'class'}"


@pytest.mark.parametrize("inside", [[], [".git"]])
def test_submissions_without_a_student(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, inside: list[str]
) -> None:
    for name in inside:
        (tmp_path / "class" / name).mkdir(parents=True)
    (tmp_path / "class").mkdir(exist_ok=True)
    with pytest.raises(BadInput, match=r"(?m)class is empty$"):
        handed_in(setting, tmp_path / "class", submissions)


@pytest.mark.parametrize(
    "name", ["start", "reference", "mistake", "right-x", "wrong-x", "ada lovelace", "-rf", "[x]", "a" * 65]
)
def test_student_folder_with_a_forbidden_name(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, name: str
) -> None:
    """With the name of a part of the lab, the reference would be graded instead of the student's files."""
    (tmp_path / "class" / name).mkdir(parents=True)
    with pytest.raises(BadInput) as refused:
        handed_in(setting, tmp_path / "class", submissions)
    assert refused.value.message.startswith(f"{tmp_path / 'class' / name}: ")
    assert refused.value.hint == "rename it"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_student_that_is_not_a_folder(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "class").mkdir()
    if kind == "file":
        (tmp_path / "class" / "ada.rar").write_bytes(b"Rar!")
    else:
        (tmp_path / "class" / "ada.zip").symlink_to("/etc")
    with pytest.raises(BadInput, match=r"(?m)ada\.(rar|zip): not a student's folder or archive$"):
        handed_in(setting, tmp_path / "class", submissions)


def test_missing_exercise_affects_only_its_student(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path
) -> None:
    for name in ("ada", "bob", "eve"):
        (tmp_path / "class" / name).mkdir(parents=True)
    (tmp_path / "class/ada/ex1-block").mkdir()
    (tmp_path / "class/ada/ex1-block/rules.iptables").write_text(RULES)
    (tmp_path / "class/eve/ex1-block").mkdir()
    (tmp_path / "class/eve/ex1-block/run-me.sh").write_text("reboot\n")
    ada, bob, eve = handed_in(setting, tmp_path / "class", submissions)
    assert unreadable(ada, setting) is None
    assert unreadable(bob, setting) == f"nothing handed in: there is no bob/{bob.exercise.id}"
    assert unreadable(eve, setting) == "ex1-block has nothing to load: run-me.sh (no tool loads *.sh)"


def test_the_submitted_files_are_graded(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path) -> None:
    there = tmp_path / "class/ada/ex1-block"
    there.mkdir(parents=True)
    (there / "rules.iptables").write_text(RULES)
    (there / "notes.txt").write_text("not read\n")
    (work,) = handed_in(setting, tmp_path / "class", submissions)
    (there / "rules.iptables").write_text("changed\n")
    shutil.rmtree(tmp_path / "class" / "ada")
    task = work.spec(setting)
    assert [(file.name, file.text) for file in task.files] == [("rules.iptables", RULES)]
    assert json.loads(submissions.document()) == {
        "ada": {
            "ex1-block": {"rules.iptables": {"sha256": hashlib.sha256(RULES.encode()).hexdigest(), "size": len(RULES)}}
        }
    }


def test_unreadable_files_are_recorded(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path) -> None:
    (tmp_path / "class/ada/ex1-block/rules.nft").mkdir(parents=True)
    handed_in(setting, tmp_path / "class", submissions)
    told = json.loads(submissions.document())["ada"]["ex1-block"]
    assert told["refused"] == "rules.nft: a ruleset is plain files, no links, no folders"


@pytest.mark.parametrize("name", [".pytest.ini", "pytest.ini", "conftest.py", "pyproject.toml", ".pytest.toml"])
def test_file_that_pytest_could_run_is_refused(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, name: str
) -> None:
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / name).write_text("")
    with pytest.raises(BadInput) as refused:
        handed_in(setting, tmp_path / "class", submissions)
    assert refused.value.message.startswith(f"{tmp_path / 'class' / name}: pytest could take this file")


def test_unknown_part(setting: SimpleNamespace) -> None:
    with pytest.raises(BadInput, match="(?m)^unknown part solution$"):
        own_work(setting, ["reference", "solution"])
