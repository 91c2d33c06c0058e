# SPDX-License-Identifier: GPL-2.0-or-later
"""Individual tasks: numbers drawn by a keyed hash, and a lab in which traffic, classes and limits follow them."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fwlab.checkout.project import Project, load_topology
from fwlab.cli.grades import roster
from fwlab.cli.main import app
from fwlab.generator.traffic_store import TrafficStore
from fwlab.grading.record import read_record
from fwlab.measure.individual_tasks import FORMAT, draw, individual_lab, of_students, read_tasks
from fwlab.measure.labs import load_lab
from fwlab.measure.measurer import Measurer
from fwlab.metrics.measurement import Nodes
from fwlab.model.errors import BadInput, FwlabError
from fwlab.model.lab import Exercise, Lab
from fwlab.rulesets.files import rendered
from fwlab.traffic.classes import OTHER
from tests.checkout import LAB_IDS, PROJECT, TOPOLOGY, lab_named
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading

SECRET = "nobody can guess these words"
DECLARED = """
drawn:
  attacker:
    of: student
    from: 2
    to: 20
    step: 2
    adds_to: [classes.attacker.src, traffic.flood.tunables.target]
  budget:
    of: student
    from: -1
    to: 1
    adds_to: [exercises.ex1-block.checks.0.between.1]
"""


@pytest.fixture
def grading(tmp_path: Path) -> FakeGrading:
    made = FakeGrading(tmp_path)
    path = made.top / "labs" / LAB / "lab.yml"
    text = path.read_text().replace("profile: profile.py", "profile: profile.py, tunables: { target: 198.19.0.9 }")
    text = text.replace("between: [0, 0]", "between: [0, 1]").replace(
        "traffic: flood\n    predict", "traffic: own\n    predict"
    )
    text = text.replace("  flood: {", "  own: { profile: profile.py, tunables: { target: 198.19.0.9 } }\n  flood: {")
    path.write_text(text + DECLARED.replace("traffic.flood", "traffic.own"))
    return made


def of_page(grading: FakeGrading) -> Lab:
    return load_lab(Project(grading.top), LAB)


def with_numbers(grading: FakeGrading, **numbers: int) -> Lab:
    return individual_lab(Project(grading.top), of_page(grading), numbers)


# ---- drawing --------------------------------------------------------------------------------------------------


def test_numbers_depend_on_secret_lab_and_student(grading: FakeGrading) -> None:
    lab = of_page(grading)
    assert draw(SECRET, lab, "ann") == draw(SECRET, lab, "ann")
    assert any(draw(SECRET, lab, f"s{n}") != draw(SECRET + "!", lab, f"s{n}") for n in range(5))
    drawn = [draw(SECRET, lab, f"s{n}")["attacker"] for n in range(2000)]
    assert set(drawn) == set(range(2, 21, 2))
    assert max(map(drawn.count, set(drawn))) < 1.5 * min(map(drawn.count, set(drawn)))


def test_places_move_together(grading: FakeGrading) -> None:
    lab = of_page(grading)
    own = with_numbers(grading, attacker=4, budget=-1)
    assert own.classes["attacker"].src == "198.18.20.70/32"
    assert own.traffic["own"].tunables["target"] == "198.19.0.13"
    assert own.exercises[0].checks[0].between == (0, 0)
    assert own.cases == lab.cases
    assert lab.classes["attacker"].src == "198.18.20.66/32"


@pytest.mark.parametrize("numbers", [{"attacker": 3}, {"attacker": 22}, {"other": 2}])
def test_numbers_that_cannot_be_drawn(grading: FakeGrading, numbers: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="is not valid for this task"):
        with_numbers(grading, **numbers)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("traffic.own.tunables.target", "traffic.own.tunables.none", "there is no traffic.own.tunables.none"),
        ("traffic.own.tunables.target", "title", "drawn.attacker.adds_to.1: title does not have the form"),
        ("traffic.own.tunables.target", "exercises.ex1-block.title", "a number cannot be added to "),
        ("traffic.own.tunables.target", "traffic.flood.tunables.target", "it changes the case raw-drop"),
        ("to: 20", "to: 2", "from 2 to 2 there is nothing to draw"),
        ("from: -1", "from: -5", "between"),
    ],
)
def test_declarations_that_cannot_work(grading: FakeGrading, old: str, new: str, fault: str) -> None:
    path = grading.top / "labs" / LAB / "lab.yml"
    path.write_text(path.read_text().replace(old, new))

    with pytest.raises(BadInput, match=re.escape(fault)):
        with_numbers(grading, attacker=4, budget=of_page(grading).drawn["budget"].low)


# ---- the labs -------------------------------------------------------------------------------------------------

PACKETS = 20_000
INDIVIDUAL = [lab for lab in (lab_named(name) for name in LAB_IDS) if of_students(lab)]


def reference(lab: Lab, exercise: Exercise) -> Iterator[tuple[str, str]]:
    return rendered(lab.folder / "rulesets" / exercise.id / "reference", exercise.parameters, TOPOLOGY)


@pytest.mark.parametrize("lab", INDIVIDUAL, ids=lambda lab: lab.id)
def test_a_lab_with_extreme_numbers(lab: Lab) -> None:
    """Every packet still belongs to a class, references differ from those of the page, and all files render."""
    page, on_page = TrafficStore(PROJECT, TOPOLOGY, lab, first=PACKETS), dict[str, list[tuple[str, str]]]()
    for end in (0, -1):
        own = individual_lab(PROJECT, lab, {name: drawn.values[end] for name, drawn in of_students(lab).items()})
        store = TrafficStore(PROJECT, TOPOLOGY, own, first=PACKETS)
        for exercise, before in zip(own.exercises, lab.exercises, strict=True):
            offered = store.offered(exercise.traffic, PACKETS)
            assert (offered, offered[OTHER]) == (page.offered(before.traffic, PACKETS), 0)
            if exercise.parameters != before.parameters:
                on_page.setdefault(before.id, list(reference(lab, before)))
                assert list(reference(lab, exercise)) != on_page[before.id] or end == 0


# ---- a class --------------------------------------------------------------------------------------------------


def test_a_class_is_graded_by_individual_labs(grading: FakeGrading) -> None:
    for who in ("ann", "bob"):
        grading.hand_in(who, "rules.iptables", "*raw\nCOMMIT\n")
    course = grading.top / "course.yml"
    course.write_text(f"secret: {SECRET}\nstudents: {{ bob: '4711' }}\n")
    assert grading.run("--course", str(course)).returncode == 0
    record = read_record(grading.results)
    lab = of_page(grading)
    assert {name: one.individual for name, one in record.students.items()} == {
        "ann": draw(SECRET, lab, "ann"),
        "bob": draw(SECRET, lab, "4711"),
    }
    limits = {who: work.checks[0].high for (who, _), work in record.works.items()}
    assert limits == {who: 1 + record.students[who].individual["budget"] for who in limits}
    assert SECRET not in (grading.results / "record.jsonl").read_text()
    course.write_text(f"secret: another {SECRET}\n")
    assert "measured: " in grading.run("-s", "--course", str(course), "--resume").stdout


def test_a_class_is_graded_by_a_task_file_as_by_the_secret(grading: FakeGrading) -> None:
    """In a student's repository there is no secret. Who is not in the file has the page's task."""
    for who in ("ann", "bob", "cid"):
        grading.hand_in(who, "rules.iptables", "*raw\nCOMMIT\n")
    lab, tasks, course = of_page(grading), grading.top / "tasks.yml", grading.top / "course.yml"
    drawn = {name: draw(SECRET, lab, name) for name in ("ann", "4711")}
    tasks.write_text(yaml.safe_dump({"format": FORMAT, "tasks": {LAB: drawn}}))
    course.write_text("students: { bob: '4711' }\n")
    done = grading.run("-s", "--tasks", str(tasks), "--course", str(course))
    assert "cid: tasks.yml has no numbers for this name" in done.stderr
    students = read_record(grading.results).students
    assert [students[who].individual for who in ("ann", "bob", "cid")] == [drawn["ann"], drawn["4711"], {}]
    course.write_text(f"secret: {SECRET}\n")
    assert "has a secret, which draws the tasks" in grading.run("--tasks", str(tasks), "--course", str(course)).stderr
    tasks.write_text(yaml.safe_dump({"format": FORMAT, "tasks": {LAB: {"ann": {"attacker": 7}}}}))
    assert "drawn.attacker: 7 is not valid for this task" in grading.run("--tasks", str(tasks)).stderr


# ---- commands -------------------------------------------------------------------------------------------------


def command(top: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.chdir(top)
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, FwlabError):
        return str(done.exception)
    assert done.exit_code == 0, done.output
    return done.output


def test_tasks_are_handed_out_and_used(grading: FakeGrading, monkeypatch: pytest.MonkeyPatch) -> None:
    (grading.top / "names").write_text("ann\n\n# the others\nbob # late\n")
    given = ["--course", "course.yml", "--students", "names"]
    (grading.top / "course.yml").write_text("points: 10\n")
    said = command(grading.top, monkeypatch, "grades", "tasks", LAB, *given)
    assert "course.yml: secret: this field is missing" in said
    (grading.top / "course.yml").write_text(f"secret: {SECRET}\n")
    assert "2 tasks in tasks.yml" in command(grading.top, monkeypatch, "grades", "tasks", LAB, *given)
    assert SECRET not in (grading.top / "tasks.yml").read_text()
    lab = of_page(grading)
    numbers = draw(SECRET, lab, "bob")
    assert read_tasks(grading.top / "tasks.yml").tasks[LAB]["bob"] == numbers
    said = command(grading.top, monkeypatch, "task", LAB, EXERCISE, "--student", "bob")
    assert f"traffic: target: 198.19.0.{9 + numbers['attacker']} (on the page: 198.19.0.9)" in said
    assert command(grading.top, monkeypatch, "task", LAB, EXERCISE) == said
    found = json.loads(command(grading.top, monkeypatch, "task", LAB, EXERCISE, "--json"))
    assert (found["student"], found["exercise"]) == ("bob", EXERCISE)
    drawn = {one["place"]: (one["page"], one["own"]) for one in found["values"]}
    assert drawn["traffic: target"] == ("198.19.0.9", f"198.19.0.{9 + numbers['attacker']}")


def test_tasks_that_are_not_there(grading: FakeGrading, monkeypatch: pytest.MonkeyPatch) -> None:
    top = grading.top
    assert "no task of your own is in use" in command(top, monkeypatch, "task", LAB, EXERCISE)
    assert "tasks.yml: No such file" in command(top, monkeypatch, "task", LAB, EXERCISE, "--student", "x")
    for text, what in (
        ("format: fwlab-tasks/1\ntasks: { other: {} }\n", "it has no tasks of"),
        (f"format: fwlab-tasks/1\ntasks: {{ {LAB}: {{ ann: {{}} }} }}\n", "no student is called x"),
        (f"format: fwlab-tasks/1\ntasks: {{ {LAB}: {{ x: {{ attacker: 7 }} }} }}\n", "7 is not valid for this task"),
        ("format: fwlab-tasks/2\ntasks: {}\n", "format: Input should be"),
        ("tasks: 1\n", "tasks: "),
    ):
        (top / "tasks.yml").write_text(text)
        assert what in command(top, monkeypatch, "task", LAB, EXERCISE, "--student", "x")
    assert not (top / "labs" / LAB / "work" / "task.yml").exists()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no student names found"),
        ("# ann\n", "no student names found"),
        ("ann\nann\n", ":2: ann: appears twice"),
        ("a b\n", ":1: a b: a name may"),
    ],
)
def test_a_faulty_roster(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "names").write_text(text)
    with pytest.raises(BadInput, match=what):
        roster(tmp_path / "names")


# ---- measuring ------------------------------------------------------------------------------------------------


def test_a_students_traffic_is_played_and_counted_by_their_classes(grading: FakeGrading) -> None:
    """The session's own come back afterwards, even after an error."""
    lab, own = of_page(grading), with_numbers(grading, attacker=4, budget=0)
    theirs, session = SimpleNamespace(), SimpleNamespace()
    nodes: Any = SimpleNamespace()
    measurer = Measurer(Nodes(nodes, nodes, nodes, session, lab.classes, lambda _level: nodes, 1))

    def seen() -> tuple[object, str | None]:
        there = measurer._session.nodes
        return there.store, there.classes["attacker"].src

    assert seen() == (session, "198.18.20.66/32")
    with contextlib.suppress(RuntimeError), measurer.playing(theirs, own.classes):
        assert seen() == (theirs, "198.18.20.70/32")
        raise RuntimeError
    assert seen() == (session, "198.18.20.66/32")


def test_each_student_has_frames_of_their_own(grading: FakeGrading) -> None:
    """The engine knows a table by its path, so two students' tables must not share one."""
    project, own = Project(grading.top), with_numbers(grading, attacker=4, budget=0)
    topology = load_topology(project)
    stores = [TrafficStore(project, topology, lab) for lab in (of_page(grading), own, own)]
    paths = [store.path("own") for store in stores]
    assert len(set(paths)) == 3
    assert paths[0].read_bytes() != paths[1].read_bytes() == paths[2].read_bytes()
