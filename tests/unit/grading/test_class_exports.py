# SPDX-License-Identifier: GPL-2.0-or-later
"""A class as learning platforms export it, in folders and archives. A damaged archive costs only its student."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading.class_folder import students_in
from fwlab.grading.submissions import Submissions, as_recorded
from fwlab.grading.works import handed_in, unreadable
from fwlab.model.errors import BadInput
from tests.fakes.hand_ins import GOOD, RULES, make_tar, make_zip, zip_entry

RULESET = "ex1-block/rules.iptables"
BELONGS = "where one archive or a folder per exercise belongs"
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
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "class"
    made.mkdir()
    return made


def put(folder: Path, files: dict[str, str] = GOOD) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def recorded(setting: SimpleNamespace, folder: Path) -> dict[str, dict]:
    """What a record says of each work."""
    with contextlib.closing(Submissions()) as submissions:
        return {work.name: as_recorded(work.handed_in) for work in handed_in(setting, folder, submissions)}


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
    assert recorded(setting, folder)["cid/ex1-block"]["rules.iptables"]["size"] == len(RULES)


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
        "eve": f"submission cannot be read: 2 archives, {BELONGS}: one.zip, two.zip",
    }
    assert recorded(setting, folder)["bob/ex1-block"] == {"refused": found["bob"]}


def moodle(name: str, number: int, rest: str = "") -> str:
    return f"{name}_{number}_assignsubmission_file_{rest}"


@pytest.mark.parametrize("end", ["", "_"])
def test_moodle_folders(setting: SimpleNamespace, folder: Path, submissions: Submissions, end: str) -> None:
    """Since Moodle 4.1 they have no underscore at their end. Who has no group is in one without a number."""
    for name in ("Ada Example_11", "Participant_12", "Group 1_5", "Default group"):
        put(folder / f"{name}_assignsubmission_file{end}")
    text = f"assignsubmission_onlinetext{end}"
    for name in ("Participant_12", "Bo Example_13"):
        put(folder / f"{name}_{text}", {"onlinetext.html": "<p>see the files"})
    found = read(setting, folder, submissions)
    assert found == dict.fromkeys(("Ada-Example_11", "Default-group", "Group-1_5", "Participant_12"))
    assert [line for line in submissions.odd[0].splitlines() if "online text" in line] == [
        f"  Bo Example_13_{text}: not read: an online text, and nothing else is of Bo-Example_13"
    ]


def test_canvas(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    """Files alone: each name begins with the student's."""
    (folder / "exampleada_101_9001_rules.iptables").write_text(RULES)
    (folder / "exampleada_101_9004_set.ipset").write_text("x")
    make_zip(folder / "examplebob_LATE_102_9002_work.zip")
    make_zip(folder / "examplecid_103_9003_work-1.zip")
    (folder / "examplecid_103_9005_report.pdf").write_bytes(b"x")
    (folder / "exampledan_104_9006_work.rar").write_bytes(b"x")
    (folder / "exampleeve_105_text.html").write_text("x")
    found = read(setting, folder, submissions)
    loose = "exampleada_101_9001_rules.iptables, exampleada_101_9004_set.ipset"
    assert found == {
        "exampleada_101": f"submission cannot be read: 2 loose files, {BELONGS}: {loose}",
        "examplebob_102": None,
        "examplecid_103": None,
        "exampledan_104": "submission cannot be read: exampledan_104_9006_work.rar: only .zip, .tar.gz and .tgz are "
        "unpacked",
    }
    assert submissions.students["examplebob_102"].name == "examplebob"
    assert "examplebob_102: handed in late, and the export does not say when" in submissions.odd[0]
    assert "exampleeve_105_text.html: not read: an online text" in submissions.odd[0]


def test_brightspace(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    put(folder / "7001-1 - Ada Example - Sep 14, 2026 10:05 AM")
    put(folder / "7002-1 - Ada Example - Feb 10, 2026 131 AM")
    put(folder / "7003-1 - Bo Example - Feb 10, 2026 131 AM")
    put(folder / "7003-1 - Bo Example - Feb 11, 2026 905 PM")
    (folder / "index.html").write_text("<html>")
    found = read(setting, folder, submissions)
    bo = found.pop("7003-1-Bo-Example")
    assert found == dict.fromkeys(("7001-1-Ada-Example", "7002-1-Ada-Example"))
    assert bo.endswith(
        "Feb 10, 2026 131 AM and 7003-1 - Bo Example - Feb 11, 2026 905 PM are both of 7003-1-Bo-Example"
    )
    assert "index.html: not read" in submissions.odd[0]


def test_an_archive_of_windows(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    """Backslashes in names, of folders too, names in code page 437, and what Explorer leaves."""
    files = {"LXsung\\": "", "LXsung\\ex1-block\\": "", "LXsung\\ex1-block\\rules.iptables": RULES}
    path = make_zip(folder / "ada.zip", {**files, "LXsung\\ex1-block\\Thumbs.db": "x", "desktop.ini": "x"})
    path.write_bytes(path.read_bytes().replace(b"LXsung", b"L\x94sung"))
    (work,) = handed_in(setting, folder, submissions)
    assert [file.text for file in work.spec(setting).files] == [RULES]
    assert work.spec(setting).remarks == ["Not loaded: Thumbs.db (no tool loads *.db)."]


def test_an_archive_of_macos(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    names = [".DS_Store", "__MACOSX/._work", "__MACOSX/work/ex1-block/._rules.iptables", "work/.DS_Store"]
    make_zip(folder / "ada.zip", {**dict.fromkeys(names, "x"), "work/ex1-block/rules.iptables": RULES})
    make_tar(folder / "bob.tgz", {"._work": "x", "work/ex1-block/._rules.iptables": "x", f"work/{RULESET}": RULES})
    ada, bob = handed_in(setting, folder, submissions)
    assert ada.spec(setting).remarks == []
    assert bob.spec(setting).remarks == ["Not loaded: ._rules.iptables (hidden: it begins with a dot)."]
    assert submissions.odd == []


def test_moodle(setting: SimpleNamespace, folder: Path, submissions: Submissions) -> None:
    put(folder / moodle("Zoë Müller-Weiß", 101))
    make_zip(folder / moodle("Zoë Müller-Weiß", 102) / "meine Lösung.zip")
    make_tar(folder / moodle("Participant", 103, "work.tar.gz"))
    (folder / moodle("李雷", 104, "a.nft")).write_text("x")
    (folder / moodle("李雷", 104, "b.nft")).write_text("x")
    (folder / "Anna Noack_105_assignsubmission_onlinetext_").mkdir()
    found = read(setting, folder, submissions)
    loose = found.pop("participant_104")
    assert loose.startswith(f"submission cannot be read: 2 loose files, {BELONGS}: ")
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
        put(folder, {"desktop.ini": "", "README.txt": ""})
    assert read(setting, folder, submissions) == {f"submission_{n}": None for n in (101, 102, 103)}
    first, second, third = submissions.students.values()
    assert first.name == "Zoë Müller; Bo Li"
    assert first.handed_in == datetime(2026, 11, 20, 23, 14, 59, 712382, tzinfo=UTC)
    assert (second.name, second.handed_in, third.name) == ("", None, "")


@pytest.mark.parametrize(("text", "what"), [("a: [", "not YAML"), ("- a", "not a mapping"), ("a: !!int b", "not YAML")])
def test_gradescope_metadata_that_cannot_be_read(
    setting: SimpleNamespace, folder: Path, submissions: Submissions, text: str, what: str
) -> None:
    put(folder, {"submission_metadata.yml": text, "submission_1/ex1-block/rules.iptables": RULES})
    with pytest.raises(BadInput, match=f"submission_metadata.yml.*{what}"):
        read(setting, folder, submissions)


RUBY = """---
submission_1: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
  :submitters:
  - :name: "Zoe\\u0308 Example"
    ? !ruby/sym sid
    : 7
  :created_at: 2026-02-10 01:31:37.404413000 Z
  :score: !ruby/object:BigDecimal 18:0.6e1
  :history: !!python/object/apply:os.system ["exit 1"]
submission_2:
  :submitters: !ruby/array:Submitters
  - :name: Bo Example
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-02-10 01:31:37.404413000 Z
    zone: &zone !ruby/object:ActiveSupport::TimeZone
      name: Etc/UTC
    time: 2026-02-10 02:31:37.404413000 Z
  :again: *zone
"""


def test_gradescope_metadata_with_tags_of_ruby(
    setting: SimpleNamespace, folder: Path, submissions: Submissions
) -> None:
    put(folder, {"submission_metadata.yml": RUBY, **{f"submission_{n}/{RULESET}": RULES for n in (1, 2)}})
    assert read(setting, folder, submissions) == {"submission_1": None, "submission_2": None}
    first, second = submissions.students.values()
    assert (first.name, second.name) == ("Zo\u00eb Example", "Bo Example")
    assert first.handed_in == second.handed_in == datetime(2026, 2, 10, 1, 31, 37, 404413, tzinfo=UTC)


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


def test_a_folder_of_a_similar_name_hides_no_archive(
    setting: SimpleNamespace, folder: Path, submissions: Submissions
) -> None:
    make_zip(put(folder / "ada", {"ex1 notes/a.txt": "x"}) / "work.zip")
    assert read(setting, folder, submissions) == {"ada": None}


def test_a_class_of_one_is_no_export_whatever_it_hands_in(tmp_path: Path) -> None:
    """Otherwise one student's folders would become students, and their times would be believed."""
    put(
        tmp_path / "ann",
        {"submission_metadata.yml": METADATA, "submission_101/ex1-block/r.nft": "", "ex1-block/r.nft": ""},
    )
    assert [student.id for student in students_in(tmp_path, tmp_path)] == ["ann"]
