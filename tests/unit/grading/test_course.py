# SPDX-License-Identifier: GPL-2.0-or-later
"""Grades from verdicts and course.yml."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from fwlab.checkout.project import Project, find_project, is_measured, lab_ids
from fwlab.grading.class_files import (
    boards,
    class_page,
    distribution,
    grades_csv,
    outcomes,
    student_page,
    totals_csv,
    typical_failures,
)
from fwlab.grading.course import Course, Grade, grade_class, read_course, reject_unknown
from fwlab.grading.record import CheckMark, ExerciseRecord, Grading, StudentRecord, WorkMark
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput
from tests import ROOT
from tests.fakes.factories import a_lab

LAB = "lab99-made-up"
DEADLINE = datetime(2027, 1, 15, 18, tzinfo=UTC)


def mark(student: str, exercise: str, *outcomes: str, **fields: Any) -> WorkMark:
    checks = [
        CheckMark(check=f"c{n}", metric="capacity", outcome=o, text=f"said {o}", value=1.0)
        for n, o in enumerate(outcomes)
    ]
    return WorkMark(student=student, exercise=exercise, content="x", checks=checks, **fields)


def a_grading(*works: WorkMark, lab: str = LAB, handed_in: datetime | None = None) -> Grading:
    exercises = {work.exercise: ExerciseRecord(title=work.exercise, checks={"c0": {}, "c1": {}}) for work in works}
    students = [StudentRecord(id=who, handed_in=handed_in) for who in dict.fromkeys(work.student for work in works)]
    known = {"title": "t", "commit": "c"}
    return Grading(lab=lab, exercises=exercises, students=students, works=list(works), **known)


def a_course(**fields: Any) -> Course:
    return Course.model_validate(fields)


def only(grading: Grading, course: Course) -> Grade:
    (grade,) = grade_class(grading, course)
    return grade


PASS_FAIL = (("ex1", "pass"), ("ex2", "fail"))
PARTLY = (("ex1", "pass", "fail"), ("ex2", "pass", "pass"))


@pytest.mark.parametrize(
    ("works", "further", "course", "points"),
    [
        (PASS_FAIL, "", {}, 50),
        (PASS_FAIL, "", {"points": 20, "labs": {LAB: {"exercises": {"ex1": 3}}}}, 15),
        (PASS_FAIL, "", {"labs": {LAB: {"exercises": {"ex2": 0}}}}, 100),
        (PASS_FAIL, "ex2", {}, 100),  # a further exercise weighs nothing unless the course says so
        (PASS_FAIL, "ex2", {"labs": {LAB: {"exercises": {"ex2": 1}}}}, 50),
        (PARTLY, "", {}, 50),
        (PARTLY, "", {"partial": 0.5}, 62.5),  # only an exercise that fails has a partial mark
        (PARTLY, "", {"partial": 1, "labs": {LAB: {"checks": {"ex1": {"c0": 0}}}}}, 50),
        (PARTLY, "", {"partial": 1, "labs": {LAB: {"checks": {"ex1": {"c0": 0, "c1": 0}}}}}, 50),
    ],
)
def test_weights(works: tuple[tuple[str, ...], ...], further: str, course: dict[str, Any], points: float) -> None:
    grading = a_grading(*(mark("ann", *work) for work in works))
    exercises = {name: one.model_copy(update={"further": name == further}) for name, one in grading.exercises.items()}
    assert only(grading.model_copy(update={"exercises": exercises}), a_course(**course)).points == points


def test_each_mark_on_the_page_of_a_class_stands_under_its_exercise() -> None:
    grading = a_grading(mark("ann", "ex1", "pass"), mark("bob", "ex2", "fail"), mark("ann", "ex3", "fail"))
    page = class_page(grading, a_course(), grade_class(grading, a_course()), [])
    students = [row for row in page.split("<tr>") if 'class="name"><a' in row]
    rows = [re.findall(r'<td class="(pass|fail|open)">|<td></td>', row) for row in students]
    assert rows == [["pass", "", "fail"], ["", "fail", ""]]


@pytest.mark.parametrize(
    ("outcomes", "weights", "share"),
    [
        (("pass", "pass", "fail", "fail"), {}, 0),  # as the start: a comment, a counter
        (("pass", "pass", "pass", "fail"), {}, 0.5),
        (("pass", "pass", "pass", "fail"), {"c3": 3}, 0.25),
        (("pass", "fail", "pass", "fail"), {}, 0),  # what it gains it breaks elsewhere
        (("fail", "fail", "pass", "pass"), {}, 0),  # drop everything
        (("pass", "fail", "pass", "pass"), {}, 0.5),
    ],
)
def test_a_partial_mark_is_a_share_of_the_way_from_the_start(
    outcomes: tuple[str, ...], weights: dict[str, float], share: float
) -> None:
    grading = a_grading(mark("ann", "ex1", *outcomes)).model_copy(update={"start_passes": {"ex1": ["c0", "c1"]}})
    course = a_course(partial=0.8, labs={LAB: {"checks": {"ex1": weights}}})
    assert only(grading, course).points == pytest.approx(80 * share)


def test_every_start_was_measured_and_fails() -> None:
    project = find_project(ROOT)
    for name in lab_ids(project):
        lab = load_lab(project, name).whole
        passed = lab.ranges.starts
        assert set(passed) == {exercise.id for exercise in lab.exercises if is_measured(project, name)}, name
        for exercise in lab.exercises:
            assert set(passed.get(exercise.id, [])) < {check.id for check in exercise.checks}


def test_what_is_open_leaves_the_grade_open_and_doing_nothing_gives_nothing() -> None:
    inconclusive = mark("ann", "ex1", "pass", "inconclusive")
    untouched = mark("ann", "ex1", "pass", "fail", untouched=True)  # it passes what doing nothing passes
    assert only(a_grading(untouched), a_course(partial=0.5)).points == 0
    for work in (inconclusive, mark("ann", "ex1"), mark("ann", "ex1", missing="the DUT died")):
        grade = only(a_grading(work, mark("ann", "ex2", "pass")), a_course(partial=1))
        assert (grade.points, grade.open) == (None, ["ex1"])
        ignored = a_course(labs={LAB: {"exercises": {"ex1": 0}}})
        assert only(a_grading(work, mark("ann", "ex2", "pass")), ignored).points == 100
    assert only(a_grading(mark("ann", "ex1", "fail", "inconclusive")), a_course()).points == 0


@pytest.mark.parametrize(
    ("after", "days", "deducted"),
    [
        (timedelta(days=-3), 0, 0),
        (timedelta(minutes=10), 0, 0),
        (timedelta(minutes=11), 1, 0.1),
        (timedelta(days=1, minutes=10), 1, 0.1),
        (timedelta(days=1, minutes=10, seconds=1), 2, 0.2),
        (timedelta(days=6), 6, 0.5),
        (timedelta(days=8), 8, 1),
    ],
)
def test_late(after: timedelta, days: int, deducted: float) -> None:
    course = a_course(
        late={"grace_minutes": 10, "per_day": 0.1, "at_most": 0.5, "days": 7}, labs={LAB: {"deadline": DEADLINE}}
    )
    grade = only(a_grading(mark("ann", "ex1", "pass"), handed_in=DEADLINE + after), course)
    assert grade.days_late == days
    assert grade.deducted == pytest.approx(deducted)
    assert grade.points == pytest.approx(100 * (1 - deducted))


def test_times_that_only_the_instructor_knows() -> None:
    late, lab = {"per_day": 0.25}, {"deadline": DEADLINE}
    grading = a_grading(mark("ann", "ex1", "pass"))
    unknown = a_course(late=late, labs={LAB: lab})
    assert (only(grading, unknown).days_late, only(grading, unknown).points) == (None, 100)
    assert ",unknown,0,100," in grades_csv(grading, unknown)
    told = a_course(late=late, labs={LAB: lab | {"handed_in": {"ann": DEADLINE + timedelta(hours=1)}}})
    assert only(grading, told).points == 75
    extended = {"ann": DEADLINE + timedelta(days=1)}
    longer = a_course(late=late, labs={LAB: lab | {"handed_in": told.lab(LAB).handed_in, "extensions": extended}})
    assert only(grading, longer).points == 100


def test_a_name_in_a_table_is_no_formula() -> None:
    student = StudentRecord(id="ann", name="=cmd()")
    grading = a_grading(mark("ann", "ex1", "pass")).model_copy(update={"students": [student]})
    assert "ann,'=cmd(),1,0,0,100," in grades_csv(grading, a_course())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("labs: { lab03-ipset: { deadline: 2027-01-15T18:00:00 } }", "labs.lab03-ipset.deadline: "),
        ("labs: { lab97-typo: { weight: 2 } }", "labs: there is no lab lab97-typo; there are: "),
        ("points: [", "not YAML"),
    ],
)
def test_faults_name_the_file_and_the_field(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "course.yml"
    path.write_text(text + "\n")
    with pytest.raises(BadInput) as refused:
        read_course(Project(tmp_path), path)
    assert refused.value.message.startswith("course.yml")
    assert fault in refused.value.message


@pytest.mark.parametrize(
    ("lab", "fault"),
    [
        ({"exercises": {"ex9": 1}}, "labs.lab99-made-up.exercises: no exercise ex9; there are: ex1-block"),
        ({"checks": {"ex1-block": {"speed": 1}}}, "no check speed; there are: capacity, delivered-attacker"),
        ({"exercises": {"ex1-block": 0}}, "every weight is 0"),
    ],
)
def test_names_that_the_lab_does_not_have(lab: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadInput, match=fault):
        reject_unknown(a_course(labs={LAB: lab}), a_lab(), "course.yml")


def test_the_total_of_a_course() -> None:
    one = a_grading(mark("ann", "ex1", "pass"), mark("bob", "ex1", "fail"))
    two = a_grading(mark("ann", "ex1", "pass"), mark("cid", "ex1", "pass", "inconclusive"), lab="lab98-other")
    course = a_course(labs={LAB: {"weight": 3}})
    assert totals_csv([one, two], course).splitlines() == [
        "student,lab99-made-up,lab98-other,total",
        "ann,100,100,100",
        "bob,0,0,0",
        "cid,0,,",
    ]
    with pytest.raises(BadInput, match="lab99-made-up appears twice"):
        totals_csv([one, one], course)
    with pytest.raises(BadInput, match="every lab has weight 0"):
        totals_csv([one], a_course(labs={LAB: {"weight": 0}}))


def refused(student: str, text: str) -> WorkMark:
    checks = [CheckMark(check=f"c{n}", metric="m", outcome="fail", text=text) for n in range(2)]
    return WorkMark(student=student, exercise="ex1", content="x", checks=checks)


def test_the_overview_of_a_class() -> None:
    works = [
        mark("ann", "ex1", "pass", "pass"),
        mark("bob", "ex1", "pass", "fail"),
        mark("cid", "ex1", "fail", "fail"),
        refused("dan", "not loaded: line 3 failed"),
        refused("fay", "not loaded: nothing handed in: there is no fay/ex1"),
    ]
    grading = a_grading(*works, mark("eve", "ex1"))
    assert outcomes(grading) == {"ex1": {"pass": 1, "fail": 4, "inconclusive": 0, "open": 1}}
    found = [(failure.check, failure.students) for failure in typical_failures(grading)]
    assert found == [
        ("c1", ("bob", "cid")),
        ("c0", ("cid",)),
        ("not loaded", ("dan",)),
        ("nothing handed in", ("fay",)),
    ]
    grades = grade_class(grading, a_course())
    page = student_page(grading, a_course(), next(one for one in grades if one.student.id == "dan"))
    assert page.count("line 3 failed") == 1, "it is no fault of each check"
    bars = distribution(a_course(), grades)
    assert [bar.count for bar in bars] == [4, 0, 0, 0, 0, 0, 0, 0, 0, 1]


def test_the_board_has_every_price_of_a_ruleset_that_behaves_and_no_name() -> None:
    def priced(who: str, same: str, price: float, cheap: str = "pass") -> WorkMark:
        checks = [
            CheckMark(check="differences", metric="differences", outcome=same, text="t", value=0.0),
            CheckMark(check="price", metric="price", outcome=cheap, text="t", value=price),
        ]
        return WorkMark(student=who, exercise="ex1", content="x", checks=checks)

    works = [priced("ann", "pass", 15020), priced("bob", "fail", 9000), priced("cid", "pass", 15005.5)]
    grading = a_grading(*works, priced("dan", "pass", 27000, "fail"), mark("eve", "ex2", "pass"))
    assert boards(grading) == {"ex1": [15005.5, 15020, 27000]}
    page = class_page(grading, a_course(), grade_class(grading, a_course()), [])
    board = page.split("<h2>Board</h2>")[1].split("</section>")[0]
    assert "0.10 %" in board
    assert not [who for who in ("ann", "bob", "cid", "dan") if who in board]


def test_the_example_of_the_guide() -> None:
    """It is a valid course.yml, and names what lab03 has."""
    project = find_project(ROOT)
    guide = (project.root / "guides" / "instructor.md").read_text()
    text = guide.split("```text\ntitle:", 1)[1].split("```", 1)[0]
    course = Course.model_validate(yaml.safe_load("title:" + text))
    lab = load_lab(project, "lab03-ipset")
    reject_unknown(course, lab, "course.yml")
    assert lab.id in course.labs
