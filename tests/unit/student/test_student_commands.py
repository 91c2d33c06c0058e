# SPDX-License-Identifier: GPL-2.0-or-later
"""Hints, solutions, starting over, going to an exercise, numbers as people type them, and `--version`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import typer

from fwlab import __version__
from fwlab.cli.options import number
from fwlab.model.errors import EXIT_USAGE
from fwlab.student.hints import MAX_LINES, shortened
from fwlab.student.predictions import read_predictions
from fwlab.student.progress import read_progress
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, EX2, LAB, Door, Measuring

HINTS = f"{EX1}:\n  - Where do you look?\n  - >-\n    Look there,\n    closely.\n"
DROP = "-A PREROUTING -s 198.18.20.66 -j DROP"


@pytest.fixture
def checkout(checkout: Path) -> Path:
    (checkout / "labs" / LAB / "hints.yml").write_text(HINTS)
    return checkout


def rules(checkout: Path, exercise: str = EX1) -> Path:
    return checkout / "labs" / LAB / "work" / exercise / "rules.iptables"


def check(door: Door, checkout: Path, rule: str, *options: str) -> tuple[int, str, str]:
    rules(checkout).parent.mkdir(exist_ok=True)
    rules(checkout).write_text(f"*raw\n{rule}\nCOMMIT\n")
    return door("check", LAB, EX1, "--testbed", "virtual", *options)


def test_each_hint_comes_when_it_is_asked_for_and_is_counted(door: Door, checkout: Path) -> None:
    one, two = "hint 1 of 2: Where do you look?\n", "hint 2 of 2: Look there, closely.\n"
    all_of_them = f"These were all hints for {EX1}:\n{one}{two}"
    for words, said, count in (
        ([], one, 1),
        ([], two, 2),
        ([], all_of_them, 2),
        (["--all"], one + two, 2),
    ):
        assert door("hint", LAB, EX1, *words) == (0, said, "")
        assert read_progress(checkouts.lab(checkout)).of(EX1).hints == count
    assert "2/2" in door("status", LAB)[1]


def test_hints_and_the_solution_for_a_program(door: Door, checkout: Path) -> None:
    told = {"lab": LAB, "exercise": EX1, "hints": {"1": "Where do you look?"}, "of": 2}
    assert json.loads(door("hint", LAB, EX1, "--json")[1]) == told
    assert door("solution", LAB, EX1, "--json")[:2] == (EXIT_USAGE, "")
    check(door, checkout, DROP)
    found = json.loads(door("solution", LAB, EX1, "--json")[1])
    assert found["exercise"] == EX1
    assert found["files"]["rules.iptables"].startswith("*raw\n")
    assert {"check": "delivered-attacker", "why": "The host is to be blocked.", "pass": "Blocked."} in found["checks"]


def test_all_hints_at_once_and_none(door: Door, checkout: Path) -> None:
    assert door("hint", LAB, EX1, "--all")[1].count("hint ") == 2
    assert read_progress(checkouts.lab(checkout)).of(EX1).hints == 2
    code, _, complaint = door("hint", LAB, EX2)
    assert code == EXIT_USAGE
    assert complaint.startswith(f"fwlab: {LAB} has no hints for {EX2}\n  next: fwlab check {LAB} {EX2}")
    (checkout / "labs" / LAB / "hints.yml").unlink()
    assert door("hint", LAB, EX1)[2].startswith(f"fwlab: {LAB} has no hints for {EX1}\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ex9-none: [Think.]", f"labs/{LAB}/hints.yml: {LAB} has no exercise ex9-none; it has: {EX1}, {EX2}"),
        (f"{EX1}: []", "there must be at least 1"),
        ("{", "not YAML"),
    ],
)
def test_a_faulty_hints_yml_is_named(door: Door, checkout: Path, text: str, says: str) -> None:
    (checkout / "labs" / LAB / "hints.yml").write_text(text)
    code, _, complaint = door("hint", LAB, EX1)
    assert code == EXIT_USAGE
    assert complaint.startswith(f"fwlab: labs/{LAB}/hints.yml")
    assert says in complaint
    assert "\n  next: fix labs/" in complaint


# ---- the solution ----------------------------------------------------------------------------------


def test_the_solution_comes_after_a_pass_if_it_is_there(door: Door, checkout: Path, session: Measuring) -> None:
    refused = f"fwlab: the solution of {EX1} is shown once the exercise is passed, or 3 different rulesets of your own"
    complaint = f"{refused} have been checked (so far: 0)\n  next: fwlab hint {LAB} {EX1}\n"
    assert door("solution", LAB, EX1) == (EXIT_USAGE, "", complaint)
    check(door, checkout, DROP)
    code, said, _ = door("solution", LAB, EX1)
    assert code == 0
    assert f"labs/{LAB}/rulesets/{EX1}/reference/rules.iptables:\n    *raw\n    -A PREROUTING -s" in said
    assert "delivered-attacker: Blocked.\n  Why: The host is to be blocked.\n" in said
    assert read_progress(checkouts.lab(checkout)).of(EX1).solution
    shutil.rmtree(checkout / "labs" / LAB / "rulesets" / EX1 / "reference")
    code, _, complaint = door("solution", LAB, EX1)
    assert code == EXIT_USAGE
    assert "this copy of the labs comes without them\n  next: ask whoever gave it to you" in complaint


def test_the_solution_comes_after_as_many_rulesets_as_the_lab_says(
    door: Door, checkout: Path, session: Measuring
) -> None:
    path = checkout / "labs" / LAB / "lab.yml"
    path.write_text(path.read_text().replace("minutes: 30", "minutes: 30\nsolution_after: 2"))
    session.arrived = 900
    door("check", LAB, EX1, "--testbed", "virtual")  # the start
    check(door, checkout, "-A PREROUTING -j ACCEPT")
    check(door, checkout, "-A PREROUTING -j ACCEPT")  # the same again
    assert "2 different rulesets of your own have been checked (so far: 1)" in door("solution", LAB, EX1)[2]
    check(door, checkout, "-A PREROUTING -j RETURN")
    assert door("solution", LAB, EX1)[0] == 0


def test_a_template_is_shown_as_it_is_loaded_and_shortened(door: Door, checkout: Path) -> None:
    reference = checkout / "labs" / LAB / "rulesets" / EX1 / "reference" / "rules.iptables"
    lines = "{% for a in addresses(100) %}\n-A PREROUTING -s {{ a }} -j DROP\n{% endfor %}"
    reference.with_name("rules.iptables.j2").write_text(f"*raw\n{lines}\nCOMMIT\n")
    reference.unlink()
    check(door, checkout, DROP)
    said = door("solution", LAB, EX1)[1]
    assert "reference/rules.iptables.j2:\n    *raw\n    -A PREROUTING -s 10.0.0.1 -j DROP\n" in said
    assert "    … and 62 more lines\n" in said
    assert shortened("a\n" * MAX_LINES).count("\n") == MAX_LINES - 1
    assert shortened("a\n" * (MAX_LINES + 1500)).endswith("… and 1 500 more lines")


# ---- starting over ---------------------------------------------------------------------------------


def test_a_reset_keeps_what_was_there_and_says_where(door: Door, checkout: Path) -> None:
    door("start", LAB, EX1)
    start = rules(checkout).read_text()
    rules(checkout).with_name("notes.txt").write_text("a thought")
    for text in ("one", "two", "three"):  # within a second
        rules(checkout).write_text(text)
        code, said, _ = door("reset", LAB, EX1)
        assert code == 0
        assert rules(checkout).read_text() == start
        kept = checkout / said.rpartition("what was there is kept in ")[2].strip()
        assert (kept / "rules.iptables").read_text() == text
    assert [path.read_text() for path in kept.parent.glob("*/notes.txt")] == ["a thought"]
    assert len(list(kept.parent.glob("*/rules.iptables"))) == 3
    assert door("reset", LAB, EX1) == (0, f"{EX1}: labs/{LAB}/work/{EX1} is the start\n", ""), "nothing to keep"


def test_a_reset_of_all_makes_every_start_and_leaves_progress_alone(door: Door, checkout: Path) -> None:
    door("hint", LAB, EX1)
    door("predict", LAB, EX1, "5")
    rules(checkout).mkdir(parents=True)  # no ruleset
    assert door("reset", LAB)[0] == 0
    assert rules(checkout, EX1).is_file()
    assert rules(checkout, EX2).is_file()
    assert read_progress(checkouts.lab(checkout)).of(EX1).hints == 1
    assert read_predictions(checkouts.lab(checkout)) == {EX1: 5.0}


def test_goto_puts_work_to_the_start_of_an_exercise(door: Door, checkout: Path) -> None:
    code, said, _ = door("goto", LAB, EX2)
    assert code == 0
    assert said.endswith(f"next: fwlab predict {LAB} {EX2}\n")
    assert rules(checkout, EX2).exists()
    assert not rules(checkout, EX1).exists()
    assert f"next: fwlab predict {LAB} {EX2}\n" in door("status", LAB)[1]


# ---- names and numbers -----------------------------------------------------------------------------


def test_the_beginning_of_a_name_is_enough(door: Door, checkout: Path) -> None:
    assert door("hint", "lab98", "ex1")[0] == 0
    assert door("start", "lab98", "ex2")[0] == 0
    assert rules(checkout, EX2).exists()
    assert "unknown lab lab9" in door("hint", "lab9", "ex1")[2]
    assert f"{LAB} has no exercise ex; it has" in door("hint", LAB, "ex")[2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("280000", 280_000),
        ("280 k", 280_000),
        ("1_280_000.5", 1_280_000.5),
        ("280,000", 280_000),
        ("2.8e5", 280_000),
        ("0.3M", 300_000),
        ("19 %", 0.19),
        *((text, None) for text in ("fast", "", "k", "%", "28,00", "2,80,000", "1e", "0x10k", "280kk")),
    ],
)
def test_numbers_as_people_type_them(text: str, value: float | None) -> None:
    if value is not None:
        assert number(text) == pytest.approx(value)
        return
    with pytest.raises(typer.BadParameter, match="write 280000, 280k, 280,000"):
        number(text)


def test_a_number_in_another_unit_is_noticed(door: Door, checkout: Path) -> None:
    assert "did you mean 280k?" in door("predict", LAB, EX1, "280")[1]
    assert "did you mean" not in door("predict", LAB, EX1, "280k")[1]
    code, _, complaint = door("predict", LAB, EX1, "19%")
    assert (code, "the question asks for pps, a number above 1 (got 0.19)" in complaint) == (EXIT_USAGE, True)
    path = checkout / "labs" / LAB / "lab.yml"
    path.write_text(
        re.sub(r"predict: .*", "predict: { metric: delivered, class: attacker, question: '?' }", path.read_text())
    )
    assert door("predict", LAB, EX1, "0.07")[1] == f"{EX1}: you predict 7 %\n"
    code, _, complaint = door("predict", LAB, EX1, "19")
    assert (code, "a share, from 0 to 1 (got 19); a percentage has its sign: 19%" in complaint) == (EXIT_USAGE, True)
    assert read_predictions(checkouts.lab(checkout)) == {EX1: 0.07}


def test_a_check_names_the_files_that_it_loads(door: Door, checkout: Path, session: Measuring) -> None:
    rules(checkout).parent.mkdir()
    rules(checkout).with_name("set.nft").write_text("\n")
    rules(checkout).with_name("NOTES.MD").write_text("mine\n")
    _, out, err = check(door, checkout, DROP)
    assert f"{EX1}: rules.iptables, set.nft (empty)\n  Not loaded: NOTES.MD (no tool loads *.MD).\n" in err
    assert "Not loaded: NOTES.MD (no tool loads *.MD)." in out
    (document,) = json.loads(check(door, checkout, DROP, "--json")[1])["exercises"]
    assert document["remarks"] == ["Not loaded: NOTES.MD (no tool loads *.MD)."]
    rules(checkout).with_name("set.nft").unlink()
    rules(checkout).rename(rules(checkout).with_name("iptables-save.txt"))
    code, out, err = door("check", LAB, EX1, "--testbed", "virtual")
    assert (code, out, session.opened) == (EXIT_USAGE, "", 2)
    why = "iptables-save.txt (no tool loads *.txt; iptables-legacy-restore loads *.iptables)"
    assert err.startswith(f"fwlab: {EX1} has nothing to load: NOTES.MD (no tool loads *.MD), {why}\n  next: use one of")


def test_version(door: Door) -> None:
    assert door("--version") == (0, f"fwlab {__version__}\n", "")


TESTS = """
def test_the_idea(ruleset, submission, record):
    assert submission.exercise == record.id
    assert "DROP" in ruleset["rules.iptables"], "nothing is dropped"

def test_machines(dut):
    assert False, "this one is for gradings"
"""


@pytest.mark.parametrize(
    ("tests", "rule", "code", "said", "failed"),
    [
        (TESTS, "DROP", 0, "The test passes.", []),
        (TESTS, "ACCEPT", 1, "nothing is dropped", ["lab/test_idea.py::test_the_idea"]),
        ("def test_a(submission: ...\n", "DROP", 3, "the tests did not run", ["tests"]),
    ],
)
def test_check_runs_the_labs_tests_of_submissions(
    checkout: Path, door: Door, session: Measuring, tests: str, rule: str, code: int, said: str, failed: list[str]
) -> None:
    session.ssh_config, folder = checkout / "none", checkout / "labs" / LAB / "tests"
    folder.mkdir()
    (folder / "test_idea.py").write_text(tests)
    left, out, _ = check(door, checkout, f"-A PREROUTING -s 198.18.20.66 -j {rule}")
    assert (left, said in out, "for gradings" in out) == (code, True, False)
    assert read_progress(checkouts.lab(checkout)).of(EX1).last.failed == failed
    if code == 1:
        assert check(door, checkout, "-A PREROUTING -j ACCEPT", "--json")[0] == 1
