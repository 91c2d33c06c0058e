# SPDX-License-Identifier: GPL-2.0-or-later
"""What a student has done is kept in work/progress.yml: by checks, hints and answers, whatever else happens."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
import yaml

from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNMEASURED, EXIT_USAGE, BadInput
from fwlab.model.verdict import Outcome
from fwlab.student.progress import (
    MAX_TRIES,
    ExerciseProgress,
    Progress,
    Try,
    next_step,
    read_progress,
    update,
)
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, EX2, LAB, Door, Measuring


def work(checkout: Path) -> Path:
    return checkout / "labs" / LAB / "work"


def edit(checkout: Path, text: str) -> None:
    rules = work(checkout) / EX1 / "rules.iptables"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text(f"*raw\n{text}\nCOMMIT\n")


def status(door: Door) -> dict:
    return json.loads(door("status", LAB, "--json")[1])


# ---- checks ----------------------------------------------------------------------------------------


def test_the_next_command_leads_from_the_prediction_to_the_last_exercise(
    door: Door, session: Measuring, checkout: Path
) -> None:
    assert status(door)["next"] == f"fwlab predict {LAB} {EX1}"
    assert not list(work(checkout).iterdir()), "looking changes nothing"
    door("predict", LAB, EX1, "200k")
    assert status(door)["next"] == f"fwlab start {LAB} {EX1}"
    door("start", LAB, EX1)
    assert status(door)["next"] == f"fwlab check {LAB} {EX1}"
    session.arrived = 900
    code, said, _ = door("check", LAB, EX1, "--testbed", "virtual")
    assert code == EXIT_FAIL
    assert said.endswith(f"next: change labs/{LAB}/work/{EX1}/ and check again: fwlab check {LAB} {EX1}\n")
    session.arrived = 0
    code, said, _ = door("check", LAB, EX1, "--testbed", "virtual")
    assert code == EXIT_PASS
    assert f"{EX1}: now say why it passes, in two sentences: fwlab answer {LAB} {EX1} --why" in said
    assert f"{EX1}: the last time 250.0 kpps, fail: delivered, attacker\nnext: " in said
    assert status(door)["next"] == f"fwlab predict {LAB} {EX2}"
    door("predict", LAB, EX2, "1")
    door("check", LAB, EX2, "--testbed", "virtual")
    for name in (EX1, EX2):
        assert status(door)["next"] == f'fwlab answer {LAB} {name} --why "..."'
        door("answer", LAB, name, "--why", "It drops\n one host.")
    assert read_progress(checkouts.lab(checkout)).of(EX1).why == "It drops one host."
    assert status(door)["next"] is None
    assert f"next: all done: hand in what is in labs/{LAB}/work/\n" in door("status", LAB)[1]
    assert [one["id"] for one in status(door)["exercises"]] == [EX1, EX2]


def test_a_prediction_is_compared_with_the_first_figure(door: Door, session: Measuring) -> None:
    door("predict", LAB, EX1, "200000")
    session.arrived = 900
    door("check", LAB, EX1, "--testbed", "virtual")
    code, _, complaint = door("predict", LAB, EX1, "250000")
    assert code == EXIT_USAGE
    assert "a prediction comes before that\n  next: fwlab status" in complaint
    found = status(door)["exercises"][0]
    assert (found["tries"], found["predicted"], found["first_measured"]) == (1, 200_000, 250_000)
    table = door("status", LAB)[1]
    assert "200.0 kpps" in table
    assert "250.0 kpps (×1.25)" in table
    assert "fail: delivered, attacker" in " ".join(table.split())


def test_a_prediction_about_the_start_is_compared_with_the_start_alone(
    door: Door, session: Measuring, checkout: Path
) -> None:
    path = checkout / "labs" / LAB / "lab.yml"
    declared = yaml.safe_load(path.read_text())
    question = {"question": "What share gets through?", "metric": "delivered", "class": "attacker", "start": True}
    declared["exercises"][0]["predict"] = question
    path.write_text(yaml.safe_dump(declared))
    door("predict", LAB, EX1, "100%")
    door("start", LAB, EX1)
    assert "check the start" in door("status", LAB)[1]
    edit(checkout, "-A PREROUTING -s 198.18.20.66 -j DROP")
    _, said, complaint = door("check", LAB, EX1, "--testbed", "virtual")
    assert "You predicted" not in said
    assert f"{EX1}: your prediction is about the start" in complaint
    assert status(door)["exercises"][0]["first_measured"] is None
    door("reset", LAB, EX1)
    session.arrived = 450
    assert "You predicted 100 %, measured 50 %" in " ".join(door("check", LAB, EX1, "--testbed", "virtual")[1].split())
    assert status(door)["exercises"][0]["first_measured"] == 0.5


def test_a_missing_prediction_and_missing_work_are_told_before_the_measurement(door: Door, checkout: Path) -> None:
    _, _, complaint = door("check", LAB, EX1, "--testbed", "virtual")
    assert f"{EX1}: not begun yet, so its start is measured: fwlab start {LAB} {EX1}\n" in complaint
    edit(checkout, "-A PREROUTING -j ACCEPT")
    (work(checkout) / "progress.yml").unlink()
    _, _, complaint = door("check", LAB, EX1, "--testbed", "virtual")
    assert f"{EX1}: you have not predicted anything: fwlab predict {LAB} {EX1} NUMBER\n" in complaint
    assert f"{EX1}: rules.iptables\n" in complaint


def test_an_inconclusive_check_is_a_try_but_decides_nothing(door: Door, session: Measuring) -> None:
    session.problems = ["the DUT was idle"]
    assert door("check", LAB, EX1, "--testbed", "virtual")[0] == EXIT_UNMEASURED
    found = status(door)["exercises"][0]
    assert (found["tries"], found["last"], found["first_measured"]) == (1, "inconclusive", None)
    assert door("predict", LAB, EX1, "200k")[0] == 0, "nothing was measured, so nothing is known"


def test_a_full_disk_loses_the_record_and_not_the_result(
    door: Door, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise BadInput("no room", "df -h")

    monkeypatch.setattr("fwlab.student.progress.write_atomically", full)
    code, said, complaint = door("check", LAB, EX1, "--testbed", "virtual")
    assert code == EXIT_PASS
    assert "your progress was not recorded: no room" in complaint
    assert "report: " in said


# ---- the file --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text", "says"),
    [
        (["status", LAB], b"lab: [", "not YAML"),
        (["check", LAB], b"lab: lab03-ipset", "the progress in lab03-ipset, not in lab98-trouble"),
        (
            ["hint", LAB, EX1],
            f"lab: {LAB}\nexercises: {{ex1-block: {{hints: -1}}}}".encode(),
            "exercises.ex1-block.hints",
        ),
        (["goto", LAB, EX1], f"lab: {LAB}\nanswers: {{t: {{value: .nan, right: true}}}}".encode(), "answers.t.value: "),
        (["status", LAB], b"\xff\xfe", "not text in UTF-8"),
    ],
    ids=str,
)
def test_a_damaged_file_is_named_with_what_to_do(
    door: Door, checkout: Path, session: Measuring, words: list[str], text: bytes, says: str
) -> None:
    (checkout / "labs" / LAB / "hints.yml").write_text(f"{EX1}: [Think., Think more.]\n")
    path = work(checkout) / "progress.yml"
    path.write_bytes(text)
    code, _, complaint = door(*words)
    assert code == EXIT_USAGE
    assert complaint.startswith("fwlab: work/progress.yml")
    assert f"\n  next: mv labs/{LAB}/work/progress.yml labs/{LAB}/work/progress.yml.damaged, then" in complaint
    assert says in complaint
    assert session.opened == 0, "nothing was measured"
    assert [file.name for file in work(checkout).iterdir()] == ["progress.yml"], "nothing was moved"
    path.rename(path.with_name("progress.yml.damaged"))
    assert door("status", LAB)[0] == 0


def test_the_file_is_written_whole_and_read_back(checkout: Path) -> None:
    lab = checkouts.lab(checkout)
    one = Try(at="2026-01-01", ruleset="a", outcome=Outcome.FAIL, failed=["capacity"], measured=1.5)
    progress = Progress(lab=LAB, current=EX2).with_tries({EX1: one}, {EX1: 3.0})
    assert update(lab, lambda _: progress) == progress == read_progress(lab)
    assert yaml.safe_load((work(checkout) / "progress.yml").read_text())["format"] == "fwlab-progress/1"
    assert [path.name for path in work(checkout).iterdir()] == ["progress.yml"], "no draft is left"


def test_two_commands_at_once_lose_nothing(checkout: Path) -> None:
    lab = checkouts.lab(checkout)

    def ask() -> None:
        for _ in range(25):
            update(lab, lambda progress: progress.with_exercise(EX1, hints=progress.of(EX1).hints + 1))

    processes = [multiprocessing.get_context("fork").Process(target=ask) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert read_progress(lab).of(EX1).hints == 75


def test_the_first_figure_and_its_prediction_are_kept_of_many_tries() -> None:
    progress = Progress(lab=LAB).with_tries({EX1: Try(at="doubtful", outcome=Outcome.INCONCLUSIVE)}, {EX1: 0.0})
    for index in range(1, MAX_TRIES + 50):
        one = Try(at=str(index), ruleset=str(index), outcome=Outcome.FAIL, measured=float(index))
        progress = progress.with_tries({EX1: one}, {EX1: float(index)})
        if index == 1:
            first = progress.of(EX1)
            assert (first.predicted, first.first_measured) == (1.0, one)
    found = progress.of(EX1)
    assert (len(found.tries), found.first_measured, found.tries[-1].at) == (
        MAX_TRIES,
        first.first_measured,
        str(MAX_TRIES + 49),
    )
    assert found.predicted == 1.0


def test_only_different_rulesets_of_ones_own_count_for_the_solution() -> None:
    tries = [
        Try(at="", ruleset=ruleset, outcome=outcome, start=ruleset == "start")
        for ruleset, outcome in [*zip(("start", "a", "a", "b"), ["fail"] * 4, strict=True), ("c", "inconclusive")]
    ]
    assert ExerciseProgress(tries=tries).solutions_tried == 2


# ---- what comes next ------------------------------------------------------------------------------


def test_what_comes_next(checkout: Path) -> None:
    path = checkout / "labs" / LAB / "lab.yml"
    declared = yaml.safe_load(path.read_text())
    lab, none = checkouts.lab(checkout), Progress(lab=LAB)
    declared["exercises"][0]["further"] = True
    path.write_text(yaml.safe_dump(declared))
    further = checkouts.lab(checkout)
    chosen, gone = (none.model_copy(update={"current": name}) for name in (EX2, "ex9-gone"))
    came_back = chosen.with_tries({EX2: Try(at="", outcome=Outcome.PASS)}, {})
    for one, progress, exercise in (
        (lab, none, EX1),
        (further, none, EX2),
        (lab, chosen, EX2),  # by goto
        (lab, came_back, EX1),
        (lab, gone, EX1),
    ):
        assert next_step(one, progress, {}, [], ()).command == f"fwlab predict {LAB} {exercise}"
    (work(checkout) / EX1).mkdir()
    failed = none.with_tries({EX1: Try(at="", outcome=Outcome.FAIL)}, {})
    assert f"fwlab hint {LAB} {EX1}" in next_step(lab, failed, {EX1: 1.0}, [], {EX1}).why
    assert "hint" not in next_step(lab, failed, {EX1: 1.0}, [], {EX2}).why
