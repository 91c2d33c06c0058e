# SPDX-License-Identifier: GPL-2.0-or-later
"""A grading continues where it stopped. Each test is a whole grading on fake machines (fake_class.py)."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fwlab.checkout.project import Project
from fwlab.grading.verify import verify
from fwlab.grading.wording import NOT_YET
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
    assert measured(grading.run("-s", "--resume")) == ["bob", "cid", "eve"]
    assert grading.verdicts() == {"ann": "pass", "bob": "pass", "cid": "fail", "dan": "pass", "eve": "pass"}
    assert "\n5 rulesets were graded before and are not measured again\n" in grading.run("--resume").stderr


@pytest.mark.parametrize(
    ("path", "old", "new", "why"),
    [
        (f"labs/{LAB}/lab.yml", "", "\n# changed\n", f"labs/{LAB}/lab.yml is not the same"),
        (f"labs/{LAB}/profile.py", "", "\n# changed\n", f"labs/{LAB}/profile.py is not the same"),
        (
            f"reports/{LAB}/grading/record.jsonl",
            "6.1.0-dut",
            "6.12.0-other",
            "kernel: 6.12.0-other and 6.1.0-dut",
        ),
    ],
)
def test_another_lab_or_kernel_is_measured_again(grading: FakeGrading, path: str, old: str, new: str, why: str) -> None:
    grading.hand_in_all(ann="fine")
    grading.run()
    text = (grading.top / path).read_text()
    (grading.top / path).write_text(text.replace(old, new) if old else text + new)
    done = grading.run("-s", "--resume")
    assert measured(done) == ["ann"]
    assert f"nothing is taken over from an earlier grading: {why}" in done.stderr


def test_a_continued_class_gets_the_traffic_that_was_drawn_for_it(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="stops")
    seed = re.compile(r"seed (\d+) drew the traffic")
    [first] = seed.findall(grading.run("-s").stdout)
    grading.hand_in_all(bob="fine")
    done = grading.run("-s", "--resume")
    assert measured(done) == ["bob"]
    assert seed.findall(done.stdout) == [first]
    other = grading.run("-s", "--resume", "--traffic-seed", str(int(first) + 1))
    assert measured(other) == ["ann", "bob"], "marks of other traffic are not taken over"
    assert "drew its traffic, not" in other.stderr


def test_nothing_to_continue(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine")
    done = grading.run("-s", "--resume")
    assert done.returncode == 0
    assert "nothing is taken over from an earlier grading: there is no " in done.stderr


@pytest.mark.parametrize("text", ["", "{}", '{"entry": "grading"}\n'])
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
    rows = csv.DictReader((there / "grades.csv").read_text().splitlines())
    grades = [("ann", "10", ""), ("bob", "0", ""), ("cid", "", EXERCISE), ("dan", "0", "")]
    assert [(row["student"], row["grade"], row["open"]) for row in rows] == grades
    cases = ElementTree.parse(there / "junit.xml").iter("testcase")
    tags = {"ann": [], "bob": ["failure"], "cid": ["skipped"], "dan": ["failure"]}
    found = {case.get("classname"): [part.tag for part in case] for case in cases}
    assert found == {f"{who}.{EXERCISE}": parts for who, parts in tags.items()}
    for who, score in {"ann": 10, "bob": 0, "cid": None}.items():
        results = json.loads((there / "students" / who / "results.json").read_text())
        assert results["tests"][0].get("score") == score
        assert results["score"] == (score or 0), "Gradescope asks for one"
    page = (there / "class.html").read_text()
    assert "Networks" in page
    assert "submission cannot be read: ../out: a path that leads out of the archive" in page
    assert "the DUT was not saturated" in (there / "students" / "cid" / "index.html").read_text()
    assert not (grading.top / "reports").exists()


def test_a_course_that_cannot_be_used(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine")
    (grading.top / "bad.yml").write_text("late: { per_day: 2 }\n")
    done = grading.run("--course", "bad.yml")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "bad.yml: late.per_day: Input should be less than or equal to 1" in done.stderr
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
