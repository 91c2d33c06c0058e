# SPDX-License-Identifier: GPL-2.0-or-later
"""A class is graded on several sets of machines at once. Each set is a process of its own, on fake machines."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from fwlab.grading import sets
from fwlab.grading.known import Known
from fwlab.grading.marks import NOT_YET
from fwlab.grading.sets import shares
from fwlab.grading.verify import verify
from fwlab.host.project import Project
from tests.offline.fake_grading import LAB, ROOT, FakeGrading
from tests.offline.hand_ins import make_tar

COMMIT = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
OTHER = "lab97-stand"
#: A further set is another process: it gets its fake machines from here.
FAKE = {"PYTEST_ADDOPTS": "-p tests.offline.fake_class", "PYTHONPATH": str(ROOT), "FWLAB_PORT_OFFSET": "9000"}


@pytest.fixture
def grading(tmp_path: Path) -> FakeGrading:
    """Two labs."""
    grading = FakeGrading(tmp_path)
    labs = grading.top / "labs"
    (labs / OTHER).mkdir()
    (labs / OTHER / "lab.yml").write_text((labs / LAB / "lab.yml").read_text().replace(LAB, OTHER))
    (labs / OTHER / "profile.py").write_text((labs / LAB / "profile.py").read_text())
    return grading


def hand_in(grading: FakeGrading, **words: str) -> None:
    for who, word in words.items():
        grading.hand_in(who, "rules.iptables", f"# on the DUT: {word}\n{COMMIT}")


def on_sets(grading: FakeGrading, *words: str, **environment: str) -> SimpleNamespace:
    done = grading.run("-s", "--sets", "2", "--force-sets", *words, **{**FAKE, **environment})
    assert sets_of(grading) == [], "a set still runs"
    return done


def sets_of(grading: FakeGrading) -> list[int]:
    """Process ids of further sets that grade in this checkout."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "--one-of-sets" in process.cmdline() and process.cwd() == str(grading.top):
                found.append(process.pid)
    return found


def measured_here(done: SimpleNamespace) -> list[str]:
    return [path.split("/")[-2] for path in re.findall(r"measured: (\S+/\S+):", done.stdout)]


def verdicts(grading: FakeGrading) -> dict[str, str]:
    return {row["who"]: row["verdict"] for row in grading.marks()}


def make_drawn_and_individual(grading: FakeGrading) -> Path:
    """The lab draws traffic, and each student has an address of their own. Returns the course's file."""
    path = grading.top / "labs" / LAB / "lab.yml"
    text = path.read_text()
    drawn = "flood: { profile: profile.py, tunables: { place: 1 } }"
    own = (
        "drawn: { place: { from: 0, to: 999998, adds_to: [traffic.flood.tunables.place] },\n"
        "  attacker: { of: student, from: 0, to: 200, adds_to: [classes.attacker.src] } }\n"
    )
    path.write_text(text.replace("flood: { profile: profile.py }", drawn) + own)
    profile = path.with_name("profile.py")
    profile.write_text(profile.read_text().replace("**kwargs", "place=1, **kwargs"))
    course = grading.top / "course.yml"
    course.write_text("secret: sixteen-characters-and-more\npoints: 10\n")
    return course


def test_the_marks_are_those_of_one_set(grading: FakeGrading) -> None:
    course = make_drawn_and_individual(grading)
    hand_in(grading, ann="fine", bob="leaks", cid="fine", dan="idle", eve="leaks", fay="fine")
    grading.hand_in("gus", "rules.bad", "nothing\n")
    grading.hand_in("hal", b"\xff.bad", "nothing\n")
    make_tar(grading.folder / "ian.tar.gz", {"../out": "x"})
    two, one = grading.top / "two", grading.top / "one"
    both = on_sets(grading, "--course", str(course), "--results", str(two))
    run = json.loads((two / "run.json").read_text())
    alone = grading.run("-s", f"--course={course}", f"--results={one}", "--traffic-seed", str(run["seed"]))
    assert both.returncode == alone.returncode == 1
    assert measured_here(alone) == ["ann", "bob", "cid", "dan", "eve", "fay"]
    assert measured_here(both) == ["ann", "cid", "eve", "dan"], "what is in doubt is measured again, and nothing else"
    assert f"set 2 (machines of {OTHER}): 3 rulesets of 3 students" in both.stderr
    for name in ("marks.csv", "grades.csv", "similarity.csv", "submissions.json"):
        assert (two / name).read_text() == (one / name).read_text(), name
    assert sorted(path.name for path in two.iterdir()) == sorted(path.name for path in one.iterdir())
    assert {Path(measured["ruleset"]).parts[-3] for measured in run["exercises"]} == {"class"}
    found = verify(Project(grading.top), two)
    assert (found.marks, found.faults, found.changes) == ([], [], [])
    assert json.loads((two / "grading.json").read_text())["students"][1]["individual"]
    assert not (grading.top / "reports").exists()


@pytest.mark.thorough
def test_the_first_set_grades_for_one_that_is_killed_and_destroys_its_machines(
    grading: FakeGrading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(grading.top.parent))
    hand_in(grading, ann="fine", bob="fine", cid="fine", dan="crashes", eve="fine", fay="leaks")
    record = grading.top / ".fwlab" / OTHER / "machines.json"
    (grading.top / "vagrant").write_text(f'#!/bin/sh\necho "$@" >>{grading.top}/called\nrm {record}\n')
    (grading.top / "vagrant").chmod(0o755)
    done = on_sets(
        grading, FAKE_RECORD="yes", TMPDIR=str(grading.top.parent), PATH=f"{grading.top}:{os.environ['PATH']}"
    )
    assert done.returncode == 1
    assert f"set 2 (machines of {OTHER}) has ended: exit code -9, " in done.stderr
    assert {"dan", "fay"} <= set(measured_here(done))
    assert list(verdicts(grading).values()) == ["pass"] * 5 + ["fail"]
    assert (grading.top / "called").read_text() == f"destroy -f {OTHER}\n"
    assert not record.exists()
    assert list(grading.top.parent.glob("fwlab-submissions-*")) == []


@pytest.mark.thorough
def test_an_interrupted_grading_stops_its_sets_and_is_continued(grading: FakeGrading) -> None:
    hand_in(grading, ann="fine", bob="fine", cid="slow", dan="slow", eve="stops", fay="slow", gus="fine", hal="slow")
    stopped = on_sets(grading, FAKE_RECORD="yes")
    assert stopped.returncode == pytest.ExitCode.INTERRUPTED
    assert list((grading.top / ".fwlab").glob("*/machines.json")) == [], "the sets' machines are gone"
    before = verdicts(grading)
    assert (before["ann"], before["cid"], before["eve"], before["gus"]) == ("pass", "pass", NOT_YET, NOT_YET)
    assert "the same command with --resume grades the rest" in stopped.stdout
    assert json.loads((grading.results / "grading.json").read_text())["works"]
    hand_in(grading, eve="leaks")
    done = on_sets(grading, "--resume")
    assert done.returncode == 1
    assert set(measured_here(done)) <= {who for who, verdict in before.items() if verdict == NOT_YET}
    assert verdicts(grading) == {**dict.fromkeys(before, "pass"), "eve": "fail"}


def test_machines_that_lack_something_grade_nobody(grading: FakeGrading) -> None:
    hand_in(grading, ann="fine", bob="fine", cid="leaks")
    done = on_sets(grading, FAKE_SETS="broken")
    assert measured_here(done) == ["ann", "cid", "bob"]
    assert f"set 2 (machines of {OTHER}) has ended: exit code 1, 1 of 1 rulesets left to the first set" in done.stderr
    assert "so these machines grade nobody" in done.stderr
    assert verdicts(grading) == {"ann": "pass", "bob": "pass", "cid": "fail"}


def test_shares_are_equal_and_a_student_stays_on_one_set() -> None:
    works = [
        SimpleNamespace(who=who, name=f"{who}/{number}")
        for who, count in {"a": 1, "b": 4, "c": 2, "d": 1}.items()
        for number in range(count)
    ]
    found = shares(works, 2)
    assert [sorted({work.who for work in share}) for share in found] == [["b"], ["a", "c", "d"]]
    assert sorted(work.name for share in found for work in share) == sorted(work.name for work in works)
    assert [len(share) for share in shares(works[:1], 3)] == [1]
    assert shares([], 2) == []


def test_a_set_ends_with_the_first_one() -> None:
    """The first set's process may be killed. Its sets then end as they do when they are told to."""
    child = (
        "import os, signal, time; from fwlab.grading.sets import end_with_first; end_with_first();"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'asked to end\\n'), os._exit(0)));"
        "os.write(1, b'ready\\n'); time.sleep(60)"
    )
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, cwd=ROOT) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "ready\n"
        first.send_signal(signal.SIGKILL)
        assert first.stdout.readline() == "asked to end\n"


def test_a_set_that_has_done_its_work_is_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be restoring its DUT and destroying its machines."""
    asked: list[str] = []
    process = SimpleNamespace(poll=lambda: None, terminate=lambda: asked.append("end"), returncode=None)
    monkeypatch.setattr(sets, "wait_or_kill", lambda _process, _seconds: asked.append("wait"))
    known = Known(kept={(LAB, "ann/ex1")})
    found = sets.Sets(SimpleNamespace(), LAB, known, pytest.fail)
    lab = SimpleNamespace(id=OTHER)
    found._sets = [sets._Set(2, lab, frozenset({"ann/ex1"}), Path(), True, process)]
    found.stop()
    assert asked == ["wait"]
    found._sets = [sets._Set(2, lab, frozenset({"ann/ex1", "bob/ex1"}), Path(), True, process)]
    found.stop()
    assert asked == ["wait", "end", "wait"]
