# SPDX-License-Identifier: GPL-2.0-or-later
"""What is written of a class, all from the record of its grading: marks, grade books and pages.

And what it wrote into its workbooks, for the instructor to read.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project
from fwlab.grading.course import UNKNOWN, Course, Grade, grade_class, number
from fwlab.grading.platforms import classroom_json, junit, moodle_feedback, moodle_worksheet, results_json, summary_md
from fwlab.grading.record import FILE, Grading, Record, WorkMark, content_of, merged
from fwlab.grading.similarity import Pair, similar, statements
from fwlab.grading.submissions import as_recorded
from fwlab.grading.wording import NOT_YET, csv_text, digits, expected, harmless, measured
from fwlab.grading.works import Work
from fwlab.measure.context import RunContext
from fwlab.measure.saved_runs import published_runs
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput, FwlabError
from fwlab.model.lab import Exercise, Lab
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome
from fwlab.rulesets.files import lab_ruleset
from fwlab.student.progress import FILE as PROGRESS_FILE
from fwlab.student.progress import Answer, Prediction, progress_in
from fwlab.student.workbook import Question, agrees, derived, predictions_of, workbook_of

MARKS_COLUMNS = ("who", "exercise", "verdict", "passed", "checks", "reason", "mark")


def marks_csv(grading: Grading) -> str:
    """One row per work, graded or not: `reason` says what failed first, `mark` whether the exercise is part of the mark
    (core) or not (further)."""
    rows = []
    for work in grading.works:
        exercise = grading.exercises.get(work.exercise)
        passed = sum(check.outcome is Outcome.PASS for check in work.checks)
        checks = len(work.checks) or (len(exercise.checks) if exercise is not None else 0)
        mark = "further" if exercise is not None and exercise.further else "core"
        rows.append([work.student, work.exercise, work.outcome or NOT_YET, passed, checks, harmless(work.reason), mark])
    return csv_text(MARKS_COLUMNS, rows)


def similarity_csv(pairs: Iterable[Pair]) -> str:
    """One row per pair."""
    rows = [
        [pair.exercise, pair.one, pair.other, pair.shared, pair.rare, f"{pair.alike:.2f}", "yes" * pair.identical]
        for pair in pairs
    ]
    return csv_text(("exercise", "student", "other", "shared", "rare", "alike", "identical"), rows)


#: Bars of the distribution.
BARS = 10
#: How a work that gave no figure at all is counted: one failure, and not one for each check.
NOT_LOADED, NOTHING = "not loaded", "nothing handed in"


@dataclass(frozen=True)
class Failure:
    """A check that several students failed, and the first reason that was given."""

    exercise: str
    check: str
    students: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Bar:
    """Grades from `low` to `high` points."""

    low: float
    high: float
    count: int


#: Bars of predictions: up to which multiple of the measured figure a prediction belongs to one, and its name.
OFF = (
    (0.5, "less than half"),
    (0.9, "lower"),
    (1.1, "within 10 %"),
    (2.0, "higher"),
    (float("inf"), "more than twice"),
)


@dataclass(frozen=True)
class Predictions:
    """What the class has predicted of one question.

    students  by bar of OFF, who is in it
    open      how many have no figure to compare theirs with
    """

    question: str
    students: tuple[tuple[str, ...], ...]
    open: int

    def bar_of(self, student: str) -> int | None:
        """The bar that a student is in; None for none."""
        return next((place for place, who in enumerate(self.students) if student in who), None)


def predictions_of_class(grading: Grading) -> list[Predictions]:
    """By question of the page and by exercise, in the order of the lab as far as the record has it."""
    said = {student.id: student.said.predictions for student in grading.students}
    questions = dict.fromkeys(name for one in said.values() for name in one if name not in grading.exercises)
    found = []
    for question in (*questions, *grading.exercises):
        bars: list[list[str]] = [[] for _ in OFF]
        open_ = 0
        for who, predicted in said.items():
            if (one := predicted.get(question)) is None:
                continue
            if one.measured is None:
                open_ += 1
            else:
                bars[_bar(one.value, one.measured)].append(who)
        if open_ or any(bars):
            found.append(Predictions(question, tuple(map(tuple, bars)), open_))
    return found


def _bar(value: float, measured: float) -> int:
    """Where nothing was measured, only nothing is right."""
    times = value / measured if measured else 1.0 if value == 0 else float("inf")
    return next(place for place, (most, _) in enumerate(OFF) if times <= most)


def reasons_of_class(grading: Grading) -> dict[str, list[tuple[str, str]]]:
    """By exercise and by question of the workbook, the students who gave a reason, and the reason."""
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in grading.exercises}
    for student in grading.students:
        for question, why in student.said.reasons.items():
            found.setdefault(question, []).append((student.id, why))
    return {question: given for question, given in found.items() if given}


def student_page(grading: Grading, course: Course, grade: Grade, predictions: Sequence[Predictions] = ()) -> str:
    """What a student is given: the grade and, exercise by exercise, what was asked, measured and why.

    predictions  those of the class, next to which the student's own are shown
    """
    return _render("student.html.j2", grading=grading, course=course, grade=grade, predictions=predictions, off=OFF)


def class_page(grading: Grading, course: Course, grades: Sequence[Grade], pairs: Sequence[Pair]) -> str:
    """The instructor's overview: distribution, exercises, typical failures, students, similar submissions."""
    bars = distribution(course, grades)
    return _render(
        "class.html.j2",
        grading=grading,
        course=course,
        grades=grades,
        bars=bars,
        most=max([bar.count for bar in bars], default=0),
        counts=outcomes(grading),
        failures=typical_failures(grading),
        predictions=predictions_of_class(grading),
        reasons=reasons_of_class(grading),
        boards=boards(grading),
        off=OFF,
        pairs=pairs,
    )


def distribution(course: Course, grades: Sequence[Grade]) -> list[Bar]:
    """How many students reached how many points; those whose grade is open are not in it."""
    width = course.points / BARS
    counts = [0] * BARS
    for grade in grades:
        if grade.points is not None:
            counts[min(BARS - 1, max(0, int(grade.points / width)))] += 1
    return [Bar(place * width, (place + 1) * width, count) for place, count in enumerate(counts)]


def outcomes(grading: Grading) -> dict[str, dict[str, int]]:
    """By exercise, how many passed, failed, are inconclusive, or are not graded yet."""
    found = {exercise: dict.fromkeys((*Outcome, "open"), 0) for exercise in grading.exercises}
    for work in grading.works:
        found[work.exercise][work.outcome or "open"] += 1
    return found


def typical_failures(grading: Grading) -> list[Failure]:
    """Which checks fail, the most frequent first."""
    students: dict[tuple[str, str], list[str]] = defaultdict(list)
    texts: dict[tuple[str, str], str] = {}
    for work in grading.works:
        for check, text in _failures(work):
            students[work.exercise, check].append(work.student)
            texts.setdefault((work.exercise, check), text)
    found = [Failure(*key, tuple(who), texts[key]) for key, who in students.items()]
    return sorted(found, key=lambda failure: -len(failure.students))


def boards(grading: Grading) -> dict[str, list[float]]:
    """By exercise with a check of a ranked metric, the figures of the works that pass all others, the lowest first.

    Whose they are is not said.
    """
    found: dict[str, list[float]] = {}
    for work in grading.works:
        for check in work.checks:
            others = [one.outcome for one in work.checks if one is not check]
            ranked = check.metric in METRICS and METRICS[check.metric].ranked
            if ranked and check.value is not None and set(others) == {Outcome.PASS}:
                found.setdefault(work.exercise, []).append(check.value)
    return {exercise: sorted(found[exercise]) for exercise in grading.exercises if exercise in found}


def _failures(work: WorkMark) -> list[tuple[str, str]]:
    if work.outcome is not Outcome.FAIL:
        return []
    if work.refused is not None:
        return [(NOTHING if work.refused.startswith(f"{NOT_LOADED}: {NOTHING}") else NOT_LOADED, work.reason)]
    return [(check.check, check.text) for check in work.checks if check.outcome is Outcome.FAIL]


def _render(template: str, **context: object) -> str:
    helpers = {"number": number, "measured": measured, "expected": expected, "UNKNOWN": UNKNOWN, "digits": digits}
    return _environment().get_template(template).render(**context, **helpers)


@cache
def _environment() -> Environment:
    """Kept, because it keeps the compiled templates: a class has a page for each student."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def grades_csv(grading: Grading, course: Course) -> str:
    """One row per student: a share per exercise, what lateness costs, the grade, and what is open."""
    names, rows = list(grading.exercises), []
    for grade in grade_class(grading, course):
        shares = {item.work.exercise: item.share for item in grade.exercises}
        days = UNKNOWN if grade.days_late is None else grade.days_late
        row = [grade.student.id, harmless(grade.student.name), *(number(shares.get(name)) for name in names)]
        rows.append([*row, days, number(grade.deducted), number(grade.points), " ".join(grade.open)])
    return csv_text(["student", "name", *names, "days_late", "deducted", "grade", "open"], rows)


def totals_csv(gradings: Sequence[Grading], course: Course) -> str:
    """One row per student. A lab that a student did not hand in counts as zero; an open one leaves the total open."""
    labs = [grading.lab for grading in gradings]
    twice = next((lab for lab in labs if labs.count(lab) > 1), None)
    if twice is not None:
        raise BadInput(f"{twice} appears twice", "fwlab grades merge joins the parts of one lab")
    weights = {lab: course.lab(lab).weight for lab in labs}
    if not any(weights.values()):
        raise BadInput("every lab has weight 0", "give one of them a weight in course.yml")
    found: dict[str, dict[str, float | None]] = {}
    for grading in gradings:
        for grade in grade_class(grading, course):
            found.setdefault(grade.student.id, {})[grading.lab] = grade.points
    rows = []
    for student, points in sorted(found.items()):
        reached = [points.get(lab, 0.0) for lab in labs]
        total = None
        if None not in reached:
            weighted = sum(weights[lab] * (value or 0.0) for lab, value in zip(labs, reached, strict=True))
            total = weighted / sum(weights.values())
        rows.append([student, *(number(value) for value in reached), number(total)])
    return csv_text(["student", *labs, "total"], rows)


def alike(context: RunContext, works: Sequence[Work]) -> list[Pair]:
    """The similar submissions of the class, exercise by exercise."""
    pairs: list[Pair] = []
    for exercise in context.lab.whole.exercises:
        own = [work for work in works if work.exercise.id == exercise.id and work.handed_in and work.handed_in.files]
        if len(own) < 2:
            continue
        said, contents, starts = {}, {}, {}
        for work in own:
            start = json.dumps(work.exercise.parameters)  # individual tasks differ in their start
            if start not in starts:
                starts[start] = _of_start(context, work.exercise)
            assert work.handed_in is not None  # noqa: S101 - see above
            texts = [data.decode(errors="replace") for _, data in work.handed_in.again()]
            said[work.who] = statements(texts) - starts[start]
            contents[work.who] = content_of(as_recorded(work.handed_in))
        pairs += similar(exercise.id, said, contents)
    return pairs


def _of_start(context: RunContext, exercise: Exercise) -> frozenset[str]:
    """The statements of the exercise's start; none if it is no ruleset."""
    folder = context.lab.folder / "rulesets" / exercise.id / "start"
    try:
        return statements(file.text for file in lab_ruleset(folder, exercise.parameters, context.topology))
    except FwlabError:
        return frozenset()


#: What platforms read of one student.
OF_A_STUDENT = {"results.json": results_json, "classroom.json": classroom_json, "summary.md": summary_md}


def write_class(grading: Grading, course: Course, folder: Path) -> None:
    """Write everything that follows from the record: grades, grade books and pages."""
    grades = grade_class(grading, course)
    files = {
        "grades.csv": grades_csv(grading, course),
        "junit.xml": junit(grading),
        "similarity.csv": similarity_csv(grading.similar),
        "class.html": class_page(grading, course, grades, grading.similar),
    }
    for name, text in files.items():
        write_atomically(folder / name, text)
    predictions = predictions_of_class(grading)
    for grade in grades:
        own = folder / "students" / grade.student.id
        write_atomically(own / "index.html", student_page(grading, course, grade, predictions))
        for name, write in OF_A_STUDENT.items():
            write_atomically(own / name, write(grading, course, grade))


def for_moodle(grading: Grading, course: Course, worksheet: Path, folder: Path) -> list[str]:
    """Write the filled worksheet and the archive of feedback files into `folder`. What to tell. Raises BadInput."""
    grades, predictions = grade_class(grading, course), predictions_of_class(grading)
    filled = moodle_worksheet(grading, course, grades, worksheet)
    packed = moodle_feedback(grades, lambda grade: student_page(grading, course, grade, predictions))
    write_atomically(folder / "worksheet.csv", filled.text)
    write_atomically(folder / "feedback.zip", packed)
    return filled.notes


def write_merged(folders: Sequence[Path], output: Path, course: Course) -> Record:
    """Write the merged record, its marks, grades and pages. Raises BadInput."""
    if (output / FILE).exists():
        raise BadInput(f"{output} holds a grading already", "name a new folder")
    record = merged(folders)
    grading = record.grading()
    write_atomically(output / "marks.csv", marks_csv(grading))
    write_class(grading, course, output)
    write_atomically(output / FILE, record.lines().decode())  # last: only what is complete counts as a grading
    return record


WORKBOOK_COLUMNS = ("who", "question", "answer", "agrees", "tries", "why")


def explanations(project: Project, lab: Lab, folder: Path) -> str:
    """One row per student and question of the workbook, as CSV; then the predictions of the page's questions, and those
    of the exercises with the number of tries and the reason.

    `folder` holds a folder per student, with what was in work/.

    A student's file may say anything, so each number is compared with the lab's published run: `agrees` is yes, no, or
    empty where there is no number. Raises BadInput for a folder without students, or a lab without a workbook.
    """
    if not workbook_of(project, lab):
        raise BadInput(f"{lab.id} has no workbook", f"fwlab list {lab.id}")
    if not folder.is_dir():
        raise BadInput(f"no folder {folder}", "name the folder that holds one folder per student")
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    students = [path for path in entries if path.is_dir()]
    if not students:
        raise BadInput(f"{folder}: there is no student's folder in it", "put one folder per student into it")
    runs = published_runs(project, lab)
    rows = [
        [harmless(cell) for cell in (student.name, *row)]
        for student in students
        for row in _answers_of(project, lab, student, runs)
    ]
    return csv_text(WORKBOOK_COLUMNS, rows)


def _answers_of(project: Project, lab: Lab, student: Path, runs: list[Run]) -> list[tuple[str, ...]]:
    if student.is_symlink() or (student / PROGRESS_FILE).is_symlink():  # it may lead to another student's
        return [("", "", "", "", "unreadable: a link")]
    try:
        progress = progress_in(student, lab.id)
    except BadInput as error:
        return [("", "", "", "", f"unreadable: {error.message}")]
    answers, predictions = progress.answers, progress.predictions
    rows = [_answer_row(lab, one, answers.get(one.id), runs) for one in workbook_of(project, lab)]
    rows += [_prediction_row(one.id, predictions.get(one.id)) for one in predictions_of(project, lab)]
    done = [(exercise.id, progress.of(exercise.id)) for exercise in lab.whole.exercises]
    return rows + [
        (name, "" if one.predicted is None else f"{one.predicted:g}", "", str(len(one.tries)), one.why)
        for name, one in done
    ]


def _prediction_row(question: str, made: Prediction | None) -> tuple[str, ...]:
    if made is None:
        return question, "", "", "", ""
    return question, f"{made.value:g}", "", "", "predicted after the measurement" if made.late else ""


def _answer_row(lab: Lab, question: Question, answer: Answer | None, runs: list[Run]) -> tuple[str, ...]:
    if answer is None:
        return question.id, "", "", "0", ""
    try:
        right = "yes" if agrees(answer.value, derived(lab, question, runs)) else "no"
    except BadInput:  # the lab was not measured
        right = ""
    return question.id, f"{answer.value:g}", right, str(answer.tries), answer.why
