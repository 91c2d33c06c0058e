# SPDX-License-Identifier: GPL-2.0-or-later
"""The workbook: its derivations, its file, the command, and that each lab's questions can be answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from fwlab.checkout.project import Project
from fwlab.measure.saved_runs import load_run, published_files
from fwlab.model.errors import EXIT_FAIL, EXIT_USAGE, BadInput
from fwlab.model.results import Measured
from fwlab.student.measured import case_runs, keep_cases
from fwlab.student.progress import read_progress
from fwlab.student.workbook import Question, agrees, derived, slip, workbook_of
from tests.checkout import PROJECT, lab_named
from tests.fakes import factories
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import EX1, LAB, Door, Measuring

#: The lab of the factories, with capacities of which the costs are whole numbers.
MADE_UP = factories.a_lab()
RUN = factories.a_run(
    [
        factories.measured(MADE_UP, "raw-drop", 250_000, 250_000, 250_000),  # 4000 ns
        factories.measured(MADE_UP, "set-1", 200_000, 200_000, 200_000),  # 5000 ns
        factories.measured(MADE_UP, "rules-16", 200_000, 200_000, 200_000, loads=[0.4]),  # 0.1 s on the reference CPU
        factories.measured(MADE_UP, "rules-1024", 40_000, 40_000, 40_000, loads=[4.4]),  # 25 000 ns
    ]
)


def question(answer: dict, **fields: object) -> Question:
    texts = {"id": "q", "question": "How much?", "hint": "Think in costs.", "why": "Why so?"}
    return Question.model_validate({**texts, "answer": answer, **fields})


@pytest.mark.parametrize(
    ("answer", "metric", "value"),
    [
        ({"derive": "figure", "case": "raw-drop"}, "capacity", 250.0),  # kpps, as reports show it
        ({"derive": "cost", "case": "raw-drop"}, "capacity", 4000.0),
        ({"derive": "difference", "case": "set-1", "less": "raw-drop"}, "capacity", 1000.0),
        ({"derive": "ratio", "case": "set-1", "to": "raw-drop"}, "capacity", 0.8),
        ({"derive": "share", "case": "raw-drop", "of": "set-1"}, "capacity", 0.8),
        ({"derive": "share", "case": "set-1", "of": "rules-1024", "base": "raw-drop"}, "capacity", 1 / 21),
        ({"derive": "per step", "sweep": "rules"}, "capacity", 20_000 / 1008),
        ({"derive": "per step", "sweep": "rules", "from": 16, "to": 1024}, "load_time", 1e9 / 1008),
        ({"derive": "break-even", "case": "set-1", "base": "raw-drop", "sweep": "rules"}, "capacity", 50.4),
        ({"derive": "break-even", "case": "raw-drop", "sweep": "rules"}, "capacity", 201.6),
        ({"derive": "mix", "shares": {"raw-drop": 0.75, "set-1": 0.25}}, "capacity", 1e6 / 4250),
    ],
    ids=lambda value: value["derive"] if isinstance(value, dict) else str(value),
)
def test_derivations(answer: dict, metric: str, value: float) -> None:
    assert derived(MADE_UP, question(answer, metric=metric), [RUN]) == pytest.approx(value)


def test_the_crossing_is_that_of_the_report() -> None:
    lab = lab_named("lab04-nftables")
    run = load_run(published_files(PROJECT, lab)[0], lab.id)
    asked = question({"derive": "crossing", "crossover": lab.crossovers[0].id})
    assert derived(lab, asked, [run]) > 0
    same = [case.model_copy(update={"trials": run.cases[0].trials}) for case in run.cases]
    with pytest.raises(BadInput, match="do not cross in your run"):
        derived(lab, asked, [run.model_copy(update={"cases": same})])


def test_a_case_that_was_not_measured_is_named_with_the_command() -> None:
    asked = question({"derive": "difference", "case": "set-1000", "less": "load-each-16"})
    with pytest.raises(BadInput, match="no figure yet of set-1000, load-each-16") as refused:
        derived(MADE_UP, asked, [RUN])
    assert refused.value.hint == "fwlab run lab99-made-up set-1000 load-each-16"


def keep(checkout: Path, *cases: Measured, **fields: object) -> None:
    lab = checkouts.lab(checkout)
    keep_cases(Project(checkout), lab, factories.a_run(list(cases), lab=LAB, **fields))


def test_a_doubtful_figure_does_not_count_and_replaces_none(checkout: Path) -> None:
    asked = question({"derive": "cost", "case": "raw-drop"})
    doubtful = factories.measured(MADE_UP, "raw-drop", 99_000, problems=["idle"])
    with pytest.raises(BadInput, match="no figure yet of raw-drop"):
        derived(MADE_UP, asked, [factories.a_run([doubtful])])
    lab = checkouts.lab(checkout)
    keep(checkout, factories.measured(lab, "raw-drop", 250_000))
    keep(checkout, doubtful)
    assert derived(lab, asked, case_runs(Project(checkout), lab)) == 4000


def test_cases_of_several_runs_add_up_unless_the_dut_is_another(checkout: Path) -> None:
    lab, project = checkouts.lab(checkout), Project(checkout)
    keep(checkout, factories.measured(lab, "raw-drop", 1000), factories.measured(lab, "rules-16", 2))
    keep(checkout, factories.measured(lab, "rules-16", 3000))
    [kept] = case_runs(project, lab)
    expected = {"raw-drop": factories.trials(1000), "rules-16": factories.trials(3000)}
    assert {case.id: case.trials for case in kept.cases} == expected
    keep(checkout, factories.measured(lab, "rules-16", 2000), testbed=factories.real())
    [kept] = case_runs(project, lab)
    assert [case.id for case in kept.cases] == ["rules-16"]


@pytest.mark.parametrize(
    ("given", "expected", "right", "says"),
    [
        (104.9, 100, True, ""),
        (95.1, 100, True, ""),
        (105.1, 100, False, ""),
        (94, 100, False, ""),
        (0, 0, True, ""),
        (-104, -100, True, ""),
        (-100, 100, False, "wrong sign"),
        (250.0, 250_000, False, "a thousand times too small"),
        (19, 0.19, False, "a hundred times too large"),
    ],
)
def test_five_percent_to_each_side_and_usual_slips(given: float, expected: float, right: bool, says: str) -> None:
    assert agrees(given, expected) is right
    assert says in slip(given, expected)
    assert right or bool(says) is bool(slip(given, expected))


# ---- the file --------------------------------------------------------------------------------------

QUESTION = question({"derive": "cost", "case": "raw-drop"}, hint="-", why="-").model_dump(
    by_alias=True, exclude_defaults=True
)


def write(checkout: Path, **fields: object) -> None:
    text = yaml.safe_dump({"questions": [{**QUESTION, "unit": "instructions", **fields}]})
    (checkout / "labs" / LAB / "answers.yml").write_text(text)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"answer": {"derive": "cost", "case": "no-such"}}, "question q: unknown case no-such"),
        ({"answer": {"derive": "per step", "sweep": "no-such"}}, "question q: unknown sweep no-such"),
        ({"answer": {"derive": "per step", "sweep": "rules", "from": 17}}, "17 is not a number among the values"),
        ({"answer": {"derive": "per step", "sweep": "rules", "to": 16}}, "begin and end at 16"),
        ({"answer": {"derive": "crossing", "crossover": "none"}}, "question q: unknown crossover none"),
        ({"answer": {"derive": "mix", "shares": {"raw-drop": 0.5, "rules-16": 0.4}}}, "do not add up to 1"),
        ({"metric": "speed"}, "unknown metric 'speed'"),
        ({"metric": "load_time"}, "question q: case raw-drop does not measure load_time"),
        ({"class": "nobody"}, "question q: unknown class nobody"),
    ],
    ids=str,
)
def test_a_faulty_answers_yml_is_named(checkout: Path, fields: dict, says: str) -> None:
    write(checkout, **fields)
    with pytest.raises(BadInput) as refused:
        workbook_of(Project(checkout), checkouts.lab(checkout))
    assert says in refused.value.message
    assert refused.value.message.startswith(f"labs/{LAB}/answers.yml: ")
    assert f"fix labs/{LAB}/answers.yml" in refused.value.hint


def test_two_questions_have_two_names(checkout: Path) -> None:
    (checkout / "labs" / LAB / "answers.yml").write_text(yaml.safe_dump({"questions": [QUESTION, QUESTION]}))
    with pytest.raises(BadInput, match="question q is declared twice"):
        workbook_of(Project(checkout), checkouts.lab(checkout))


# ---- the command -----------------------------------------------------------------------------------


@pytest.fixture
def door(checkout: Path, door: Door) -> Door:
    write(checkout)
    return door


def test_a_question_from_first_to_last(door: Door, checkout: Path) -> None:
    assert [line.rstrip() for line in door("answer", LAB)[1].splitlines()] == [f"{'q':<20} open", "    How much?"]
    assert "How much?" in door("answer", LAB, "q")[1]
    code, _, complaint = door("answer", LAB, "q", "3333")
    assert "workbook: 1 open\n" in door("status", LAB)[1], "what was not tried is not wrong"
    assert (code, complaint) == (
        EXIT_USAGE, f"fwlab: q: you have no figure yet of raw-drop\n  next: fwlab run {LAB} raw-drop\n"
    )  # fmt: skip
    door("run", LAB, "raw-drop", "--testbed", "virtual")
    code, said, _ = door("answer", LAB, "q", "4000")
    assert code == EXIT_FAIL
    assert said == "q: not within 5 % of what your run gives. -\n", "the right number stays untold"
    code, said, _ = door("answer", LAB, "q", "3.3")
    assert "a thousand times too small" in said
    code, said, _ = door("answer", LAB, "q", "3400")
    assert code == 0
    assert said.startswith("q: right: your run gives 3333 instructions (yours is +2.0 % off)\nNow say why")
    assert door("answer", LAB)[1].startswith(f"{'q':<20} 3400 instructions: right; the reason is missing\n")
    code, said, _ = door("answer", LAB, "q", "--why", "A packet costs\n this much.")
    assert (code, said) == (0, "Your reason is in work/progress.yml, which you hand in.\n")
    answer = read_progress(checkouts.lab(checkout)).answers["q"]
    assert (answer.value, answer.right, answer.tries, answer.why) == (3400, True, 3, "A packet costs this much.")
    code, said, _ = door("answer", LAB, "q", "9")
    assert (code, said.splitlines()[-1]) == (EXIT_FAIL, "Your answer 3400 is right, and stays.")
    assert "workbook: 1 right\n" in door("status", LAB)[1]


def test_answers_for_a_program(door: Door) -> None:
    [asked, *exercises] = json.loads(door("answer", LAB, "--json")[1])
    assert asked == {
        "id": "q", "question": "How much?", "unit": "instructions", "value": None, "right": False, "tries": 0, "why": ""
    }  # fmt: skip
    assert exercises[0] == {"id": EX1, "why": ""}
    door("run", LAB, "raw-drop", "--testbed", "virtual")
    code, said, _ = door("answer", LAB, "q", "4000", "--json")
    assert (code, json.loads(said)) == (EXIT_FAIL, [{**asked, "value": 4000, "tries": 1}])
    code, said, _ = door("answer", LAB, "q", "3400", "--why", "So it is.", "--json")
    assert (code, json.loads(said)) == (0, [{**asked, "value": 3400, "right": True, "tries": 2, "why": "So it is."}])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["q", "1e999"], "is not a number to answer with"),
        ([EX1, "5"], f"{EX1} is an exercise: it has no number here\n  next: fwlab predict {LAB} {EX1}"),
        ([EX1, "--why", "So."], f"{EX1}: a reason comes after a check that passes\n  next: fwlab check {LAB} {EX1}"),
        (["none"], f"the workbook of {LAB} has no question none; it has: q\n  next: fwlab answer {LAB}"),
        (["q", "--why", "So."], f"q: a reason belongs to a number\n  next: fwlab answer {LAB} q NUMBER"),
        (["q", "5", "--why", "x" * 2001], "a reason has 1 to 2000 characters (got 2001)"),
        (["q", "5", "--why", " "], "a reason has 1 to 2000 characters (got 0)"),
    ],
    ids=lambda value: " ".join(value)[:20] if isinstance(value, list) else "",
)
def test_a_wrong_argument_is_named(door: Door, words: list[str], says: str) -> None:
    code, _, complaint = door("answer", LAB, *words)
    assert code == EXIT_USAGE
    assert says in complaint


def test_a_lab_without_a_workbook(door: Door, checkout: Path) -> None:
    (checkout / "labs" / LAB / "answers.yml").unlink()
    assert door("answer", LAB)[2] == f"fwlab: {LAB} has no workbook\n  next: fwlab status {LAB}\n"


def test_an_interrupted_run_keeps_what_was_finished(
    door: Door, checkout: Path, session: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(specs: list) -> None:
        session.run.cases.append(session._measured(specs[0], 250_000))
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "measure_cases", interrupted)
    code, _, complaint = door("run", LAB, "--testbed", "virtual")
    assert code == 130
    told = f"the finished case is kept: fwlab report {LAB} reports/{LAB}/measured.json\n"
    assert told in complaint
    assert door(*told.split("fwlab ")[1].split())[0] == 0
    assert door("answer", LAB, "q", "4000")[0] == 0


def test_a_damaged_file_of_cases_is_replaced_by_the_next_run_and_named_before(door: Door, checkout: Path) -> None:
    path = checkout / "reports" / LAB / "measured.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    code, _, complaint = door("answer", LAB, "q", "5")
    assert code == EXIT_USAGE
    assert "measured.json: not a run of fwlab\n  next: fwlab run" in complaint
    door("run", LAB, "raw-drop", "--testbed", "virtual")
    assert door("answer", LAB, "q", "3333")[0] == 0
