# SPDX-License-Identifier: GPL-2.0-or-later
"""A class as Moodle and Gradescope export it, in folders and archives. A damaged archive costs only its student."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading.class_folder import students_in
from fwlab.grading.graded import handed_in, unreadable
from fwlab.grading.submissions import Submissions
from fwlab.model.errors import BadInput
from tests.offline.hand_ins import GOOD, RULES, make_tar, make_zip, zip_entry

METADATA = """---
submission_101:
  :submitters:
  - :name: Zoë Müller
    :sid: '7'
  - :name: Bo Li
  :created_at: 2026-11-20 23:14:59.712382000 Z
  :score: 0.0
submission_102:
  :submitters: none of us
  :created_at: yesterday
submission_103: gone
"""


@pytest.fixture
def submissions() -> Iterator[Submissions]:
    with contextlib.closing(Submissions()) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "class"
    made.mkdir()
    return made


def put(folder: Path, files: dict[str, str] = GOOD) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def read(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> dict[str, str | None]:
    """By student, why nothing can be measured; None if it can. Nothing that was unpacked may be left."""
    works = handed_in(setting, folder, submissions)
    assert [path for path in submissions.scratch.iterdir() if path.is_dir()] == []
    for work in works:
        if unreadable(work, setting) is None:
            assert [file.text for file in work.spec(setting).files] == [RULES]
    return {work.who: unreadable(work, setting) for work in works}


def test_folders_and_archives_in_one_class(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    put(folder / "ada")
    make_zip(folder / "bob.zip")
    make_tar(folder / "cid.tar.gz", {f"labs/lab03/work/{name}": text for name, text in GOOD.items()})
    make_tar(folder / "dan.tgz", {"other/notes.md": "no exercise"})
    make_zip(put(folder / "eve", {"readme.txt": "see the archive"}) / "work.zip")
    found = read(setting, folder, submissions)
    assert found == {
        **dict.fromkeys(("ada", "bob", "cid", "eve")),
        "dan": "nothing handed in: there is no dan/ex1-block",
    }
    assert submissions.students["bob"].source == "bob.zip"
    assert json.loads(submissions.document())["cid"]["ex1-block"]["rules.iptables"]["size"] == len(RULES)


def test_an_archive_that_cannot_be_read_costs_its_student(
    setting: SimpleNamespace, folder: Path, submissions: Submissions
) -> None:
    put(folder / "ada")
    (folder / "bob.zip").write_bytes(b"<html>not found</html>")
    zip_entry(folder / "cid.zip", "../../ada/ex1-block/rules.iptables")
    make_zip(folder / "dan.zip", {"a/ex1-block/r.nft": "", "b/ex1-block/r.nft": ""})
    make_zip(make_zip(folder / "eve" / "one.zip").parent / "two.zip")
    found = read(setting, folder, submissions)
    assert found.pop("ada") is None
    assert found == {
        "bob": "submission cannot be read: damaged archive: File is not a zip file",
        "cid": "submission cannot be read: ../../ada/ex1-block/rules.iptables: a path that leads out of the archive",
        "dan": "submission cannot be read: exercises in several places: a and b",
        "eve": "submission cannot be read: 2 archives, where one archive or a folder per exercise belongs",
    }
    told = json.loads(submissions.document())
    assert told["bob"]["ex1-block"] == {"refused": found["bob"]}


def moodle(name: str, number: int, rest: str = "") -> str:
    return f"{name}_{number}_assignsubmission_file_{rest}"


def test_moodle(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    put(folder / moodle("Zoë Müller-Weiß", 101))
    make_zip(folder / moodle("Zoë Müller-Weiß", 102) / "meine Lösung.zip")
    make_tar(folder / moodle("Participant", 103, "work.tar.gz"))
    (folder / moodle("李雷", 104, "a.nft")).write_text("x")
    (folder / moodle("李雷", 104, "b.nft")).write_text("x")
    (folder / "Anna Noack_105_assignsubmission_onlinetext_").mkdir()
    found = read(setting, folder, submissions)
    loose = found.pop("participant_104")
    assert loose == "submission cannot be read: 2 loose files, where one archive or a folder per exercise belongs"
    assert found == dict.fromkeys(("Zoe-Muller-Weiss_101", "Zoe-Muller-Weiss_102", "Participant_103"))
    assert submissions.students["Zoe-Muller-Weiss_101"].name == "Zoë Müller-Weiß"


@pytest.mark.parametrize("packed", [False, True])
def test_gradescope(
    setting: SimpleNamespace, folder: Path, submissions: Submissions, tmp_path: Path, packed: bool
) -> None:
    files = {"submission_metadata.yml": METADATA}
    files |= {f"submission_{n}/work/{name}": text for n in (101, 102, 103) for name, text in GOOD.items()}
    if packed:
        folder = make_zip(
            tmp_path / "export.zip", {f"assignment_9_export/{name}": text for name, text in files.items()}
        )
    else:
        put(folder / "assignment_9_export", files)
    assert read(setting, folder, submissions) == {f"submission_{n}": None for n in (101, 102, 103)}
    first, second, third = submissions.students.values()
    assert first.name == "Zoë Müller; Bo Li"
    assert first.handed_in == datetime(2026, 11, 20, 23, 14, 59, 712382, tzinfo=UTC)
    assert (second.name, second.handed_in, third.name) == ("", None, "")


@pytest.mark.parametrize(
    ("text", "what"), [("a: [", "not YAML"), ("- a", "not a mapping"), ("a: !!python/object:os.system {}", "not YAML")]
)
def test_gradescope_metadata_that_cannot_be_read(
    setting: SimpleNamespace, folder: Path, submissions: Submissions, text: str, what: str
) -> None:
    put(folder, {"submission_metadata.yml": text, "submission_1/ex1-block/rules.iptables": RULES})
    with pytest.raises(BadInput, match=f"submission_metadata.yml.*{what}"):
        read(setting, folder, submissions)


def test_two_of_one_name(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    put(folder / "ada")
    make_zip(folder / "ada.zip")
    with pytest.raises(BadInput, match=r"ada and ada\.zip are both of ada"):
        read(setting, folder, submissions)


def test_an_export_that_cannot_be_read(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path) -> None:
    (tmp_path / "export.zip").write_bytes(b"PK")
    with pytest.raises(BadInput, match=r"export\.zip: damaged archive") as refused:
        read(setting, tmp_path / "export.zip", submissions)
    assert refused.value.hint == "download it again; or unpack it, remove what is refused, and name the folder"


def test_no_configuration_of_pytest_comes_in_an_export(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path
) -> None:
    files = {f"ada/{name}": text for name, text in GOOD.items()} | {"pytest.ini": "[pytest]"}
    with pytest.raises(BadInput, match="pytest could take this file for its configuration"):
        read(setting, make_zip(tmp_path / "export.zip", files), submissions)


@pytest.mark.parametrize("name", [".pytest.ini", "conftest.py"])
def test_no_configuration_of_pytest_lies_beside_an_export(
    setting: SimpleNamespace, folder: Path, submissions: Submissions, name: str
) -> None:
    put(folder / "assignment_9_export", {"submission_metadata.yml": METADATA, "submission_101/ex1-block/r.nft": ""})
    (folder / name).write_text("")
    with pytest.raises(BadInput, match="pytest could take this file for its configuration"):
        read(setting, folder, submissions)


def test_metadata_that_grows_when_it_is_read(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    """Aliases: each line is ten times as long as the one before."""
    lines = ["a0: &a0 lol"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    text = "\n".join([*lines, "submission_1:", "  :submitters: [{ ':name': *a11 }, { ':name': ada }]", ""])
    put(folder, {"submission_metadata.yml": text, "submission_1/ex1-block/rules.iptables": RULES})
    assert read(setting, folder, submissions) == {"submission_1": None}
    assert submissions.students["submission_1"].name == "?; ada"


def test_links_are_not_followed_on_the_way_to_exercises(
    setting: SimpleNamespace, folder: Path, submissions: Submissions, tmp_path: Path
) -> None:
    put(tmp_path / "elsewhere")
    (folder / "ada").mkdir()
    (folder / "ada" / "work").symlink_to(tmp_path / "elsewhere")
    put(folder / "bob" / "deep")
    (folder / "bob" / "ex1-block").symlink_to(tmp_path / "elsewhere" / "ex1-block")
    found = read(setting, folder, submissions)
    assert found["ada"] == "nothing handed in: there is no ada/ex1-block"
    assert found["bob"] == "no folder ex1-block"


def test_a_class_of_one_is_no_export_whatever_it_hands_in(tmp_path: Path) -> None:
    """Otherwise one student's folders would become students, and their times would be believed."""
    put(
        tmp_path / "ann",
        {"submission_metadata.yml": METADATA, "submission_101/ex1-block/r.nft": "", "ex1-block/r.nft": ""},
    )
    assert [student.id for student in students_in(tmp_path, tmp_path)] == ["ann"]
