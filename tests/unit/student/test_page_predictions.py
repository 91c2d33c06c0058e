# SPDX-License-Identifier: GPL-2.0-or-later
"""Questions of a lab's page: predicted, then measured, and explained only after both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from fwlab.model.errors import EXIT_USAGE
from fwlab.student.progress import Prediction, read_progress
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, EX2, LAB, Door, Measuring

ASKED = {"id": "packet", "question": "How much?", "answer": {"derive": "cost", "case": "raw-drop"}, "unit": "ns"}
SHARE = {**ASKED, "answer": {"derive": "figure", "case": "raw-drop"}, "metric": "delivered", "class": "attacker"}
WORKBOOK = {**ASKED, "id": "book", "hint": "-", "why": "-"}
EXPLAINED = (
    "# Explained\n\n## packet\n\nIt *costs* 17<!-- = cost('raw-drop') --> at [lab](README.md).\n"
    "![A curve](a.svg)\n\n## other\n\nNot told.\n"
)


@pytest.fixture
def door(checkout: Path, door: Door) -> Door:
    folder = checkout / "labs" / LAB
    (folder / "answers.yml").write_text(yaml.safe_dump({"predictions": [ASKED], "questions": [WORKBOOK]}))
    (folder / "explained.md").write_text(EXPLAINED)
    return door


def made(checkout: Path) -> Prediction:
    return read_progress(checkouts.lab(checkout)).predictions["packet"]


def measure(door: Door) -> tuple[int, str, str]:
    return door("run", LAB, "raw-drop", "--testbed", "virtual")


def test_the_answer_is_told_once_it_is_predicted_and_measured(door: Door, checkout: Path) -> None:
    assert door("predict", LAB)[1].split() == ["packet", "open", "How", "much?"]
    assert door("predict", LAB, "packet") == (0, "How much?\n", "")
    code, said, _ = door("predict", LAB, "packet", "3000")
    next_step = f"next: fwlab run {LAB} raw-drop\n      (then fwlab predict {LAB} packet compares, and explains)\n"
    assert (code, said) == (0, f"packet: you predict 3000 ns\n{next_step}")
    assert door("predict", LAB, "packet", "2k")[0] == 0, "until it is measured"
    assert "predicted 2000 ns\n" in door("predict", LAB)[1]
    assert f"next: fwlab predict {LAB} packet compares" in measure(door)[1]
    code, said, _ = door("predict", LAB, "packet")
    assert code == 0
    assert said.startswith("packet: you predicted 2000 ns, your run gives 3333 ns (×1.67)\n")
    assert " ".join(said.split("\n\n", 1)[1].split()) == "It costs 17 at lab."
    assert (made(checkout).value, made(checkout).late) == (2000, False)
    assert made(checkout).measured == pytest.approx(1e6 / 300)
    code, _, complaint = door("predict", LAB, "packet", "3333")
    assert (code, made(checkout).value) == (EXIT_USAGE, 2000)
    assert f"packet is measured; a prediction comes before that\n  next: fwlab predict {LAB} packet" in complaint
    assert "compares" not in measure(door)[1], "nothing is left to compare"
    assert "predicted 2000 ns; measured 3333 ns\n" in door("predict", LAB)[1]


def test_predictions_for_a_program(door: Door, checkout: Path) -> None:
    asked = {"id": "packet", "question": "How much?", "unit": "ns", "predicted": None, "measured": None}
    found = json.loads(door("predict", LAB, "--json")[1])
    assert found[0] == asked
    assert [one["id"] for one in found[1:]] == [EX1, EX2]
    assert json.loads(door("predict", LAB, "packet", "3000", "--json")[1]) == [{**asked, "predicted": 3000}]
    measure(door)
    [told] = json.loads(door("predict", LAB, "packet", "--json")[1])
    assert (told["predicted"], round(told["measured"])) == (3000, 3333)
    code, said, complaint = door("predict", LAB, "packet", "5", "--json")
    assert (code, said) == (EXIT_USAGE, "")
    assert "is measured" in complaint
    [exercise] = json.loads(door("predict", LAB, "ex1", "250k", "--json")[1])
    assert (exercise["id"], exercise["unit"], exercise["predicted"]) == (EX1, "pps", 250_000)


def test_a_prediction_after_the_measurement_is_marked(door: Door, checkout: Path) -> None:
    """Who forgot to predict gets the explanation, and the record says so."""
    _, _, said = measure(door)
    assert f"not predicted yet: packet: fwlab predict {LAB}\n" in said
    assert door("predict", LAB, "packet")[1] == "How much?\n", "not told"
    told = door("predict", LAB, "packet", "3333")[1]
    assert told.startswith("packet: you predict 3333 ns, after it was measured\n")
    assert "It costs 17" in told
    assert made(checkout).late
    assert "predicted 3333 ns, after it was measured" in door("predict", LAB)[1]
    assert door("predict", LAB, "packet", "1")[0] == EXIT_USAGE


def test_the_comparison_stays_when_the_report_is_gone(door: Door, checkout: Path) -> None:
    door("predict", LAB, "packet", "3000")
    measure(door)
    door("predict", LAB, "packet")
    (checkout / "reports" / LAB / "measured.json").unlink()
    assert "your run gives 3333 ns" in door("predict", LAB, "packet")[1]
    assert door("predict", LAB, "packet", "3333")[0] == EXIT_USAGE


def test_status_leads_to_the_page_until_an_exercise_was_tried(door: Door, session: Measuring) -> None:
    assert "questions of the page: 0 of 1 predicted\n" in door("status", LAB)[1]
    found = json.loads(door("status", LAB, "--json")[1])
    assert (found["predictions"], found["next"]) == ({"packet": None}, f"fwlab predict {LAB} packet")
    door("check", LAB, EX1, "--testbed", "virtual")
    assert "packet" not in json.loads(door("status", LAB, "--json")[1])["next"]
    door("predict", LAB, "packet", "5")
    assert json.loads(door("status", LAB, "--json")[1])["predictions"] == {"packet": 5}


def test_a_question_is_printed_with_what_it_continues(door: Door, checkout: Path) -> None:
    more = [ASKED, {**ASKED, "id": "b", "question": "And then?"}, {**ASKED, "id": "c", "question": "And so?"}]
    path = checkout / "labs" / LAB / "answers.yml"
    path.write_text(yaml.safe_dump({"predictions": more, "questions": [WORKBOOK]}))
    assert door("predict", LAB, "c")[1] == "How much?\nAnd then?\nAnd so?\n"
    assert door("predict", LAB, "b")[1] == "How much?\nAnd then?\n"
    assert door("predict", LAB, "b", "2.50")[1].startswith("b: you predict 2.5 ns\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none"], f"{LAB} asks no question none; it has: packet, {EX1}"),
        (["book"], f"{LAB} asks no question book"),
        (["packet", "inf"], "packet: inf is not a number to predict"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_argument_is_named(door: Door, words: list[str], says: str) -> None:
    code, _, complaint = door("predict", LAB, *words)
    assert code == EXIT_USAGE
    assert says in complaint


def test_a_share_lies_between_0_and_1(door: Door, checkout: Path) -> None:
    folder = checkout / "labs" / LAB
    text = (folder / "lab.yml").read_text()
    also = "    ruleset: raw-drop\n    traffic: flood\n    also: [delivered]\n"
    (folder / "lab.yml").write_text(text.replace("    ruleset: raw-drop\n    traffic: flood\n", also))
    (folder / "answers.yml").write_text(yaml.safe_dump({"predictions": [SHARE], "questions": [WORKBOOK]}))
    code, _, complaint = door("predict", LAB, "packet", "19")
    assert code == EXIT_USAGE
    assert "packet: the question asks for a share, from 0 to 1 (got 19); a percentage has its sign: 19%" in complaint
    assert door("predict", LAB, "packet", "19%")[1].startswith("packet: you predict 19.0 %\n")


def test_two_questions_have_two_names_and_each_its_section(door: Door, checkout: Path) -> None:
    folder = checkout / "labs" / LAB
    (folder / "explained.md").unlink()
    door("predict", LAB, "packet", "5")
    measure(door)
    assert f"labs/{LAB}/explained.md: no section packet" in door("predict", LAB, "packet")[2]
    (folder / "answers.yml").write_text(
        yaml.safe_dump({"predictions": [ASKED], "questions": [{**WORKBOOK, "id": "packet"}]})
    )
    assert "question packet is declared twice" in door("predict", LAB, "packet")[2]


def test_a_lab_whose_page_asks_nothing(door: Door, checkout: Path) -> None:
    (checkout / "labs" / LAB / "answers.yml").unlink()
    code, _, complaint = door("predict", LAB)
    assert (code, complaint) == (
        EXIT_USAGE, f"fwlab: the page of {LAB} asks nothing to predict\n  next: fwlab status {LAB}\n"
    )  # fmt: skip
