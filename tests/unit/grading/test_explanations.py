# SPDX-License-Identifier: GPL-2.0-or-later
"""An instructor gets a class's numbers and reasons as one table, whatever the files say."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

import pytest
import yaml

from fwlab.grading.class_files import WORKBOOK_COLUMNS, explanations
from fwlab.model.errors import BadInput
from tests.checkout import PROJECT, lab_named

LAB = lab_named("lab03-ipset")


def hand_in(folder: Path, student: str, document: object) -> None:
    (folder / student).mkdir(parents=True)
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    (folder / student / "progress.yml").write_text(text)


def rows(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(explanations(PROJECT, LAB, folder))))


def test_numbers_are_judged_anew_and_reasons_kept(tmp_path: Path) -> None:
    answers = {
        "rule": {"value": 17.0, "right": False, "tries": 2, "why": "One comparison."},
        "packet": {"value": 1.0, "right": True, "why": "=HYPERLINK(1)"},
    }
    done = {"ex1-one-host": {"predicted": 250000.0, "why": "It drops early."}}
    made = {"tools": {"value": 0.5, "measured": 3.6}, "set": {"value": 0.9, "late": True}}
    hand_in(tmp_path, "ada", {"lab": LAB.id, "answers": answers, "predictions": made, "exercises": done})
    found = {row["question"]: row for row in rows(tmp_path)}
    assert list(found["rule"]) == list(WORKBOOK_COLUMNS)
    assert list(found["rule"].values()) == ["ada", "rule", "17", "yes", "2", "One comparison."]
    assert (found["packet"]["agrees"], found["packet"]["why"]) == ("no", "'=HYPERLINK(1)"), "no word of the file counts"
    assert list(found["half"].values()) == ["ada", "half", "", "", "0", ""]
    assert list(found["tools"].values()) == ["ada", "tools", "0.5", "", "", ""]
    assert list(found["set"].values()) == ["ada", "set", "0.9", "", "", "predicted after the measurement"]
    assert list(found["ex1-one-host"].values()) == ["ada", "ex1-one-host", "250000", "", "0", "It drops early."]


def test_a_missing_or_damaged_file_stops_nobody(tmp_path: Path) -> None:
    """A link is not followed: it could show the answers of another student as one's own."""
    (tmp_path / "ada").mkdir()
    hand_in(tmp_path, "bob", "{")
    hand_in(tmp_path, "cleo", {"lab": "lab01-forwarding"})
    hand_in(tmp_path, "dan", {"lab": LAB.id, "answers": {"rule": {"value": 17.0, "right": True}}})
    (tmp_path / "eve").symlink_to("dan")
    (tmp_path / "fay").mkdir()
    (tmp_path / "fay" / "progress.yml").symlink_to("../dan/progress.yml")
    found = rows(tmp_path)
    assert sum(row["who"] == "ada" for row in found) == 7 + 7 + len(LAB.exercises)
    assert [row["why"][:11] for row in found if row["who"] in ("bob", "cleo")] == ["unreadable:"] * 2
    assert [row["why"] for row in found if row["who"] in ("eve", "fay")] == ["unreadable: a link"] * 2
    assert [(row["who"], row["agrees"]) for row in found if row["answer"]] == [("dan", "yes")]


def test_a_folder_without_students_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("none", "empty"):
        with pytest.raises(BadInput, match=name):
            explanations(PROJECT, LAB, tmp_path / name)


def test_a_file_of_many_aliases_takes_no_time(tmp_path: Path) -> None:
    """A megabyte of YAML may stand for millions of tries."""
    tries = "[" + ",".join(["*t"] * 2000) + "]"
    head = f"lab: {LAB.id}\nanswers: {{}}\nexercises:\n"
    one = f"  a: &e {{tries: [&t {{at: now, outcome: pass}}, {tries[1:-1]}]}}\n"
    hand_in(tmp_path, "eve", head + one + "".join(f"  x{number}: *e\n" for number in range(60_000)))
    began = time.process_time()
    assert rows(tmp_path)[0]["why"].startswith("unreadable: work/progress.yml: exercises")
    assert time.process_time() - began < 10
