# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of a class: it is read once, anything odd is reported, and a mistake affects only its student."""

from __future__ import annotations

import hashlib
import os
import shutil
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading.submissions import Submissions, as_recorded
from fwlab.grading.works import handed_in, own_work, unreadable
from fwlab.model.errors import BadInput
from tests.fakes.hand_ins import GOOD, RULES, make_zip


def put(folder: Path, files: Mapping[str, str] = GOOD) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_odd_entries_cost_their_own_student_at_most(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path
) -> None:
    """All of them are told in one message; nobody else is affected."""
    folder = tmp_path / "class"
    for name in ("ok", "11+12", "Ada Example", "O'Neil", "reference", "bob", "Zoë"):
        put(folder / name)
    for name in ("Thumbs.db", "notes.pdf", ".DS_Store", "bob.zip", "cid.7z"):
        (folder / name).write_bytes(b"x")
    put(folder / unicodedata.normalize("NFD", "Zoë"))
    put(folder / "__MACOSX")
    (folder / "dan").symlink_to(folder / "ok")
    (folder / "eve.zip").symlink_to("/etc/passwd")
    (folder / "gone").symlink_to("/no/such/file")
    os.mkfifo(folder / "fay.zip")
    works = handed_in(setting, folder, submissions)
    found = {work.who: unreadable(work, setting) for work in works}
    assert {who for who, why in found.items() if why is None} == {
        *("ok", "11-12", "Ada-Example", "O-Neil", "student-reference")
    }
    refused = {
        "Zoe": "Zoe\u0308 and Zo\u00eb are both of Zoe",
        "bob": "bob and bob.zip are both of bob",
        "cid": "cid.7z: only .zip, .tar.gz and .tgz are unpacked",
        "dan": "dan: a link, which is not read",
        "eve": "eve.zip: a link, which is not read",
        "fay": "fay.zip: no plain file, which is not read",
    }
    said = {who: f"submission cannot be read: {why}" for who, why in refused.items()}
    assert {who: why for who, why in found.items() if why is not None} == said
    (told,) = submissions.odd
    others = [
        f"{name}: not read: neither a student's folder nor an archive" for name in ("Thumbs.db", "gone", "notes.pdf")
    ]
    assert [line.strip() for line in told.splitlines()] == [
        f"{folder}: odd, and nobody else is affected:",
        *others,
        *(f"{who}: {why}" for who, why in said.items()),
        "next: rename, unpack or remove these, and grade again with --resume",
    ]
    assert submissions.students["O-Neil"].name == "O'Neil"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (["rules.iptables"], "; rules.iptables: outside the folder of an exercise, so not loaded"),
        (["ex9-another/rules.iptables"], ""),
        (["work/rules.ipt"], "; rules.ipt: outside the folder of an exercise, so not loaded"),
        (["EX1-Block/rules.iptables"], "; there is EX1-Block: did you mean ex1-block?"),
        (["work/ex1_block/rules.iptables"], "; there is ex1_block: did you mean ex1-block?"),
        (["ex1/rules.iptables"], "; there is ex1: did you mean ex1-block?"),
        (["work.rar"], "; work.rar: only .zip, .tar.gz and .tgz are unpacked"),
        (["deep/work.7z"], "; work.7z: only .zip, .tar.gz and .tgz are unpacked"),
        (["progress.yml", "ex2-other/rules.nft"], ""),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_lies_in_place_of_an_exercise_is_told(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, files: list[str], why: str, packed: bool
) -> None:
    given = dict.fromkeys(files, RULES)
    make_zip(tmp_path / "class" / "ada.zip", given) if packed else put(tmp_path / "class" / "ada", given)
    (work,) = handed_in(setting, tmp_path / "class", submissions)
    assert unreadable(work, setting) == f"nothing handed in: there is no ada/ex1-block{why}"


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
    assert work.name == "ada/ex1-block"
    assert as_recorded(work.handed_in) == {
        "rules.iptables": {"sha256": hashlib.sha256(RULES.encode()).hexdigest(), "size": len(RULES)}
    }


def test_unreadable_files_are_recorded(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path) -> None:
    (tmp_path / "class/ada/ex1-block/rules.nft").mkdir(parents=True)
    (work,) = handed_in(setting, tmp_path / "class", submissions)
    assert work.name == "ada/ex1-block"
    assert as_recorded(work.handed_in)["refused"] == "rules.nft: a ruleset is plain files, no links, no folders"


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
