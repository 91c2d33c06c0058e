# SPDX-License-Identifier: GPL-2.0-or-later
"""What other platforms read of a grading, read again by the rules that they document."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fwlab.grading.class_files import for_moodle
from fwlab.grading.course import Course, grade_class
from fwlab.grading.platforms import (
    canvas_gradebook,
    classroom_json,
    junit,
    moodle_feedback,
    moodle_worksheet,
    results_json,
    summary_md,
)
from fwlab.grading.record import CheckMark, ExerciseRecord, Grading, StudentRecord, WorkMark
from fwlab.grading.wording import csv_text, harmless
from fwlab.model.errors import BadInput

#: What a tool quotes of a stranger's file.
HOSTILE = '=HYPERLINK("http://x") </pre><script>alert(1)</script> ](http://x) | `a`\n::error::x\n\n# no heading'
EXERCISES = {name: ExerciseRecord(title=f"Title of {name}", checks={"c0": {}}) for name in ("ex1", "ex2")}


def mark(student: str, exercise: str, outcome: str, text: str = "said") -> WorkMark:
    check = CheckMark(check="c0", metric="capacity", outcome=outcome, text=text, value=1.0)
    return WorkMark(student=student, exercise=exercise, content="x", checks=[check])


def a_grading(**outcomes: tuple[str, str]) -> Grading:
    """By student, the outcomes of the two exercises. What is not passed quotes a file."""
    works = [
        mark(who, name, outcome, "said" if outcome == "pass" else HOSTILE)
        for who, both in outcomes.items()
        for name, outcome in zip(EXERCISES, both, strict=True)
    ]
    students = [StudentRecord(id=who, name="=cmd|' /C calc'!A0") for who in outcomes]
    return Grading(lab="lab03-ipset", title="Sets", exercises=EXERCISES, students=students, works=works)


GRADING = a_grading(Ada_11=("pass", "fail"), Bob_12=("pass", "inconclusive"), Cid_13=("pass", "pass"))
COURSE = Course(points=10)
GRADES = grade_class(GRADING, COURSE)


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def no_formula(text: str) -> bool:
    """Whether no cell begins like a formula; a sign before a number is none, and a dash alone stands for nothing."""
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    return not [cell for cell in cells if re.match(r"[=+@\t\r＝＋－＠]|-.", cell)]


# ---- of one student -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "status", "score", "statuses"),
    [(0, "fail", 5, ["pass", "fail"]), (1, "error", 5, ["pass", "error"]), (2, "pass", 10, ["pass", "pass"])],
)
def test_classrooms_reporter_adds_up_the_points(place: int, status: str, score: float, statuses: list[str]) -> None:
    found = json.loads(classroom_json(GRADING, COURSE, GRADES[place]))
    assert (found["version"], found["status"], found["max_score"]) == (1, status, 10)
    assert [test["status"] for test in found["tests"]] == statuses
    assert sum(test["score"] for test in found["tests"]) == score
    assert sum(test["max_score"] for test in found["tests"]) == 10
    lines = [line for test in found["tests"] for line in test["message"].splitlines()]
    assert lines
    assert all(line.startswith("c0: ") for line in lines), "a line of its own could be a command to the runner"


def test_gradescope_gets_a_score_even_while_something_is_open() -> None:
    done, open_ = (json.loads(results_json(GRADING, COURSE, GRADES[place])) for place in (0, 1))
    assert (done["score"], [test["score"] for test in done["tests"]]) == (5, [5, 0])
    assert open_["score"] == 5
    assert "score" not in open_["tests"][1]
    assert "Not decided yet: ex2" in open_["output"]


def test_a_summary_shows_what_a_file_says_and_nothing_of_it_is_markup() -> None:
    text = summary_md(GRADING, COURSE, GRADES[0])
    assert "**5 of 10 points**" in text
    assert "| ex1: Title of ex1 | pass | 1 of 1 |" in text
    assert "| ex2: Title of ex2 | fail | 0 of 1 |" in text
    (quoted,) = re.findall(r"^<pre>(.*?)</pre>$", text, re.MULTILINE | re.DOTALL)
    assert "<" not in quoted
    assert "\n\n" not in quoted, "an empty line would end the block"
    assert html.unescape(quoted).startswith('c0: fail: =HYPERLINK("http://x") </pre><script>')
    rest = text.replace(quoted, "")
    assert not [word for word in ("script", "http://x", "no heading", "::error") if word in rest]


def test_what_was_not_loaded_is_said_once() -> None:
    text = "not loaded: nothing handed in"
    checks = [CheckMark(check=f"c{n}", metric="capacity", outcome="fail", text=text) for n in range(3)]
    work = WorkMark(student="Ada_11", exercise="ex1", content="x", checks=checks)
    grading = GRADING.model_copy(update={"works": [work]})
    (grade, *_) = grade_class(grading, COURSE)
    assert summary_md(grading, COURSE, grade).count(text) == 1
    assert json.loads(results_json(grading, COURSE, grade))["tests"][0]["output"] == text


def test_gitlab_reads_a_test_for_each_check() -> None:
    suites = ElementTree.fromstring(junit(GRADING))
    cases = {(case.get("classname"), case.get("name")): case for case in suites.iter("testcase")}
    assert len(cases) == 6, "of two of one name only the first is shown"
    assert suites.find("testsuite").attrib == {"name": "lab03-ipset", "tests": "6", "failures": "1", "skipped": "1"}
    assert cases["Ada_11.ex2", "c0"].find("failure").get("message").startswith("=HYPERLINK")
    assert cases["Bob_12.ex2", "c0"].find("skipped") is not None


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r\n=1", " =1", "＝1", "＋1", "－1", "＠A"]
)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    assert no_formula(csv_text(["a"], [[harmless(text)]]))
    assert harmless("a=1") == "a=1"


# ---- Moodle ---------------------------------------------------------------------------------------------------

WORKSHEET = """Identifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,Last modified (grade)
Participant 12,=1+1,b@example.org,x,,10.00,Yes,-
Participant 11,"Ada, L.",a@example.org,x,,10.00,Yes,"Friday, 15 January 2027, 6:00 PM"
Participant 99,Eve,e@example.org,x,,10.00,Yes,-
"""


def moodle_reads(text: str) -> dict[int, tuple[str, str, str]]:
    """As assignfeedback_offline_grade_importer does: by participant, grade, time and comment."""
    found = {}
    for row in table(text):
        number = int(row["Identifier"][len("Participant ") :])
        found[number] = (row["Grade"], row["Last modified (grade)"], row["Feedback comments"])
    return found


def test_moodles_worksheet_is_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "worksheet.csv"
    path.write_text("\ufeff" + WORKSHEET)
    filled = moodle_worksheet(GRADING, COURSE, GRADES, path)
    found = moodle_reads(filled.text)
    assert {number: row[:2] for number, row in found.items()} == {
        12: ("", "-"),
        11: ("5", "Friday, 15 January 2027, 6:00 PM"),
    }
    assert "<script" not in filled.text
    assert "Title of ex1: pass<br>Title of ex2: fail: =HYPERLINK(&quot;" in found[11][2]
    assert no_formula(filled.text)
    assert filled.notes == ["Cid_13: no row in the table", "Bob_12: the grade is open (ex2)"]


def test_moodles_feedback_files_belong_to_their_students() -> None:
    grades = grade_class(a_grading(**{"A_B-_11": ("pass", "pass"), "no-number": ("pass", "pass")}), COURSE)
    packed = moodle_feedback(grades, lambda grade: f"<p>{grade.student.id}</p>")
    assert packed == moodle_feedback(grades, lambda grade: f"<p>{grade.student.id}</p>")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        (name,) = archive.namelist()
        assert archive.read(name) == b"<p>A_B-_11</p>"
    parts = name.split("/")[0].split("_", 4)  # as is_valid_filename_for_import does
    assert (parts[1:], name.split("/")[1:]) == (["11", "assignfeedback", "file"], ["feedback.html"])


def test_both_are_written_for_moodle(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(WORKSHEET)
    assert len(for_moodle(GRADING, COURSE, tmp_path / "in.csv", tmp_path / "out")) == 2
    assert moodle_reads((tmp_path / "out" / "worksheet.csv").read_text())[11][0] == "5"
    with zipfile.ZipFile(tmp_path / "out" / "feedback.zip") as archive:
        page = archive.read("Ada_11_assignfeedback_file/feedback.html").decode()
        assert len(archive.namelist()) == 3
    assert "Title of ex2" in page
    assert "<script>alert" not in page


# ---- Canvas ---------------------------------------------------------------------------------------------------

GRADEBOOK = """Student,ID,SIS User ID,SIS Login ID,Section,Sets (4711),Other (4712),Final Score
,,,,,Manual Posting,,
    Points Possible,,,,,10.00,5.00,(read only)
"Lovelace, Ada",11,s11,ada,One,,3,40
=cmd(),12,-s12,@bob,One,,4,50
Points Possible,13,s13,cid,One,7,4,50
"""


def canvas_reads(text: str) -> dict[str, str]:
    """As GradebookImporter does: by ID, the grade. A row with `Points Possible` is no student's."""
    header, *rows = csv.reader(io.StringIO(text))
    assert "Student" in header[0]
    assert "ID" in header[1]
    assert header[2:5] == ["SIS User ID", "SIS Login ID", "Section"]
    (column,) = range(5, len(header))
    assert re.fullmatch(r"Sets \(4711\)", header[column])
    assert [row[column] for row in rows if "Points Possible" in row[0]] == ["10.00"]
    return {row[1]: row[column] for row in rows if "Points Possible" not in row[0]}


@pytest.mark.parametrize("assignment", ["Sets", "4711", "Sets (4711)"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_canvas_gradebook_has_the_grades_of_one_assignment(tmp_path: Path, assignment: str, delimiter: str) -> None:
    path = tmp_path / "gradebook.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(csv.reader(io.StringIO(GRADEBOOK)))
    filled = canvas_gradebook(COURSE, GRADES, path, assignment)
    assert canvas_reads(filled.text) == {"11": "5", "13": "10"}
    assert filled.notes == ["Bob_12: the grade is open (ex2)"]
    done = grade_class(a_grading(Bob_12=("pass", "fail")), COURSE)
    assert no_formula(canvas_gradebook(COURSE, done, path, assignment).text)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda text: text.replace("Identifier", "ID-Nummer"), "there is no column Identifier; there are: ID-Nummer, "),
        (lambda text: text.replace("Status", "Grade"), "several columns are called Grade"),
        (lambda text: text.replace("10.00", "20.00"), "the assignment has 20.00 points, the course 10"),
        (lambda _: "", "it is empty"),
        (lambda _: 'a,"b', "cannot be read: unexpected end of data"),
        (lambda _: "a," + "b" * (1 << 18), "cannot be read: field larger than field limit"),
    ],
)
def test_tables_that_cannot_be_filled_in(tmp_path: Path, change: Any, fault: str) -> None:
    path = tmp_path / "worksheet.csv"
    path.write_text(change(WORKSHEET))
    with pytest.raises(BadInput) as refused:
        moodle_worksheet(GRADING, COURSE, GRADES, path)
    assert fault in refused.value.message


def test_a_class_of_another_platform_is_refused(tmp_path: Path) -> None:
    (tmp_path / "worksheet.csv").write_text(WORKSHEET)
    grading = a_grading(ada=("pass", "pass"))
    with pytest.raises(BadInput, match="no student of this grading has a number"):
        moodle_worksheet(grading, COURSE, grade_class(grading, COURSE), tmp_path / "worksheet.csv")
