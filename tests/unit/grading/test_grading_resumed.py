# SPDX-License-Identifier: GPL-2.0-or-later
"""A grading continues where it stopped. Each test is a whole grading on fake machines (fake_class.py)."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fwlab.checkout.project import Project
from fwlab.grading.class_files import NOT_YET
from fwlab.grading.verify import verify
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading
from tests.fakes.hand_ins import RULES, make_tar, make_zip


def measured(done) -> list[str]:
    return [path.split("/")[-2] for path in re.findall(r"measured: (\S+/\S+):", done.stdout)]


def test_an_interrupted_grading_is_continued(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="leaks", cid="stops", dan="fine")
    stopped = grading.run("-s")
    assert stopped.returncode == pytest.ExitCode.INTERRUPTED
    assert "the same command with --resume grades the rest" in stopped.stdout
    assert grading.verdicts() == {"ann": "pass", "bob": "fail", "cid": NOT_YET, "dan": NOT_YET}
    grading.hand_in_all(cid="fine")
    done = grading.run("-s", "--resume")
    assert done.returncode == 1
    assert measured(done) == ["cid", "dan"]
    assert grading.verdicts() == {"ann": "pass", "bob": "fail", "cid": "pass", "dan": "pass"}
    assert "2 rulesets were graded before and are not measured again" in done.stderr
    cases = grading.junit()
    assert len(cases) == 9
    assert {name for name, part in cases.items() if part is not None} == {
        f"test_check[{LAB}-bob/{EXERCISE}-delivered-attacker]"
    }
    kept = json.loads((grading.results / "run.json").read_text())["exercises"]
    assert [Path(one["ruleset"]).parts[-2] for one in kept] == ["ann", "bob", "cid", "dan"]


def test_nothing_is_lost_if_the_second_attempt_stops_as_well(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="fine", cid="stops")
    grading.run()
    grading.run("--resume")
    grading.hand_in_all(cid="fine")
    assert measured(grading.run("-s", "--resume")) == ["cid"]
    assert set(grading.verdicts().values()) == {"pass"}


def test_what_changed_or_was_in_doubt_is_measured_again(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="idle", cid="fine", dan="fine")
    grading.run()
    grading.hand_in_all(bob="fine", cid="leaks")
    make_zip(grading.folder / "eve.zip", {f"{EXERCISE}/rules.iptables": RULES})
    done = grading.run("-s", "--resume")
    assert measured(done) == ["bob", "cid", "eve"]
    assert grading.verdicts() == {"ann": "pass", "bob": "pass", "cid": "fail", "dan": "pass", "eve": "pass"}


@pytest.mark.parametrize("name", ["lab.yml", "profile.py"])
def test_a_changed_lab_is_measured_again(grading: FakeGrading, name: str) -> None:
    grading.hand_in_all(ann="fine")
    grading.run()
    with (grading.top / "labs" / LAB / name).open("a") as file:
        file.write("\n# changed\n")
    done = grading.run("-s", "--resume")
    assert measured(done) == ["ann"]
    assert f"nothing is taken over from an earlier grading: labs/{LAB}/{name} is not the same" in done.stderr


def test_another_kernel_is_measured_again(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine")
    grading.run()
    record = grading.results / "record.jsonl"
    record.write_text(record.read_text().replace("6.1.0-dut", "6.12.0-other"))
    done = grading.run("-s", "--resume")
    assert measured(done) == ["ann"]
    assert "kernel: 6.12.0-other and 6.1.0-dut" in done.stderr


def test_a_continued_class_gets_the_traffic_that_was_drawn_for_it(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="stops")
    first = re.search(r"seed (\d+) drew the traffic", grading.run("-s").stdout)
    grading.hand_in_all(bob="fine")
    done = grading.run("-s", "--resume")
    assert measured(done) == ["bob"]
    again = re.search(r"seed (\d+) drew the traffic", done.stdout)
    assert first is not None
    assert again is not None
    assert first[1] == again[1]
    other = grading.run("-s", "--resume", "--traffic-seed", str(int(first[1]) + 1))
    assert measured(other) == ["ann", "bob"], "marks of other traffic are not taken over"
    assert "drew its traffic, not" in other.stderr


def test_nothing_to_continue(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine")
    done = grading.run("-s", "--resume")
    assert done.returncode == 0
    assert "nothing is taken over from an earlier grading: there is no " in done.stderr


@pytest.mark.parametrize("text", ["", "{}", "{}\n", "[]\n", '{"entry": "grading"}\n', "\0\n"])
def test_a_record_that_cannot_be_read_is_not_overwritten(grading: FakeGrading, text: str) -> None:
    grading.hand_in_all(ann="fine")
    grading.results.mkdir(parents=True)
    (grading.results / "record.jsonl").write_text(text)
    done = grading.run("--resume")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "record.jsonl:1: not " in done.stderr
    assert (grading.results / "record.jsonl").read_text() == text


def test_the_files_of_a_class(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="leaks", cid="idle")
    make_tar(grading.folder / "dan.tar.gz", {"../out": "x"})
    course = grading.top / "course.yml"
    course.write_text("title: Networks\npoints: 10\npartial: 0.5\n")
    done = grading.run("--course", str(course), "--results", str(grading.top / "there"))
    assert done.returncode == 1
    there = grading.top / "there"
    rows = list(csv.DictReader(io.StringIO((there / "grades.csv").read_text())))
    assert [(row["student"], row["grade"], row["open"]) for row in rows] == [
        ("ann", "10", ""),
        ("bob", "0", ""),
        ("cid", "", EXERCISE),
        ("dan", "0", ""),
    ]
    cases = {
        case.get("classname"): [part.tag for part in case]
        for case in ElementTree.parse(there / "junit.xml").iter("testcase")
    }
    assert cases == {
        f"ann.{EXERCISE}": [],
        f"bob.{EXERCISE}": ["failure"],
        f"cid.{EXERCISE}": ["skipped"],
        f"dan.{EXERCISE}": ["failure"],
    }
    results = {
        who: json.loads((there / "students" / who / "results.json").read_text()) for who in ("ann", "bob", "cid")
    }
    assert (results["ann"]["score"], results["bob"]["score"]) == (10, 0)
    assert "score" not in results["cid"]
    assert "score" not in results["cid"]["tests"][0]
    page = (there / "class.html").read_text()
    assert "Networks" in page
    assert "submission cannot be read: ../out: a path that leads out of the archive" in page
    assert "the DUT was not saturated" in (there / "students" / "cid" / "index.html").read_text()
    assert not (grading.top / "reports").exists()


def test_pages_of_a_hostile_name(grading: FakeGrading) -> None:
    """Whatever a file's name says, the pages hold it as text."""
    grading.hand_in("ann", "<script>alert(1)</script>.bad".replace("/", "\u2215"))
    grading.hand_in("bob", b"\xff\x1b[31m.bad")
    grading.run()
    for page in [*grading.results.rglob("*.html"), grading.results / "junit.xml"]:
        data = page.read_bytes()
        assert b"<script>alert" not in data
        assert b"\x1b" not in data
    ElementTree.parse(grading.results / "junit.xml")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--course", "none.yml"], "none.yml: No such file"),
        (["--course", "bad.yml"], "bad.yml: late.per_day: Input should be less than or equal to 1"),
    ],
)
def test_a_course_that_cannot_be_used(grading: FakeGrading, words: list[str], what: str) -> None:
    grading.hand_in_all(ann="fine")
    (grading.top / "bad.yml").write_text("late: { per_day: 2 }\n")
    done = grading.run(*words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert what in done.stderr
    assert "machines up" not in done.stdout


def test_a_case_that_checks_compare_with_is_measured_in_each_session(grading: FakeGrading) -> None:
    """A check of survival needs it in its own session. What was taken over stays compared with the earlier one."""
    lab = grading.top / "labs" / LAB
    (lab / "rulesets" / "raw-drop").mkdir(parents=True)
    (lab / "rulesets" / "raw-drop" / "rules.iptables").write_text(RULES)
    check = (
        "      - { metric: capacity, ratio_to: raw-drop, at_least: 0.5, why: W., source: [S1], pass: P., fail: F. }\n"
    )
    text = (lab / "lab.yml").read_text()
    (lab / "lab.yml").write_text(text.replace("    checks:\n", "    checks:\n" + check))
    grading.hand_in_all(ann="fine", bob="stops")
    grading.run()
    grading.hand_in_all(bob="fine")
    done = grading.run("-s", "--resume")
    assert re.findall(r"measured: (\S+):", done.stdout)[0] == "raw-drop"
    assert measured(done)[-1] == "bob"
    assert grading.verdicts() == {"ann": "pass", "bob": "pass"}
    done = grading.run("-s", "--resume")
    assert measured(done) == []
    run = json.loads((grading.results / "run.json").read_text())
    assert [case["id"] for case in run["cases"]] == ["raw-drop"]
    assert verify(Project(grading.top), grading.results).marks == []


def test_what_was_taken_over_is_said_even_if_every_test_passes(grading: FakeGrading) -> None:
    """pytest shows what a test prints only if it fails."""
    grading.hand_in_all(ann="fine")
    grading.run()
    assert "\n1 rulesets were graded before and are not measured again\n" in grading.run("--resume").stderr
