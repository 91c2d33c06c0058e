# SPDX-License-Identifier: GPL-2.0-or-later
"""A class in the browser: a record is followed while it grows, and a name or a text of a student is no markup."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fwlab.grading.course import Course
from fwlab.grading.record import FILE, Begun, CheckMark, ExerciseRecord, Record, StudentRecord, WorkMark, content_of
from fwlab.model.errors import BadInput
from fwlab.web.instructor import Classroom
from tests.fakes.student_checkout import LAB
from tests.unit.web.conftest import visit

SCRIPT = "<script>alert(1)</script>"


def work(student: str, **fields: object) -> WorkMark:
    return WorkMark(student=student, exercise="ex1", content=content_of({}), **fields)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Of two students, one is graded."""
    begun = Begun(
        lab=LAB, title="t", fwlab="1", seed=1, files={}, exercises={"ex1": ExerciseRecord(title="ex1", checks={})}
    )
    found = Record(begun, tmp_path / FILE)
    found.begin()
    students = [StudentRecord(id=who, name=SCRIPT, files={"ex1": {}}) for who in ("ann", "bob")]
    check = CheckMark(check="c", metric="capacity", outcome="fail", text=f"too slow {SCRIPT}", value=1.0)
    found.add(*students, work("ann", checks=[check]))
    return found


def test_a_grading_is_followed_while_it_runs(tmp_path: Path, record: Record) -> None:
    classroom = Classroom(tmp_path, Course())
    assert [one.outcome for one in classroom.record().grading().works] == ["fail", None]
    kept = classroom.record()
    with record.path.open("ab") as file:
        file.write(b'{"entry": "work", "cut')
    assert classroom.record() is kept
    record.add(work("bob", missing="the DUT died"))
    assert [one.outcome for one in classroom.record().grading().works] == ["fail", "inconclusive"]
    record.begin()  # another grading in the same folder
    assert classroom.record().students == {}


def test_the_pages_of_a_class(checkout: Path, tmp_path: Path, record: Record) -> None:
    (tmp_path / "marks.csv").write_text("student,exercise\n")

    async def walk() -> None:
        async with visit(checkout, classroom=Classroom(tmp_path, Course())) as (user, _):
            await user.open("/class")
            await user.should_see("1 of 2 submissions are graded, of 2 students")
            record.add(work("bob", missing="the DUT died"))
            await user.should_see("the DUT died", retries=100)
            for path, words in (
                ("overview", "too slow"),
                ("students/ann/index.html", "too slow"),
                ("marks.csv", "student,"),
            ):
                answer = await user.http_client.get(f"/class/{path}")
                assert words in answer.text
                assert SCRIPT not in answer.text
                assert answer.headers["content-security-policy"].startswith("default-src 'none'")
            for path in ("students/eve/index.html", "grades.csv", FILE):
                assert (await user.http_client.get(f"/class/{path}")).status_code == 404

    asyncio.run(walk())


def test_without_a_grading_it_says_which_command_makes_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        Classroom(tmp_path / "none", Course()).record()
    assert "fwlab grade" in refused.value.hint
