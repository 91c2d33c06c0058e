# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a command takes is told before it starts, from what its cases took before."""

import json
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import write_document
from fwlab.cli import main
from fwlab.student.measured import USUAL_S, estimate, rounded
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, LAB, Measuring


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    checkouts.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, **seconds: float) -> None:
    write_document(path, json.dumps({"cases": [{"id": name, "wall_s": value} for name, value in seconds.items()]}))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "10 s"),
        (14, "10 s"),
        (26, "30 s"),
        (89, "90 s"),
        (91, "2 minutes"),
        (800, "13 minutes"),
        (2000, "35 minutes"),
    ],
)
def test_an_estimate_is_no_more_exact_than_it_is(seconds: float, words: str) -> None:
    assert rounded(seconds) == words


def test_what_this_host_measured_counts_before_what_is_published(checkout: Path) -> None:
    project, lab = Project(checkout), checkouts.lab(checkout)
    assert estimate(project, lab, ["raw-drop", "rules-16"]).seconds == 2 * USUAL_S
    write(checkout / "results" / LAB / "2026-01-01-full.json.gz", **{"raw-drop": 30.0})
    guess = estimate(project, lab, ["raw-drop", "rules-16"])
    assert (guess.seconds, guess.own) == (30 + USUAL_S, False)
    assert "a guess" in str(guess), "rules-16 was never measured"
    assert "on the authors' host" in str(estimate(project, lab, ["raw-drop"]))
    write(checkout / "reports" / LAB / "run.json", **{"raw-drop": 100.0, "rules-16": 200.0})
    guess = estimate(project, lab, ["raw-drop", "rules-16"])
    assert (guess.seconds, guess.own) == (300, True)
    assert str(guess) == "about 5 minutes (as before)"


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "3", "{}", '{"cases": 3}', '{"cases": [3]}', '{"cases": [{"id": "raw-drop"}]}',
             '{"cases": [{"id": "raw-drop", "wall_s": "long"}]}', "[" * 100_000]
)  # fmt: skip
def test_a_file_that_is_no_run_is_passed_over(checkout: Path, text: str) -> None:
    write_document(checkout / "results" / LAB / "odd.json.gz", text)
    assert estimate(Project(checkout), checkouts.lab(checkout), ["raw-drop"]).seconds == USUAL_S


def test_run_and_check_say_it_before_they_start(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session, before = Measuring(), []

    def open_session(*_: object) -> object:
        before.append(capsys.readouterr().err)
        return session.open()

    monkeypatch.setattr(main, "open_session", open_session)
    door = checkouts.door(monkeypatch, capsys)
    for words in (["run", LAB, "raw-drop"], ["run", LAB], ["check", LAB, EX1], ["check", LAB, EX1]):
        door(*words, "--testbed", "virtual")
    assert before[0].startswith("raw-drop: about 20 s (a guess")
    assert before[1].startswith("3 cases: about 40 s (a guess")
    assert f"{EX1}: rules.iptables\nabout 20 s (a guess" in before[2]
    assert f"{EX1}: rules.iptables\nabout 10 s (as before)\n" in before[3]
