# SPDX-License-Identifier: GPL-2.0-or-later
"""What a class wrote into its workbooks, for the instructor to read: numbers, judged anew, and reasons."""

import csv
import io
from pathlib import Path

from fwlab.checkout.project import Project
from fwlab.grading.marks import harmless
from fwlab.measure.saved_runs import published_runs
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.student.derivations import agrees, derived
from fwlab.student.progress import FILE, Answer, progress_in
from fwlab.student.workbook import Question, workbook_of

COLUMNS = ("who", "question", "answer", "agrees", "tries", "why")


def explanations(project: Project, lab: Lab, folder: Path) -> str:
    """One row per student and question, as CSV. `folder` holds a folder per student, with what was in work/.

    A student's file may say anything, so each number is compared with the lab's published run: `agrees` is yes, no, or
    empty where there is no number. Raises BadInput for a folder without students, or a lab without a workbook.
    """
    questions = workbook_of(project, lab)
    if not questions:
        raise BadInput(f"{lab.id} has no workbook", f"fwlab list {lab.id}")
    if not folder.is_dir():
        raise BadInput(f"no folder {folder}", "name the folder that holds one folder per student")
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    students = [path for path in entries if path.is_dir()]
    if not students:
        raise BadInput(f"{folder}: there is no student's folder in it", "put one folder per student into it")
    runs = published_runs(project, lab)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for student in students:
        for row in _rows(lab, student, questions, runs):
            writer.writerow([harmless(cell) for cell in (student.name, *row)])
    return out.getvalue()


def _rows(lab: Lab, student: Path, questions: list[Question], runs: list[Run]) -> list[tuple[str, ...]]:
    if student.is_symlink() or (student / FILE).is_symlink():  # it may lead to another student's
        return [("", "", "", "", "unreadable: a link")]
    try:
        answers = progress_in(student, lab.id).answers
    except BadInput as error:
        return [("", "", "", "", f"unreadable: {error.message}")]
    return [_row(lab, question, answers.get(question.id), runs) for question in questions]


def _row(lab: Lab, question: Question, answer: Answer | None, runs: list[Run]) -> tuple[str, ...]:
    if answer is None:
        return question.id, "", "", "0", ""
    try:
        right = "yes" if agrees(answer.value, derived(lab, question, runs)) else "no"
    except BadInput:  # the lab was not measured
        right = ""
    return question.id, f"{answer.value:g}", right, str(answer.tries), answer.why
