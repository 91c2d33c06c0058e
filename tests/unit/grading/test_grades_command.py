# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a class are joined, and stored results are judged again. The gradings ran on fake machines."""

from __future__ import annotations

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fwlab.checkout.project import Project
from fwlab.cli.main import app
from fwlab.grading.class_files import write_merged
from fwlab.grading.course import Course
from fwlab.grading.record import FILE, Similar, content_of, merged, read_record
from fwlab.grading.verify import Verified, verify
from fwlab.model.errors import BadInput, CannotMeasure
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading

COMMIT = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A checkout, and two parts of a class that were graded in it. Tests copy what they change."""
    grading = FakeGrading(tmp_path_factory.mktemp("graded"))
    for who, word in {"ann": "fine", "bob": "leaks", "cid": "idle"}.items():
        grading.hand_in(who, "rules.iptables", f"# on the DUT: {word}\n{COMMIT}")
    grading.run("--results", str(grading.top / "one"), "--traffic-seed", "7", "-k", "ann or bob")
    grading.run("--results", str(grading.top / "two"), "--traffic-seed", "7", "-k", "cid")
    return grading.top, grading.top / "one", grading.top / "two"


@pytest.fixture
def checkout(graded: tuple[Path, Path, Path], tmp_path: Path) -> Path:
    return shutil.copytree(graded[0], tmp_path / "copy")


def edit(folder: Path, kind: str, *place: str | int, to: object) -> None:
    """Set what is at this place in the first entry of that kind."""
    path = folder / FILE
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    inside = next(entry for entry in entries if entry["entry"] == kind)
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = to
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


OUTCOME = ("checks", 0, "outcome")
OTHER_FILES = {"other.iptables": {"size": 1, "sha256": "0" * 64}}


def checked(top: Path, folder: str = "one") -> Verified:
    return verify(Project(top), top / folder)


def test_two_parts_are_joined(checkout: Path) -> None:
    found = write_merged([checkout / "one", checkout / "two"], checkout / "all", Course())
    assert list(found.students) == ["ann", "bob", "cid"]
    header, *rows = (checkout / "all" / "marks.csv").read_text().splitlines()
    assert header == "who,exercise,verdict,passed,checks,reason,mark"
    verdicts = {"ann": "pass", "bob": "fail", "cid": "inconclusive"}
    assert [row.split(",")[:3] for row in rows] == [[who, EXERCISE, verdict] for who, verdict in verdicts.items()]
    assert [row.rsplit(",", 1)[1] for row in rows] == ["core"] * 3
    assert (checkout / "all" / "students" / "cid" / "index.html").exists()
    assert checked(checkout, "all").judged == 3
    with pytest.raises(BadInput, match="holds a grading already"):
        write_merged([checkout / "one"], checkout / "all", Course())


def test_a_decided_result_replaces_an_open_one(checkout: Path) -> None:
    shutil.copytree(checkout / "two", checkout / "again")

    edit(checkout / "again", "work", *OUTCOME, to="pass")
    for folders in (("two", "again"), ("again", "two")):
        (work,) = merged([checkout / name for name in folders]).works.values()
        assert work.outcome == "pass"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([("work", *OUTCOME, "fail")], f"different results for ann/{EXERCISE}: pass and fail"),
        (
            [("student", "files", EXERCISE, OTHER_FILES), ("work", "content", content_of(OTHER_FILES))],
            f"different results for ann/{EXERCISE}: other files",
        ),
        ([("machines", "run", "dut", "kernel", "5.10")], "kernel: 6.1.0-dut and 5.10"),
        ([("machines", "run", "dut", "image", {"nftables": "0.9"})], "image: the DUT's packages differ"),
        ([("grading", "files", f"labs/{LAB}/lab.yml", "0" * 64)], f"labs/{LAB}/lab.yml is not the same"),
        (
            [("grading", "exercises", EXERCISE, "checks", "delivered-attacker", "between", [0, 5])],
            "the checks are not the same",
        ),
        ([("grading", "lab", "lab97-other")], f"{LAB} and lab97-other"),
        ([], "never measured anything"),
    ],
)
def test_parts_that_do_not_belong_together(checkout: Path, changes: list[tuple[Any, ...]], why: str) -> None:
    path = shutil.copytree(checkout / "one", checkout / "other") / FILE
    for kind, *place, value in changes:
        edit(checkout / "other", kind, *place, to=value)
    if not changes:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if '"entry":"machines"' not in line))
    with pytest.raises(BadInput, match=why):
        write_merged([checkout / "one", checkout / "other"], checkout / "all", Course())
    assert not (checkout / "all").exists()


def test_two_halves_of_a_lab_for_several_systems(checkout: Path) -> None:
    """Each decides the exercises of its own system; those of the other are inconclusive in it."""
    shutil.copytree(checkout / "one", checkout / "other")
    edit(checkout / "other", "machines", "run", "dut", "kernel", to="5.10")
    edit(checkout / "other", "machines", "run", "dut", "system", to="freebsd")
    edit(checkout / "other", "work", "checks", to=[])
    edit(checkout / "other", "work", "missing", to="measured on a DUT with linux")
    for folders in (("one", "other"), ("other", "one")):
        works = merged([checkout / name for name in folders]).works.values()
        assert [work.outcome for work in works] == ["pass", "fail"]


@pytest.mark.parametrize("text", ["{", "{\n", '{"entry": "student", "id": "../../out"}\n', ""])
def test_parts_that_are_damaged(checkout: Path, text: str) -> None:
    (checkout / "two" / FILE).write_text(text)
    with pytest.raises(BadInput, match=rf"{FILE}:1: not "):
        write_merged([checkout / "one", checkout / "two"], checkout / "all", Course())
    assert not (checkout / "all").exists()


def test_a_line_that_was_cut_off_is_left_out(checkout: Path) -> None:
    path = checkout / "one" / FILE
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"\n", 0, -1) + 20])
    record = read_record(checkout / "one")
    assert len(record.works) == 2
    assert record.similar == []
    record.add(Similar(pairs=[]))
    assert path.read_bytes() == data[: data.rindex(b"\n", 0, -1) + 1] + b'{"entry":"similar","pairs":[]}\n'


def test_a_full_disk_loses_no_line(checkout: Path) -> None:
    path, similar = checkout / "one" / FILE, b'{"entry":"similar","pairs":[]}\n'
    before, record = path.read_bytes(), read_record(checkout / "one")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(CannotMeasure, match=FILE):
            record.add(Similar(pairs=[]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before + similar[:10]
    record.add(Similar(pairs=[]))
    assert path.read_bytes() == before + similar + similar


def test_grades_go_back_into_the_tables_of_two_platforms(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = checkout / "one" / FILE
    path.write_text(path.read_text().replace('"ann"', '"ann_11"'))
    (checkout / "moodle.csv").write_text("Identifier,Grade,Last modified (grade)\nParticipant 11,,-\n")
    (checkout / "canvas.csv").write_text("Student,ID,Section,One (5)\n    Points Possible,,,100\nAnn,11,,\n")
    monkeypatch.chdir(checkout)
    done = CliRunner().invoke(app, ["grades", "moodle", "one", "moodle.csv", "--output", "out"])
    assert (done.exit_code, done.output.splitlines()[0]) == (0, "bob: no row in the table")
    assert "Participant 11,100,-," in (checkout / "out" / "worksheet.csv").read_text()
    assert (checkout / "out" / "feedback.zip").exists()
    done = CliRunner().invoke(
        app, ["grades", "canvas", "one", "canvas.csv", "--assignment", "One", "--output", "c.csv"]
    )
    assert (done.exit_code, done.output.splitlines()[-1]) == (0, "written: c.csv")
    assert (checkout / "c.csv").read_text().splitlines()[-1] == "Ann,11,,100"


# ---- fwlab verify ---------------------------------------------------------------------------------------------


def test_nothing_changed(checkout: Path) -> None:
    found = checked(checkout)
    assert (found.judged, found.changes, found.marks, found.faults) == (2, [], [], [])


def test_a_changed_limit_changes_a_mark(checkout: Path) -> None:
    lab = checkout / "labs" / LAB / "lab.yml"
    lab.write_text(lab.read_text().replace("between: [0, 0]", "between: [0, 1]"))
    found = checked(checkout)
    assert found.changes[0] == f"labs/{LAB}/lab.yml has changed since"
    assert f"{EXERCISE}: delivered-attacker: at least 0 and at most 0, now at least 0 and at most 1" in found.changes
    assert [(mark.student, mark.was, mark.now) for mark in found.marks] == [("bob", "fail", "pass")]


def test_a_changed_or_missing_measurement_is_noticed(checkout: Path) -> None:
    edit(checkout / "one", "work", "measured", "deliveries", 0, "arrived", "attacker", to=5)
    assert [(mark.student, mark.now) for mark in checked(checkout).marks] == [("ann", "fail")]
    edit(checkout / "one", "work", "measured", to=None)
    [fault] = checked(checkout).faults
    assert fault.startswith(f"ann/{EXERCISE}: pass: the record has no measurement")


@pytest.mark.parametrize("line", ["nonsense", '{"entry": "work"}', '{"entry": "else"}', "\0"])
def test_a_record_that_cannot_be_read(checkout: Path, line: str) -> None:
    path = checkout / "one" / FILE
    count = path.read_bytes().count(b"\n")
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadInput, match=rf"{FILE}:{count + 1}: not a record of a grading"):
        checked(checkout)


def test_an_empty_folder(tmp_path: Path, checkout: Path) -> None:
    with pytest.raises(BadInput, match=f"{FILE}: No such file"):
        verify(Project(checkout), tmp_path)
