# SPDX-License-Identifier: GPL-2.0-or-later
"""What a class has predicted and explained: read with the rulesets, kept in the record, shown on the pages."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from fwlab.grading.class_files import OFF, predictions_of_class, reasons_of_class
from fwlab.grading.record import FILE, Grading, Predicted, Said, StudentRecord, merged, read_record
from tests.fakes.fake_grading import EXERCISE, LAB, FakeGrading

ASKED = {
    "predictions": [{"id": "page", "question": "?", "answer": {"derive": "cost", "case": "raw-drop"}}],
    "questions": [
        {"id": "book", "question": "?", "answer": {"derive": "cost", "case": "rules-16"}, "hint": "-", "why": "-"}
    ],
}


def progress(grading: FakeGrading, who: str, text: str = "", **fields: Any) -> None:
    """Hand in a progress with the rulesets."""
    (grading.folder / who / "progress.yml").write_text(text or yaml.safe_dump({"lab": LAB, **fields}))


def tried(predicted: float, measured: float, why: str = "") -> dict[str, Any]:
    tries = [{"at": "now", "outcome": "pass", "measured": measured}]
    return {"exercises": {EXERCISE: {"predicted": predicted, "why": why, "tries": tries}}}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> FakeGrading:
    grading = FakeGrading(tmp_path_factory.mktemp("graded"))
    (grading.top / "labs" / LAB / "answers.yml").write_text(yaml.safe_dump(ASKED))
    grading.hand_in_all(ann="fine", bob="fine", cid="fine", dan="fine", eve="fine", fay="fine")
    made = {"page": {"value": 2.0, "measured": 4.5}, "none": {"value": 1.0}}
    answers = {"book": {"value": 3.0, "right": True, "why": "It is <b>three</b>."}}
    progress(grading, "ann", **tried(200.0, 300.0, "It drops early."), predictions=made, answers=answers)
    progress(grading, "bob", **tried(300.0, 300.0), predictions={"page": {"value": 4.6, "measured": 4.5}})
    progress(grading, "cid", predictions={"page": {"value": 5.0, "measured": 4.5, "late": True}})
    progress(grading, "dan", "{")
    (grading.folder / "eve" / "progress.yml").symlink_to("../ann/progress.yml")
    tries = ",".join(["*t"] * 2000)
    head = f"lab: {LAB}\nexercises:\n  a: &e {{tries: [&t {{at: now, outcome: pass}}, {tries}]}}\n"
    progress(grading, "fay", head + "".join(f"  x{number}: *e\n" for number in range(60_000)))
    began = time.process_time()
    grading.run("--results", str(grading.top / "one"))
    assert time.process_time() - began < 60
    return grading


def page(graded: FakeGrading, name: str) -> str:
    return (graded.top / "one" / name).read_text()


def row(text: str, question: str) -> list[str]:
    found = re.search(rf'<tr><td class="name">{question}</td>(.*?)</tr>', text, re.DOTALL)
    assert found, question
    return re.findall(r"<td[^>]*>(.*?)</td>", found[1])


def test_what_each_has_said_is_in_the_record(graded: FakeGrading) -> None:
    said = {who: one.said for who, one in read_record(graded.top / "one").students.items()}
    assert said["ann"] == Said(
        predictions={"page": Predicted(value=2, measured=4.5), EXERCISE: Predicted(value=200, measured=300)},
        reasons={EXERCISE: "It drops early.", "book": "It is <b>three</b>."},
    ), "and nothing that the lab does not ask"
    assert said["cid"] == Said(), "predicted after the measurement"
    assert said["dan"].unread.startswith("work/progress.yml:1: not YAML")
    assert said["eve"] == Said(), "a link may lead to another student's"
    assert said["fay"].unread, "60 000 exercises"
    assert {mark["verdict"] for mark in graded_marks(graded)} == {"pass"}, "no mark depends on it"


def graded_marks(graded: FakeGrading) -> list[dict[str, str]]:
    header, *lines = page(graded, "marks.csv").splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=False)) for line in lines]


def test_the_class_page_has_the_distribution_and_the_reasons(graded: FakeGrading) -> None:
    text = page(graded, "class.html")
    assert row(text, "page") == ["1", "0", "1", "0", "0", "0"]
    assert row(text, EXERCISE) == ["0", "1", "1", "0", "0", "0"]
    assert f"<summary>{EXERCISE}: 1 of 6 students</summary>" in text
    assert "<dt>ann</dt><dd>It is &lt;b&gt;three&lt;/b&gt;.</dd>" in text


def test_a_students_page_has_the_own_predictions_next_to_the_class(graded: FakeGrading) -> None:
    text = page(graded, "students/ann/index.html")
    assert row(text, "page") == ["2", "4.5", "<strong>1</strong>", "0", "1", "0", "0"]
    assert "Your reason:</span> It drops early." in text
    other = page(graded, "students/bob/index.html")
    assert row(other, EXERCISE)[:2] == ["300", "300"]
    assert "It drops early." not in other
    assert "ann" not in other, "who predicted what stays with the instructor"
    assert "could not be read: work/progress.yml:1" in page(graded, "students/dan/index.html")


@pytest.mark.parametrize(
    ("value", "measured", "bar"),
    [(4, 10, 0), (5, 10, 0), (8, 10, 1), (10, 10, 2), (10.9, 10, 2), (12, 10, 3), (21, 10, 4), (-10, 10, 0), (0, 0, 2),
     (1, 0, 4), (-9, -10, 1)],
)  # fmt: skip
def test_bars(value: float, measured: float, bar: int) -> None:
    student = StudentRecord(id="ann", said=Said(predictions={"q": Predicted(value=value, measured=measured)}))
    [found] = predictions_of_class(Grading(lab=LAB, title="t", exercises={}, students=[student]))
    assert found.bar_of("ann") == bar
    assert len(found.students) == len(OFF)


def test_a_prediction_that_was_not_measured_is_counted_apart() -> None:
    student = StudentRecord(id="ann", said=Said(predictions={"q": Predicted(value=1)}))
    [found] = predictions_of_class(Grading(lab=LAB, title="t", exercises={}, students=[student]))
    assert (found.open, found.bar_of("ann")) == (1, None)
    assert reasons_of_class(Grading(lab=LAB, title="t", exercises={}, students=[student])) == {}


def test_parts_of_a_class_keep_what_was_said(graded: FakeGrading, tmp_path: Path) -> None:
    """A part that was handed in without progress takes none away."""
    one, other = graded.top / "one", tmp_path / "other"
    other.mkdir()
    entries = [json.loads(line) for line in (one / FILE).read_text().splitlines()]
    (other / FILE).write_text(
        "".join(json.dumps({**entry, "said": {}} if "said" in entry else entry) + "\n" for entry in entries)
    )
    for folders in ([one, other], [other, one]):
        assert merged(folders).students["ann"].said.reasons[EXERCISE] == "It drops early."
