# SPDX-License-Identifier: GPL-2.0-or-later
"""A student's way through a lab: predict, start, hints, answers, the solution, the next step, and an own task."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, display_path, find_project, lab_ids
from fwlab.cli import completion
from fwlab.cli.options import ExerciseName, Json, LabName, LabOrAll, OneExercise, number
from fwlab.cli.output import instead_of_text, plain, print_json
from fwlab.measure.context import RunContext, run_context
from fwlab.measure.individual_tasks import (
    FORMAT,
    individual_lab,
    own_task_file,
    read_own_task,
    read_tasks,
    values,
)
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import chosen_exercises, exercise_id
from fwlab.measure.work_folder import ensure_started, started_over
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import Value
from fwlab.model.errors import EXIT_FAIL, BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.printable import printable
from fwlab.report.formatting import NOTHING, check_words, digits, percent, quantity, ratio, trimmed
from fwlab.student.hints import explanation, hints_of, next_hints, published_figure, shortened, solution
from fwlab.student.measured import case_runs
from fwlab.student.predictions import no_share, predict_exercise, read_predictions
from fwlab.student.progress import (
    Answer,
    ExerciseProgress,
    Prediction,
    Progress,
    explain,
    in_order,
    read_progress,
    reason_in,
    update,
)
from fwlab.student.status import answer_documents, prediction_documents, sources_of, status_document
from fwlab.student.workbook import WITHIN, Asked, Question, agrees, derived, predictions_of, slip, workbook_of

out = Console()

#: Where a reason went.
REASON_KEPT = "Your reason is in work/progress.yml, which you hand in."


def status_command(
    lab: LabOrAll = None,
    as_json: Json = False,
) -> None:
    """Show your progress in a lab: exercises, tries, hints, predictions, verdicts, and the command that comes next."""
    project = find_project()
    if lab is not None:
        _one(project, load_lab(project, lab), as_json)
        return
    found = [load_lab(project, name) for name in lab_ids(project)]
    documents = [status_document(one, read_progress(one), sources_of(project, one)) for one in found]
    if as_json:
        print_json(documents)
        return
    for document in documents:
        exercises = document["exercises"]
        passed = sum(one["passed"] for one in exercises)
        plain(out, f"{document['lab']:<20} {passed} of {len(exercises)} exercises passed")


def _one(project: Project, lab: Lab, as_json: bool) -> None:
    progress = read_progress(lab)
    sources = sources_of(project, lab)
    if as_json:
        print_json(status_document(lab, progress, sources))
        return
    out.print(Text(f"{lab.id}: {lab.title}", style="bold"))
    table = Table(box=None, pad_edge=False)
    table.add_column("exercise", no_wrap=True)
    for name in ("tries", "hints", "predicted", "first measured"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("last verdict", overflow="fold")
    for exercise in in_order(lab):
        done = progress.of(exercise.id)
        hints = len(sources.hints.get(exercise.id, []))
        table.add_row(*_cells(exercise, done, sources.predictions.get(exercise.id), hints))
    out.print(table)
    if sources.asked:
        made = sum(asked.id in progress.predictions for asked in sources.asked)
        plain(out, f"questions of the page: {made} of {len(sources.asked)} predicted")
    if sources.questions:
        plain(out, f"workbook: {_workbook_state(progress, sources.questions)}")
    step = sources.next_step(lab, progress)
    plain(out, f"next: {step.command}" if step.command else f"next: {step.why}")
    if step.command:
        plain(out, f"      ({step.why})")


def _workbook_state(progress: Progress, questions: list[Question]) -> str:
    """How many answers are right, wrong and not given yet: what was not tried is not wrong."""
    given = [progress.answers[question.id].right for question in questions if question.id in progress.answers]
    counts = {"right": given.count(True), "not right yet": given.count(False), "open": len(questions) - len(given)}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def _cells(exercise: Exercise, done: ExerciseProgress, predicted: float | None, hints: int) -> list[str]:
    metric, first = METRICS[exercise.predict.metric], done.first_measured
    value = done.predicted if first is not None else predicted
    measured = NOTHING
    if first is not None and first.measured is not None:
        measured = quantity(first.measured, metric)
        if value:
            measured += f" (×{ratio(first.measured / value)})"
    return [
        exercise.id + (" (further)" if exercise.further else ""),
        str(len(done.tries)) if done.tries else NOTHING,
        f"{done.hints}/{hints}" if hints else NOTHING,
        NOTHING if value is None else quantity(value, metric),
        measured,
        _verdict(done),
    ]


def _verdict(done: ExerciseProgress) -> str:
    last = done.last
    if last is None:
        return NOTHING
    words = last.outcome.value
    if last.failed:
        words += f": {'; '.join(map(check_words, last.failed))}"
    return f"passed; last: {words}" if done.passed and last.failed else words


def answer_command(
    lab: LabName,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUESTION]",
            help="A question, or an exercise to explain (default: list the questions).",
            autocompletion=completion.questions,
        ),
    ] = None,
    value: Annotated[
        float | None, typer.Argument(metavar="[NUMBER]", parser=number, help="Your answer, in the question's unit.")
    ] = None,
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="TEXT", help="Your reason, in two sentences; your instructor reads it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer a question of the lab's workbook with a number from your own measurements, and say why it is so.

    An exercise has no number here: say why your ruleset passes.
    """
    project = find_project()
    found = load_lab(project, lab)
    with instead_of_text(lambda: answer_documents(project, found, question), as_json=as_json):
        _answer(project, found, question, value, why)


def _answer(project: Project, found: Lab, question: str | None, value: float | None, why: str | None) -> None:
    exercise = found.whole.exercise(exercise_id(found, question)) if question is not None else None
    if exercise is not None:
        _explain(found, exercise, value, why)
        return
    questions = workbook_of(project, found)
    if not questions:
        raise BadInput(f"{found.id} has no workbook", f"fwlab status {found.id}")
    progress = read_progress(found)
    if question is None:
        for one in questions:
            plain(out, f"{one.id:<20} {_answer_state(progress, one)}")
            out.print(Padding(Text(one.question.strip()), (0, 0, 0, 4)))
        return
    chosen = next((one for one in questions if one.id == question), None)
    if chosen is None:
        known = ", ".join(one.id for one in questions)
        hint = f"fwlab answer {found.id}"
        raise BadInput(f"the workbook of {found.id} has no question {question}; it has: {known}", hint)
    given = progress.answers.get(chosen.id)
    if value is None and why is None:
        plain(out, chosen.question.strip())
        plain(out, f"Then say why: {chosen.why.strip()}")
        plain(out, f"so far: {_answer_state(progress, chosen)}")
        return
    reason = None if why is None else reason_in(why)
    if value is None and given is None:
        raise BadInput(f"{chosen.id}: a reason belongs to a number", f"fwlab answer {found.id} {chosen.id} NUMBER")
    if value is not None and not math.isfinite(value):
        raise BadInput(f"{chosen.id}: {value:g} is not a number to answer with", f"fwlab answer {found.id} {chosen.id}")
    expected = None if value is None else derived(found, chosen, case_runs(project, found))
    answer = _answered(given, value, expected, reason)
    update(found, lambda current: current.with_answer(chosen.id, answer))
    if value is not None and expected is not None:
        plain(out, f"{chosen.id}: {_comparison(chosen, value, expected)}")
    if value is not None and value != answer.value:
        plain(out, f"Your answer {answer.value:g} is right, and stays.")
        raise typer.Exit(EXIT_FAIL)
    if not answer.right:
        raise typer.Exit(EXIT_FAIL)
    if not answer.why:
        plain(out, f'Now say why, in two sentences: fwlab answer {found.id} {chosen.id} --why "..."')
        plain(out, f"  {chosen.why.strip()}")
    else:
        plain(out, REASON_KEPT)


def _explain(lab: Lab, exercise: Exercise, value: float | None, why: str | None) -> None:
    """Keep why a student's ruleset passes, or show what was kept."""
    done = read_progress(lab).of(exercise.id)
    if value is not None:
        raise BadInput(f"{exercise.id} is an exercise: it has no number here", f"fwlab predict {lab.id} {exercise.id}")
    if why is None:
        plain(out, f"{exercise.id}: {done.why or 'no reason yet'}")
        plain(out, "Say why your ruleset passes, in two sentences. The page's Explain says what to think of.")
        return
    explain(lab, exercise.id, why)
    plain(out, REASON_KEPT)


def _answered(given: Answer | None, value: float | None, expected: float | None, why: str | None) -> Answer:
    """The answer with a new number, or a new reason, or both. A right number is not replaced by a wrong one."""
    reason = why if why is not None else given.why if given else ""
    if value is None or expected is None:
        assert given is not None  # noqa: S101 - the command has refused a reason without a number
        return given.model_copy(update={"why": reason})
    tries = given.tries + 1 if given else 1
    if given and agrees(given.value, expected) and not agrees(value, expected):
        return given.model_copy(update={"right": True, "tries": tries, "why": reason})
    return Answer(value=value, right=agrees(value, expected), tries=tries, why=reason)


def _comparison(question: Question, value: float, expected: float) -> str:
    """It names the right number only once it is found."""
    if agrees(value, expected):
        off = percent(value / expected - 1, signed=True) if expected else percent(0.0)
        return f"right: your run gives {expected:.4g} {question.unit}".rstrip() + f" (yours is {off} off)"
    words = f"not within {WITHIN * 100:g} % of what your run gives"
    if mistake := slip(value, expected):
        words += f"; it is {mistake}"
    return f"{words}. {question.hint.strip()}"


def _answer_state(progress: Progress, question: Question) -> str:
    given = progress.answers.get(question.id)
    if given is None:
        return "open"
    verdict = "right" if given.right else "not right yet"
    reason = "" if given.why or not given.right else "; the reason is missing"
    return f"{given.value:g} {question.unit}".rstrip() + f": {verdict}{reason}"


err = Console(stderr=True)


def start_command(lab: LabName, exercise: ExerciseName = None) -> None:
    """Copy the start of an exercise (default: of all) into the lab's work/ folder, where you edit it."""
    context = run_context(find_project(), lab, "virtual")
    for chosen in chosen_exercises(context.lab, exercise):
        plain(out, f"{chosen.id}: {ensure_started(context, chosen)}")


def predict_command(
    lab: LabName,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUESTION]",
            help="A question of the lab's page, or an exercise (default: list the questions).",
            autocompletion=completion.predictions,
        ),
    ] = None,
    value: Annotated[
        float | None,
        typer.Argument(
            metavar="[NUMBER]", parser=number, help="The number that you expect, in the question's unit: 250000, 250k."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a question of the lab's page, or an exercise's, or record the number that you expect before measuring.

    Once the cases of a page's question are measured, it compares your prediction with your figure, and explains.
    """
    project = find_project()
    found = load_lab(project, lab)
    with instead_of_text(lambda: prediction_documents(project, found, question), as_json=as_json):
        _predict(project, found, question, value)


def _predict(project: Project, found: Lab, question: str | None, value: float | None) -> None:
    asked = predictions_of(project, found)
    if question is None:
        _list_predictions(found, asked)
        return
    place = next((place for place, one in enumerate(asked) if one.id == question), None)
    if place is not None:
        _predict_page(project, found, _with_what_it_continues(asked, place), value)
        return
    if found.whole.exercise(exercise_id(found, question)) is None and asked:
        known = ", ".join([one.id for one in asked] + [one.id for one in found.whole.exercises])
        raise BadInput(f"{found.id} asks no question {question}; it has: {known}", f"fwlab predict {found.id}")
    _predict_exercise(found, chosen_exercises(found, question)[0], value)


def _list_predictions(lab: Lab, asked: list[Asked]) -> None:
    if not asked:
        raise BadInput(f"the page of {lab.id} asks nothing to predict", f"fwlab status {lab.id}")
    made = read_progress(lab).predictions
    for one in asked:
        plain(out, f"{one.id:<20} {_prediction_state(one, made.get(one.id))}")
        out.print(Padding(Text(one.question.strip()), (0, 0, 0, 4)))


def _with_what_it_continues(asked: list[Asked], place: int) -> list[Asked]:
    """The question, after those that an "And …?" belongs to."""
    first = next(at for at in range(place, -1, -1) if at == 0 or not asked[at].question.startswith("And "))
    return asked[first : place + 1]


def _prediction_state(asked: Asked, made: Prediction | None) -> str:
    if made is None:
        return "open"
    state = f"predicted {_amount(made.value, asked)}" + (", after it was measured" if made.late else "")
    return state if made.measured is None else f"{state}; measured {_amount(made.measured, asked)}"


def _amount(value: float, asked: Asked) -> str:
    return percent(value) if asked.is_share else f"{trimmed(digits(value))} {asked.unit}".rstrip()


def _predict_page(project: Project, lab: Lab, questions: list[Asked], value: float | None) -> None:
    """Record a prediction of the last of these questions; or compare and explain, once it is made and measured."""
    asked = questions[-1]
    made = read_progress(lab).predictions.get(asked.id)
    runs, measured, lacking = case_runs(project, lab), None, ""
    try:
        measured = derived(lab, asked, runs)
    except BadInput as error:
        lacking = error.hint
    if value is None and made is None:
        for one in questions:
            plain(out, one.question.strip())
        return
    if value is not None:
        if made is not None and (made.measured is not None or measured is not None):
            message = f"{asked.id} is measured; a prediction comes before that"
            raise BadInput(message, f"fwlab predict {lab.id} {asked.id}")
        _reject_prediction(lab, asked, value)
        made = Prediction(value=value, late=measured is not None)
        late = ", after it was measured" if made.late else ""
        plain(out, f"{asked.id}: you predict {_amount(value, asked)}{late}")
    assert made is not None  # noqa: S101 - there was one, or there is a value
    if measured is not None and made.measured is None:
        made = made.model_copy(update={"measured": measured})
    recorded = made
    update(lab, lambda progress: progress.with_prediction(asked.id, recorded))
    if made.measured is None:
        plain(out, f"next: {lacking}\n      (then fwlab predict {lab.id} {asked.id} compares, and explains)")
        return
    times = f" (×{ratio(made.measured / made.value)})" if made.value else ""
    told = f"you predicted {_amount(made.value, asked)}, your run gives {_amount(made.measured, asked)}{times}"
    plain(out, f"{asked.id}: {told}\n")
    out.print(Markdown(explanation(lab, asked.id)))


def _reject_prediction(lab: Lab, asked: Asked, value: float) -> None:
    hint = f"fwlab predict {lab.id} {asked.id}"
    if not math.isfinite(value):
        raise BadInput(f"{asked.id}: {value:g} is not a number to predict", hint)
    if asked.is_share and not 0 <= value <= 1:
        raise no_share(asked.id, value, hint)


def _predict_exercise(lab: Lab, exercise: Exercise, value: float | None) -> None:
    if value is None:
        out.print(exercise.predict.question.strip(), highlight=False)
        return
    for line in predict_exercise(lab, exercise, value):
        plain(out, line)


def hint_command(
    lab: LabName,
    exercise: OneExercise,
    everything: Annotated[bool, typer.Option("--all", help="Show all hints at once.")] = False,
    as_json: Json = False,
) -> None:
    """Show one more hint for an exercise, each stronger than the last. They are counted in `fwlab status`."""
    project = find_project()
    found = load_lab(project, lab)
    chosen = chosen_exercises(found.whole, exercise)[0].id
    shown = next_hints(project, found, chosen, everything=everything)
    if as_json:
        print_json({"lab": found.id, "exercise": chosen, "hints": shown.hints, "of": shown.of})
        return
    if shown.all_known:
        plain(out, f"These were all hints for {chosen}:")
    for place, hint in shown.hints.items():
        plain(out, f"hint {place} of {shown.of}: {hint}")


def reset_command(lab: LabName, exercise: ExerciseName = None) -> None:
    """Put an exercise (default: all) back to its start. Your files move to work/kept. Progress stays."""
    context = run_context(find_project(), lab, "virtual")
    for chosen in chosen_exercises(context.lab, exercise):
        _start_over(context, chosen)


def goto_command(lab: LabName, exercise: OneExercise) -> None:
    """Begin at an exercise: its folder in work/ becomes its start, and `fwlab status` goes on from there."""
    context = run_context(find_project(), lab, "virtual")
    chosen = chosen_exercises(context.lab, exercise)[0]
    read_progress(context.lab)  # a damaged file is reported before anything is moved
    _start_over(context, chosen)
    update(context.lab, lambda progress: progress.model_copy(update={"current": chosen.id}))
    if not _predicted(context.lab, chosen.id):
        plain(out, f"next: fwlab predict {context.lab.id} {chosen.id}")


def _predicted(lab: Lab, exercise: str) -> bool:
    return exercise in read_predictions(lab) or read_progress(lab).of(exercise).first_measured is not None


def _start_over(context: RunContext, exercise: Exercise) -> None:
    kept = started_over(context, exercise)
    folder = display_path(context.project, context.lab.folder / "work" / exercise.id)
    plain(out, f"{exercise.id}: {folder} is the start")
    if kept is not None:
        plain(out, f"  what was there is kept in {display_path(context.project, kept)}")


def solution_command(lab: LabName, exercise: OneExercise, as_json: Json = False) -> None:
    """Print the lab's own solution and why it passes: once you have passed, or tried often enough."""
    context = run_context(find_project(), lab, "virtual")
    chosen = chosen_exercises(context.lab, exercise)[0]
    hinted = chosen.id in hints_of(context.project, context.lab)
    found = solution(context.lab, chosen, read_progress(context.lab), context.topology, hinted=hinted)
    update(context.lab, lambda progress: progress.with_exercise(chosen.id, solution=True))
    if as_json:
        checks = [{"check": check, "why": why, "pass": passed} for check, why, passed in found.reasons]
        print_json({"lab": context.lab.id, "exercise": chosen.id, "files": found.files, "checks": checks})
        return
    for name, text in found.files.items():
        plain(out, f"{_source(context, found.folder, name)}:")
        plain(out, "\n".join(f"    {line}" for line in shortened(text).splitlines()) or "    (empty)")
    if measured := published_figure(context.project, context.lab, chosen):
        plain(out, f"\nmeasured: {measured}")
    for check, why, passed in found.reasons:
        plain(out, f"\n{check}: {passed}\n  Why: {why}")


def _source(context: RunContext, folder: Path, name: str) -> str:
    """The file as it is in the checkout; a template has another ending there."""
    there = next(path for path in (folder / name, folder / f"{name}.j2") if path.exists())
    return display_path(context.project, there)


#: In the order in which a student needs them.
COMMANDS: dict[str, Callable[..., None]] = {
    "status": status_command,
    "predict": predict_command,
    "start": start_command,
    "hint": hint_command,
    "answer": answer_command,
    "solution": solution_command,
    "reset": reset_command,
    "goto": goto_command,
}


def task_command(
    lab: LabName,
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="One of the lab's exercises.")],
    student: Annotated[
        str | None, typer.Option("--student", metavar="NAME", help="Your name in the task file.")
    ] = None,
    file: Annotated[Path, typer.Option("--file", metavar="FILE", help="The task file that you were given.")] = Path(
        "tasks.yml"
    ),
    as_json: Json = False,
) -> None:
    """Print what your own task has in place of the page's values, and use it from now on.

    With --student your numbers are taken from the task file; `start` and `check` use them then. Without it, those are
    printed that are in use.
    """
    project = find_project()
    found = load_lab(project, lab)
    chosen = chosen_exercises(found, exercise)[0]
    path = own_task_file(found)
    if student is not None:
        numbers = numbers_of(file, found, student)
        individual_lab(project, found, numbers)  # refuses numbers that are not this lab's
        data = {"format": FORMAT, "student": student, "numbers": numbers}
        write_atomically(path, yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    if not path.exists():
        raise BadInput(f"{lab}: no task of your own is in use", f"fwlab task {lab} {exercise} --student NAME")
    own = read_own_task(project, path)
    drawn = values(found, individual_lab(project, found, own.numbers), chosen.id)
    if as_json:
        rows = [{"place": where, "page": page, "own": mine} for where, page, mine in drawn]
        print_json({"lab": lab, "exercise": chosen.id, "student": own.student, "values": rows})
        return
    for where, page, mine in drawn:
        plain(out, f"{where}: {mine} (on the page: {page})")
    plain(out, f"{chosen.id}: the task of {printable(own.student)}; everything else is as on the page")
    if (found.folder / "work" / chosen.id).exists():
        there = f"work/{chosen.id} was there before"
        plain(out, f"{there}; if it has the start of another task, move it away and start again")


def numbers_of(file: Path, lab: Lab, student: str) -> dict[str, Value]:
    """The student's numbers in the task file. Raises BadInput."""
    tasks = read_tasks(file).tasks.get(lab.id, {})
    if student not in tasks:
        what = f"no student is called {printable(student)}" if tasks else f"it has no tasks of {lab.id}"
        raise BadInput(f"{file}: {what}", "ask your instructor for the task file and your name in it")
    return tasks[student]
