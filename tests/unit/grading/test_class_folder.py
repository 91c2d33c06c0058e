# SPDX-License-Identifier: GPL-2.0-or-later
"""What a class hands in, as it is or as a platform exports it. It is read once; a fault costs its own student alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading.class_folder import students_in
from fwlab.grading.submissions import Submissions, as_recorded
from fwlab.grading.works import Work, handed_in, own_work, unreadable
from fwlab.model.errors import BadInput
from tests.fakes.hand_ins import GOOD, RULES, make_tar, make_zip, zip_entry

RULESET = "ex1-block/rules.iptables"
METADATA = "submission_metadata.yml"
BELONGS = "where one archive or a folder per exercise belongs"
UNREAD = "submission cannot be read: "
UNPACKED = "only .zip, .tar.gz and .tgz are unpacked"
#: Reads the class: by student, why nothing can be measured; None if it can.
Read = Callable[[], dict[str, str | None]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "class"
    made.mkdir()
    return made


@pytest.fixture
def works(setting: SimpleNamespace, submissions: Submissions, folder: Path) -> Callable[[], list[Work]]:
    return lambda: handed_in(setting, folder, submissions)


@pytest.fixture
def read(setting: SimpleNamespace, submissions: Submissions, works: Callable[[], list[Work]]) -> Read:
    def found() -> dict[str, str | None]:
        every = works()
        assert [path for path in submissions.scratch.iterdir() if path.is_dir()] == [], "what was unpacked is left"
        for work in every:
            if unreadable(work, setting) is None:
                assert [file.text for file in work.spec(setting).files] == [RULES]
        return {work.who: unreadable(work, setting) for work in every}

    return found


def put(folder: Path, files: Mapping[str, str] = GOOD) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_folders_and_archives_in_one_class(folder: Path, submissions: Submissions, read: Read) -> None:
    put(folder / "ada")
    make_zip(folder / "bob.zip")
    make_tar(folder / "cid.tar.gz", {f"labs/lab03/work/{name}": text for name, text in GOOD.items()})
    make_tar(folder / "dan.tgz", {"other/notes.md": "no exercise"})
    make_zip(put(folder / "eve", {"readme.txt": "see the archive", "ex1 notes/a.txt": "x"}) / "work.zip")
    missing = {"dan": "nothing handed in: there is no dan/ex1-block"}
    assert read() == {**dict.fromkeys(("ada", "bob", "cid", "eve")), **missing}
    assert submissions.students["bob"].source == "bob.zip"


def test_of_a_clone_only_work_is_read(folder: Path, submissions: Submissions, read: Read) -> None:
    """As the workflow in its repository does. What else lies there, such as a copy of an exercise, costs nothing."""
    for who in ("lab03-ada", "lab03-bob", "lab03-cid", "lab03-dan"):
        (folder / who / ".git").mkdir(parents=True)
        (folder / who / ".git" / "config").write_text("[core]\n\tfsmonitor = touch /tmp/run\n")
        put(folder / who / "copies")
    put(folder / "lab03-ada" / "work")
    put(folder / "lab03-bob" / "work", {"notes.md": "nothing yet"})
    (folder / "lab03-cid" / "work").symlink_to(folder / "lab03-ada" / "work")
    put(folder / "eve" / "work")
    put(folder / "eve" / "copies")
    found = read()
    assert found["lab03-ada"] is None
    assert found["lab03-bob"].startswith("nothing handed in: there is no lab03-bob/ex1-block")
    assert found["lab03-cid"] is None, "a link is not followed, so this is its copy"
    assert found["lab03-dan"] is None, "without work/ it is searched like any folder"
    assert "exercises in several places" in found["eve"], "it is no clone"


def test_odd_entries_cost_their_own_student_at_most(folder: Path, submissions: Submissions, read: Read) -> None:
    """One message names all of them; other students are not affected."""
    for name in ("ok", "11+12", "Ada Example", "O'Neil", "reference", "bob", "Zoë", "__MACOSX"):
        put(folder / name)
    for name in ("Thumbs.db", "notes.pdf", ".DS_Store", "bob.zip", "cid.7z", "html.zip"):
        (folder / name).write_bytes(b"<html>not found</html>")
    put(folder / unicodedata.normalize("NFD", "Zoë"))
    (folder / "dan").symlink_to(folder / "ok")
    (folder / "eve.zip").symlink_to("/etc/passwd")
    (folder / "gone").symlink_to("/no/such/file")
    os.mkfifo(folder / "fay.zip")
    zip_entry(folder / "gil.zip", "../../ok/ex1-block/rules.iptables")
    make_zip(folder / "hal.zip", {"a/ex1-block/r.nft": "", "b/ex1-block/r.nft": ""})
    make_zip(make_zip(folder / "ida" / "one.zip").parent / "two.zip")
    found = read()
    refused = {
        "Zoe": "Zoe\u0308 and Zo\u00eb are both of Zoe",
        "bob": "bob and bob.zip are both of bob",
        "cid": f"cid.7z: {UNPACKED}",
        "dan": "dan: a link, which is not read",
        "eve": "eve.zip: a link, which is not read",
        "fay": "fay.zip: no plain file, which is not read",
    }
    inside = {
        "gil": "../../ok/ex1-block/rules.iptables: a path that leads out of the archive",
        "hal": "exercises in several places: a and b",
        "html": "damaged archive: File is not a zip file",
        "ida": f"2 archives, {BELONGS}: one.zip, two.zip",
    }
    fine = dict.fromkeys(("ok", "11-12", "Ada-Example", "O-Neil", "student-reference"))
    assert found == fine | {who: UNREAD + why for who, why in (refused | inside).items()}
    others = ("Thumbs.db", "gone", "notes.pdf")
    assert [line.strip() for line in submissions.odd[0].splitlines()] == [
        f"{folder}: ignored, without effect on other students:",
        *(f"{name}: not read: neither a student's folder nor an archive" for name in others),
        *(f"{who}: {UNREAD}{why}" for who, why in refused.items()),
        "next: rename, unpack or remove these, and grade again with --resume",
    ]
    assert submissions.students["O-Neil"].name == "O'Neil"


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("rules.iptables", "; rules.iptables: outside the folder of an exercise, so not loaded"),
        ("ex9-another/rules.iptables", ""),
        ("work/rules.ipt", "; rules.ipt: outside the folder of an exercise, so not loaded"),
        ("EX1-Block/rules.iptables", "; there is EX1-Block: did you mean ex1-block?"),
        ("work/ex1_block/rules.iptables", "; there is ex1_block: did you mean ex1-block?"),
        ("ex1/rules.iptables", "; there is ex1: did you mean ex1-block?"),
        ("deep/work.7z", f"; work.7z: {UNPACKED}"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_in_place_of_an_exercise_is_named(folder: Path, read: Read, file: str, why: str, packed: bool) -> None:
    make_zip(folder / "ada.zip", {file: RULES}) if packed else put(folder / "ada", {file: RULES})
    assert read() == {"ada": f"nothing handed in: there is no ada/ex1-block{why}"}


def test_the_submitted_files_are_graded(
    setting: SimpleNamespace, folder: Path, works: Callable[[], list[Work]]
) -> None:
    put(folder / "ada", {RULESET: RULES, "ex1-block/notes.txt": "not read\n"})
    (folder / "bob/ex1-block/rules.nft").mkdir(parents=True)
    (folder / "cid.zip").write_bytes(b"PK")
    ada, bob, cid = works()
    put(folder / "ada", {RULESET: "changed\n"})
    shutil.rmtree(folder)
    assert ada.name == "ada/ex1-block"
    assert [(file.name, file.text) for file in ada.spec(setting).files] == [("rules.iptables", RULES)]
    known = {"sha256": hashlib.sha256(RULES.encode()).hexdigest(), "size": len(RULES)}
    assert as_recorded(ada.handed_in) == {"rules.iptables": known}
    assert as_recorded(bob.handed_in) == {"refused": "rules.nft: a ruleset is plain files, no links, no folders"}
    assert as_recorded(cid.handed_in) == {"refused": f"{UNREAD}damaged archive: File is not a zip file"}


@pytest.mark.parametrize("name", [".pytest.ini", "pytest.ini", "conftest.py", "pyproject.toml", ".pytest.toml"])
@pytest.mark.parametrize("packed", [False, True])
def test_file_that_pytest_could_run_is_refused(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, name: str, packed: bool
) -> None:
    files = {f"ada/{RULESET}": RULES, name: ""}
    given = make_zip(tmp_path / "class.zip", files) if packed else put(tmp_path / "class", files)
    with pytest.raises(BadInput) as refused:
        handed_in(setting, given, submissions)
    assert refused.value.message.startswith(f"{given / name}: pytest could take this file")


def test_links_are_not_followed_on_the_way_to_exercises(folder: Path, read: Read, tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere")
    (folder / "ada").mkdir()
    (folder / "ada" / "work").symlink_to(elsewhere)
    put(folder / "bob" / "deep")
    (folder / "bob" / "ex1-block").symlink_to(elsewhere / "ex1-block")
    assert read() == {"ada": "nothing handed in: there is no ada/ex1-block", "bob": "no folder ex1-block"}


def test_unknown_part(setting: SimpleNamespace) -> None:
    with pytest.raises(BadInput, match="(?m)^unknown part solution$"):
        own_work(setting, ["reference", "solution"])


# ---- what platforms and programs write -------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "_"])
def test_moodle(folder: Path, submissions: Submissions, read: Read, end: str) -> None:
    """Since Moodle 4.1 its folders have no underscore at their end. Who has no group is in one without a number."""
    for name in ("Zoë Müller-Weiß_101", "Participant_103", "Default group"):
        put(folder / f"{name}_assignsubmission_file{end}")
    make_zip(folder / f"Zoë Müller-Weiß_102_assignsubmission_file{end}" / "meine Lösung.zip")
    for name in ("a.nft", "b.nft"):
        (folder / f"李雷_104_assignsubmission_file_{name}").write_text("x")
    for name in ("Participant_103", "Bo Example_13"):
        put(folder / f"{name}_assignsubmission_onlinetext{end}", {"onlinetext.html": "<p>see the files"})
    found = read()
    assert found.pop("participant_104").startswith(f"{UNREAD}2 loose files, {BELONGS}: ")
    assert found == dict.fromkeys(("Default-group", "Participant_103", "Zoe-Muller-Weiss_101", "Zoe-Muller-Weiss_102"))
    assert submissions.students["Zoe-Muller-Weiss_101"].name == "Zoë Müller-Weiß"
    [told] = [line for line in submissions.odd[0].splitlines() if "online text" in line]
    online = f"Bo Example_13_assignsubmission_onlinetext{end}: not read: an online text"
    assert told == f"  {online}, and nothing else is of Bo-Example_13"


def test_canvas(folder: Path, submissions: Submissions, read: Read) -> None:
    """Files alone: each name begins with the student's."""
    for name in ("ada_101_9001_rules.iptables", "ada_101_9004_set.ipset", "cid_103_9005_report.pdf"):
        (folder / f"example{name}").write_text(RULES)
    make_zip(folder / "examplebob_LATE_102_9002_work.zip")
    make_zip(folder / "examplecid_103_9003_work-1.zip")
    (folder / "exampledan_104_9006_work.rar").write_bytes(b"x")
    (folder / "exampleeve_105_text.html").write_text("x")
    loose = "exampleada_101_9001_rules.iptables, exampleada_101_9004_set.ipset"
    assert read() == {
        "exampleada_101": f"{UNREAD}2 loose files, {BELONGS}: {loose}",
        "examplebob_102": None,
        "examplecid_103": None,
        "exampledan_104": f"{UNREAD}exampledan_104_9006_work.rar: {UNPACKED}",
    }
    assert submissions.students["examplebob_102"].name == "examplebob"
    assert "examplebob_102: handed in late, and the export does not say when" in submissions.odd[0]
    assert "exampleeve_105_text.html: not read: an online text" in submissions.odd[0]


def test_brightspace(folder: Path, submissions: Submissions, read: Read) -> None:
    twice = [f"7003-1 - Bo Example - Feb {when}" for when in ("10, 2026 131 AM", "11, 2026 905 PM")]
    for name in ("7001-1 - Ada Example - Sep 14, 2026 10:05 AM", *twice):
        put(folder / name)
    (folder / "index.html").write_text("<html>")
    both = f"{UNREAD}{' and '.join(twice)} are both of 7003-1-Bo-Example"
    assert read() == {"7001-1-Ada-Example": None, "7003-1-Bo-Example": both}
    assert "index.html: not read" in submissions.odd[0]


def test_archives_of_windows_and_macos(
    setting: SimpleNamespace, folder: Path, submissions: Submissions, works: Callable[[], list[Work]]
) -> None:
    """Backslashes in names, of folders too, names in code page 437, and what Explorer and the Finder leave."""
    files = {"LXsung\\": "", "LXsung\\ex1-block\\": "", "LXsung\\ex1-block\\rules.iptables": RULES}
    path = make_zip(folder / "ada.zip", {**files, "LXsung\\ex1-block\\Thumbs.db": "x", "desktop.ini": "x"})
    path.write_bytes(path.read_bytes().replace(b"LXsung", b"L\x94sung"))
    names = [".DS_Store", "__MACOSX/._work", "__MACOSX/work/ex1-block/._rules.iptables", "work/.DS_Store"]
    make_zip(folder / "bob.zip", {**dict.fromkeys(names, "x"), f"work/{RULESET}": RULES})
    make_tar(folder / "cid.tgz", {"._work": "x", "work/ex1-block/._rules.iptables": "x", f"work/{RULESET}": RULES})
    found = works()
    assert [file.text for work in found for file in work.spec(setting).files] == [RULES] * 3
    assert [work.spec(setting).remarks for work in found] == [
        ["Not loaded: Thumbs.db (no tool loads *.db)."],
        [],
        ["Not loaded: ._rules.iptables (hidden: it begins with a dot)."],
    ]
    assert submissions.odd == []


PEOPLE = """---
submission_101:
  :submitters:
  - :name: "Zoe\\u0308 Müller"
    :sid: '7'
  - :name: Bo Li
  :created_at: 2026-11-20 23:14:59.712382000 Z
  :score: 0.0
submission_102:
  :submitters: none of us
  :created_at: yesterday
submission_103: gone
submission_104: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
  :submitters: !ruby/array:Submitters
  - :name: Bo Example
    ? !ruby/sym sid
    : 7
  :created_at: !ruby/object:ActiveSupport::TimeWithZone
    utc: 2026-02-10 01:31:37.404413000 Z
    zone: &zone !ruby/object:ActiveSupport::TimeZone
      name: Etc/UTC
    time: 2026-02-10 02:31:37.404413000 Z
  :again: *zone
  :history: !!python/object/apply:os.system ["exit 1"]
"""


@pytest.mark.parametrize("packed", [False, True])
def test_gradescope(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, packed: bool) -> None:
    """Its metadata have Ruby's tags, and may lack anything."""
    files = {METADATA: PEOPLE, **{f"submission_{number}/work/{RULESET}": RULES for number in (101, 102, 103, 104)}}
    if packed:
        given = make_zip(tmp_path / "export.zip", {f"assignment_9_export/{name}": text for name, text in files.items()})
    else:
        given = put(tmp_path, {"desktop.ini": "", "README.txt": ""})
        put(tmp_path / "assignment_9_export", files)
    assert [unreadable(work, setting) for work in handed_in(setting, given, submissions)] == [None] * 4
    assert [(student.name, student.handed_in) for student in submissions.students.values()] == [
        ("Zo\u00eb Müller; Bo Li", datetime(2026, 11, 20, 23, 14, 59, 712382, tzinfo=UTC)),
        ("", None),
        ("", None),
        ("Bo Example", datetime(2026, 2, 10, 1, 31, 37, 404413, tzinfo=UTC)),
    ]


@pytest.mark.parametrize(("text", "what"), [("a: [", "not YAML"), ("- a", "not a mapping"), ("a: !!int b", "not YAML")])
def test_gradescope_metadata_that_cannot_be_read(folder: Path, read: Read, text: str, what: str) -> None:
    put(folder, {METADATA: text, f"submission_1/{RULESET}": RULES})
    with pytest.raises(BadInput, match=f"submission_metadata.yml.*{what}"):
        read()


def test_metadata_that_grows_when_it_is_read(folder: Path, submissions: Submissions, read: Read) -> None:
    """Aliases: each line is ten times as long as the one before."""
    lines = ["a0: &a0 lol"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    text = "\n".join([*lines, "submission_1:", "  :submitters: [{ ':name': *a11 }, { ':name': ada }]", ""])
    put(folder, {METADATA: text, f"submission_1/{RULESET}": RULES})
    assert read() == {"submission_1": None}
    assert submissions.students["submission_1"].name == "?; ada"


def test_an_export_that_cannot_be_read(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path) -> None:
    (tmp_path / "export.zip").write_bytes(b"PK")
    with pytest.raises(BadInput, match=r"export\.zip: damaged archive") as refused:
        handed_in(setting, tmp_path / "export.zip", submissions)
    assert refused.value.hint == "download it again; or unpack it, remove what is refused, and name the folder"


def test_a_class_of_one_is_no_export_whatever_it_hands_in(tmp_path: Path) -> None:
    """Otherwise one student's folders would become students, and their times would be believed."""
    put(tmp_path / "ann", {METADATA: PEOPLE, "submission_101/ex1-block/r.nft": "", "ex1-block/r.nft": ""})
    assert [student.id for student in students_in(tmp_path, tmp_path)] == ["ann"]
