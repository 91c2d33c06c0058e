# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab answer`: the workbook of a lab. A number is checked against the student's own run, the reason is kept."""

import math
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fwlab.checkout.project import find_project
from fwlab.cli import completion
from fwlab.cli.options import LabName, number
from fwlab.cli.output import plain
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_FAIL, BadInput
from fwlab.model.lab import Lab
from fwlab.report.formatting import percent
from fwlab.student.measured import case_runs
from fwlab.student.progress import LONGEST_WHY, Answer, Progress, read_progress, update
from fwlab.student.workbook import WITHIN, Question, agrees, derived, slip, workbook_of

out = Console()


def answer_command(
    lab: LabName,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUESTION]", help="A question (default: list them).", autocompletion=completion.questions
        ),
    ] = None,
    value: Annotated[
        float | None, typer.Argument(metavar="[NUMBER]", parser=number, help="Your answer, in the question's unit.")
    ] = None,
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="TEXT", help="Your reason, in two sentences; your instructor reads it."),
    ] = None,
) -> None:
    """Answer a question of the lab's workbook with a number from your own measurements, and say why it is so."""
    project = find_project()
    found = load_lab(project, lab)
    questions = workbook_of(project, found)
    if not questions:
        raise BadInput(f"{found.id} has no workbook", f"fwlab status {found.id}")
    progress = read_progress(found)
    if question is None:
        for one in questions:
            plain(out, f"{one.id:<20} {_state(progress, one)}")
            out.print(Padding(Text(one.question.strip()), (0, 0, 0, 4)))
        return
    chosen = _chosen(found, questions, question)
    given = progress.answers.get(chosen.id)
    if value is None and why is None:
        plain(out, chosen.question.strip())
        plain(out, f"Then say why: {chosen.why.strip()}")
        plain(out, f"so far: {_state(progress, chosen)}")
        return
    if why is not None and not 0 < len(why.strip()) <= LONGEST_WHY:
        raise BadInput(f"a reason has 1 to {LONGEST_WHY} characters (got {len(why.strip())})", 'write --why "..."')
    if value is None and given is None:
        raise BadInput(f"{chosen.id}: a reason belongs to a number", f"fwlab answer {found.id} {chosen.id} NUMBER")
    if value is not None and not math.isfinite(value):
        raise BadInput(f"{chosen.id}: {value:g} is not a number to answer with", f"fwlab answer {found.id} {chosen.id}")
    expected = None if value is None else derived(found, chosen, case_runs(project, found))
    answer = _answered(given, value, expected, why)
    update(found, lambda current: current.with_answer(chosen.id, answer))
    if value is not None and expected is not None:
        plain(out, f"{chosen.id}: {_comparison(chosen, value, expected)}")
    if not answer.right:
        raise typer.Exit(EXIT_FAIL)
    if not answer.why:
        plain(out, f'Now say why, in two sentences: fwlab answer {found.id} {chosen.id} --why "..."')
        plain(out, f"  {chosen.why.strip()}")
    else:
        plain(out, "Your reason is in work/progress.yml, which you hand in.")


def _chosen(lab: Lab, questions: list[Question], name: str) -> Question:
    found = next((one for one in questions if one.id == name), None)
    if found is None:
        known = ", ".join(one.id for one in questions)
        raise BadInput(f"the workbook of {lab.id} has no question {name}; it has: {known}", f"fwlab answer {lab.id}")
    return found


def _answered(given: Answer | None, value: float | None, expected: float | None, why: str | None) -> Answer:
    """The answer with a new number, or a new reason, or both."""
    reason = " ".join(why.split()) if why is not None else given.why if given else ""
    if value is None or expected is None:
        assert given is not None  # noqa: S101 - the command has refused a reason without a number
        return given.model_copy(update={"why": reason})
    return Answer(value=value, right=agrees(value, expected), tries=given.tries + 1 if given else 1, why=reason)


def _comparison(question: Question, value: float, expected: float) -> str:
    """The right number is not told before it is found."""
    if agrees(value, expected):
        off = percent(value / expected - 1, signed=True) if expected else percent(0.0)
        return f"right: your run gives {expected:.4g} {question.unit}".rstrip() + f" (yours is {off} off)"
    words = f"not within {WITHIN * 100:g} % of what your run gives"
    if mistake := slip(value, expected):
        words += f"; it is {mistake}"
    return f"{words}. {question.hint.strip()}"


def _state(progress: Progress, question: Question) -> str:
    given = progress.answers.get(question.id)
    if given is None:
        return "open"
    verdict = "right" if given.right else "not right yet"
    reason = "" if given.why or not given.right else "; the reason is missing"
    return f"{given.value:g} {question.unit}".rstrip() + f": {verdict}{reason}"
