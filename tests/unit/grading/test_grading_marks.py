# SPDX-License-Identifier: GPL-2.0-or-later
"""Marks are kept whatever happens. Each test is a whole grading on fake machines (fake_class.py)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fwlab.grading.record import read_record
from fwlab.grading.wording import MAX_REASON, NOT_YET, harmless
from tests.fakes.fake_grading import EXERCISE, FakeGrading
from tests.fakes.hand_ins import RULES


def test_every_row_and_the_submissions_are_written_at_the_start(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="leaks", cid="idle")
    first = grading.top / "first.csv"
    copy = f"test -e {first} || cp {grading.results}/marks.csv {first}"
    done = grading.run(FAKE_WHILE_MEASURING=copy)
    assert done.returncode == 1, done.stdout
    rows = [f"{who},{EXERCISE},{NOT_YET},0,1,,core" for who in ("ann", "bob", "cid")]
    assert first.read_text().splitlines() == ["who,exercise,verdict,passed,checks,reason,mark", *rows]
    assert grading.verdicts() == {"ann": "pass", "bob": "fail", "cid": "inconclusive"}
    assert (grading.results / "marks.csv").read_text() in done.stdout
    told = {who: student.files for who, student in read_record(grading.results).students.items()}
    text = f"# on the DUT: fine\n{RULES}".encode()
    known = {"sha256": hashlib.sha256(text).hexdigest(), "size": len(text)}
    assert told["ann"] == {EXERCISE: {"rules.iptables": known}}


def test_the_class_folder_may_vanish_during_grading(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="leaks", cid="fine", dan="fine")
    done = grading.run("-k", "not dan", FAKE_WHILE_MEASURING=f"rm -rf {grading.folder}/*")
    assert done.returncode == 1, done.stdout
    assert grading.verdicts() == {"ann": "pass", "bob": "fail", "cid": "pass"}
    assert not list(grading.folder.iterdir())


def test_an_interrupt_keeps_the_marks_and_stops_the_machines(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="stops", cid="fine")
    done = grading.run("-s")
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert grading.verdicts() == {"ann": "pass", "bob": NOT_YET, "cid": NOT_YET}
    assert [case["ruleset"] for case in json.loads((grading.results / "run.json").read_text())["exercises"]]
    assert done.stdout.count("machines down") == 1


def test_an_internal_error_does_not_fail_a_student(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="raises", bob="fine")
    done = grading.run("-s")
    assert done.returncode == 3, done.stdout
    assert grading.verdicts() == {"ann": "inconclusive", "bob": "pass"}
    assert grading.marks()[0]["reason"] == "internal error while grading: RuntimeError: a bug"
    assert done.stdout.count("measured: ") == 2
    assert "machines down" in done.stdout


@pytest.mark.parametrize("word", ["fine", "leaks"])
def test_marks_on_a_full_disk(grading: FakeGrading, word: str) -> None:
    """The marks are printed, and the exit code reports that they are not saved."""
    grading.hand_in_all(ann=word)
    (grading.top / "reports").write_text("in the way\n")
    done = grading.run("-s")
    assert done.returncode == {"fine": 3, "leaks": 1}[word], done.stdout
    assert done.stderr.count("cannot save the marks: ") == 1
    assert "Traceback" not in done.stdout + done.stderr
    mark = {"fine": "pass,1,1,", "leaks": "fail,0,1,Not blocked."}[word]
    assert f"ann,{EXERCISE},{mark},core\n" in done.stdout
    assert "machines down" in done.stdout


def test_an_exception_in_closing_leaves_no_machine_running(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine")
    done = grading.run("-s", FAKE_REPORT="raises")
    assert done.returncode == 3
    assert "cannot save the marks: RuntimeError: a bug" in done.stderr
    assert "machines down" in done.stdout
    assert grading.verdicts() == {"ann": "pass"}


def test_odd_names_are_reported_and_affect_nobody_else(grading: FakeGrading) -> None:
    """Whatever a file's name says, messages and pages hold it as text."""
    grading.hand_in("ann", b"\xff.bad")
    grading.hand_in("bob", b"\x1b[31m\xff.nft", "# on the DUT: leaks\n")
    grading.hand_in("cid", "x" * 240 + ".bad")
    grading.hand_in("dan", "[red][x].nft")
    grading.hand_in("fay", "<script>alert(1)</script>.bad".replace("/", "\u2215"))
    grading.hand_in_all(eve="fine")
    (grading.folder / "gil.rar").write_bytes(b"Rar!")
    (grading.folder / "index.html").write_text("<html>")
    done = grading.run("-s")
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "Traceback" not in said
    assert "\x1b[31m" not in said
    failed = dict.fromkeys(("ann", "bob", "cid", "fay", "gil"), "fail")
    assert grading.verdicts() == {"dan": "pass", "eve": "pass", **failed}
    reasons = {row["who"]: row["reason"] for row in grading.marks()}
    assert reasons["ann"] == f"not loaded: {EXERCISE} has nothing to load: \\xff.bad (no tool loads *.bad)"
    assert max(map(len, reasons.values())) < 200
    assert f"class/bob/{EXERCISE}: \\x1b[31m\\xff.nft" in done.stdout
    assert done.stderr.count("ignored, without effect on other students") == 1
    assert "gil: submission cannot be read: gil.rar: only .zip, .tar.gz and .tgz are unpacked" in done.stderr
    assert "index.html: not read" in done.stderr
    kept = json.loads((grading.results / "run.json").read_text())["exercises"]
    assert [Path(work["ruleset"]).parent.name for work in kept if work["refused"]] == ["ann", "cid", "fay", "gil"]
    tables = [grading.results / "junit.xml", grading.top / "j.xml"]
    for page in [*grading.results.rglob("*.html"), *tables]:
        assert not any(odd in page.read_bytes() for odd in (b"<script>alert", b"\x1b", b"\xff"))
    for table in tables:
        ElementTree.parse(table)


def test_what_is_not_loaded_is_told_with_the_mark(grading: FakeGrading) -> None:
    """By all that says why: the marks, the record, the student's page, Gradescope's results."""
    grading.hand_in_all(ann="fine", bob="leaks")
    grading.hand_in("ann", "Thumbs.db", b"\xd0\xcf")
    grading.hand_in("bob", "more.ipt", RULES)
    grading.hand_in("bob", "second.iptables", RULES)
    grading.hand_in("cid", "iptables-save.txt", RULES)
    done = grading.run()
    assert done.returncode == 1
    assert grading.verdicts() == {"ann": "pass", "bob": "fail", "cid": "fail"}
    why = {
        "ann": "Not loaded: Thumbs.db (no tool loads *.db).",
        "bob": "Not blocked. Not loaded: more.ipt (no tool loads *.ipt; iptables-legacy-restore loads *.iptables). "
        "rules.iptables and second.iptables add up in the table raw, in this order.",
        "cid": f"not loaded: {EXERCISE} has nothing to load: iptables-save.txt (no tool loads *.txt; "
        "iptables-legacy-restore loads *.iptables)",
    }
    assert {row["who"]: row["reason"] for row in grading.marks()} == why
    record = read_record(grading.results).grading()
    assert {work.student: work.reason for work in record.works} == why
    for who, text in why.items():
        own = grading.results / "students" / who
        assert text.removeprefix("Not blocked. ").split(" (")[0] in (own / "index.html").read_text()
        (test,) = json.loads((own / "results.json").read_text())["tests"]
        assert text.removeprefix("Not blocked. ").split(" (")[0] in test["output"]
    told = read_record(grading.results).students
    assert list(told["ann"].files[EXERCISE]) == ["rules.iptables"]
    page = (grading.results / "report.html").read_text()
    assert "add up in the table raw" in page


def test_no_path_of_the_grader_reaches_a_student(grading: FakeGrading) -> None:
    for who, name, data in (
        ("ann", "rules.iptables", RULES.encode("utf-16")),
        ("bob", "rules.iptables", RULES.encode() + b"\xff"),
        ("cid", "huge.nft", bytes(33 << 20)),
        ("dan", "rules.iptables", b"-M /bin/sh\n"),
    ):
        grading.hand_in(who, name, data)
    grading.hand_in("eve", "rules.nft", "x").unlink()
    (grading.folder / "eve" / EXERCISE / "rules.nft").symlink_to("/etc/passwd")
    assert grading.run().returncode == 1
    assert set(grading.verdicts().values()) == {"fail"}
    for who in ("ann", "bob", "cid", "dan", "eve"):
        for name in ("index.html", "results.json"):
            assert str(grading.top) not in (grading.results / "students" / who / name).read_text()
    assert not [row for row in grading.marks() if str(grading.top) in row["reason"]]


@pytest.mark.parametrize(
    ("host", "code", "measured", "tag", "said"),
    [
        ("lost", 3, 1, "skipped", "lost the connection to the DUT"),
        ("empty", 1, 2, "failure", "rules.iptables: loaded, but the DUT does not hold: 1 of 1 rules"),
    ],
)
def test_a_dut_that_does_not_list_the_rules(
    grading: FakeGrading, host: str, code: int, measured: int, tag: str, said: str
) -> None:
    """A ruleset that is missing is loaded again before it fails."""
    grading.hand_in_all(ann="fine")
    done = grading.run("-s", FAKE_HOST=host)
    assert (done.returncode, done.stdout.count("measured: ")) == (code, measured)
    (test,) = [case for name, case in grading.junit().items() if name.startswith("test_loaded")]
    assert test.tag == tag
    assert said in test.get("message")
    assert grading.verdicts() == {"ann": "pass"}


@pytest.mark.parametrize(
    ("text", "cell"), [("=HYPERLINK(1)", "'=HYPERLINK(1)"), (" +1", "'+1"), ("a\n  b\x1b[0m", "a b\\x1b[0m")]
)
def test_a_cell_is_short_and_harmless(text: str, cell: str) -> None:
    assert harmless(text) == cell
    assert len(harmless("x" * 9_000_000)) == MAX_REASON


def test_each_student_begins_with_a_restored_dut(grading: FakeGrading) -> None:
    grading.hand_in_all(ann="fine", bob="fine")
    done = grading.run("-s")
    lines = (line.partition(":")[0] for line in done.stdout.splitlines())
    told = [line.split()[-1] for line in lines if line == "measured" or "restored" in line]
    assert told == ["restored", "measured", "restored", "measured"]
