# SPDX-License-Identifier: GPL-2.0-or-later
"""What other platforms read of a grading: one writer for each format, all from the record.

Where each format is documented, as of 2026-11-29:

GitLab      https://docs.gitlab.com/ci/testing/unit_test_reports: the subset of JUnit's XML that is read
Gradescope  https://gradescope-autograders.readthedocs.io/en/latest/specs: results.json
GitHub      https://docs.github.com/actions/using-workflows/workflow-commands-for-github-actions: a job summary is
            GitHub's Markdown, 1 MiB at most
Classroom   https://github.com/classroom-resources/autograding-grading-reporter, README.md and src/: a JSON object, in
            base64. GitHub has closed Classroom; the reporter still adds up points
Moodle      mod/assign/feedback/offline/importgradeslib.php: columns are found by their headings, students by the number
            after "Participant"; mod/assign/feedback/file/importziplib.php: NAME_NUMBER_assignfeedback_file/FILE
Canvas      lib/gradebook_importer.rb: columns are found by their headings, students by ID
"""

import csv
import html
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fwlab.grading.course import Course, ExerciseGrade, Grade, number
from fwlab.grading.record import CheckMark, Grading, WorkMark
from fwlab.grading.student_bundle import zip_archive
from fwlab.grading.wording import MAX_REASON, NOT_YET, csv_text, expected, explained, harmless, measured
from fwlab.model.errors import BadInput
from fwlab.model.printable import printable, printable_lines
from fwlab.model.verdict import Outcome


def junit(grading: Grading) -> str:
    """A test for each check of each exercise. What could not be measured is skipped, with its reason."""
    suite = ElementTree.Element("testsuite", name=grading.lab)
    counts = dict.fromkeys(("tests", "failures", "skipped"), 0)
    for work in grading.works:
        for name, check in _tests(grading, work):
            case = ElementTree.SubElement(suite, "testcase", classname=f"{work.student}.{work.exercise}", name=name)
            counts["tests"] += 1
            if check is None or check.outcome is Outcome.INCONCLUSIVE:
                counts["skipped"] += 1
                reason = check.text if check else work.missing or NOT_YET
                ElementTree.SubElement(case, "skipped", message=_line(reason))
            elif check.outcome is Outcome.FAIL:
                counts["failures"] += 1
                ElementTree.SubElement(
                    case, "failure", message=_line(check.text)
                ).text = f"measured {measured(check) or 'nothing'}, expected {expected(check)}"
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _tests(grading: Grading, work: WorkMark) -> list[tuple[str, CheckMark | None]]:
    if work.checks:
        return [(check.check, check) for check in work.checks]
    return [(name, None) for name in grading.exercises[work.exercise].checks]


def _line(text: str) -> str:
    """Text that XML can hold."""
    return printable_lines(text).encode("utf-8", "backslashreplace").decode()


def _scores(course: Course, grade: Grade) -> list[tuple[ExerciseGrade, float, float | None]]:
    """Each exercise, the points that it is worth, and those that were reached; None if that is open."""
    weights = sum(item.weight for item in grade.exercises) or 1.0
    found = []
    for item in grade.exercises:
        most = course.points * item.weight / weights
        found.append((item, most, None if item.share is None else most * item.share))
    return found


def _so_far(course: Course, grade: Grade) -> float:
    """The points of a student; while something is open, those of the rest."""
    if grade.points is not None:
        return grade.points
    return (1 - grade.deducted) * sum(reached or 0.0 for _, _, reached in _scores(course, grade))


def _about(grading: Grading, grade: Grade) -> list[str]:
    """What to say of the whole."""
    said = [f"{grading.lab}: {grading.title}"]
    if grade.deducted:
        said.append(f"Deducted for {grade.days_late} days after the deadline: {grade.deducted:.0%}")
    if grade.open:
        said.append(f"Not decided yet: {', '.join(grade.open)}. The score is preliminary.")
    return said


def results_json(grading: Grading, course: Course, grade: Grade) -> str:
    """Gradescope's results of one submission: a test per exercise. What is open has no score."""
    tests = []
    for order, (item, most, reached) in enumerate(_scores(course, grade), 1):
        status = {None: {}, 1.0: {"status": "passed"}}.get(item.share, {"status": "failed"})
        test: dict[str, Any] = {
            "name": grading.exercises[item.work.exercise].title,
            "number": str(order),
            "max_score": round(most, 4),
            "output": "\n".join(explained(item.work)),
            **status,
        }
        if reached is not None:
            test["score"] = round(reached, 4)
        tests.append(test)
    score = round(_so_far(course, grade), 4)  # not optional where a test has none
    found = {"output": "\n".join(_about(grading, grade)), "visibility": "visible", "score": score, "tests": tests}
    return json.dumps(found, indent=1) + "\n"


def classroom_json(grading: Grading, course: Course, grade: Grade) -> str:
    """What GitHub Classroom's reporter takes of one student, before it is base64: a test per exercise.

    The points of its tests are added up, so lateness is deducted from each.
    """
    tests = []
    for item, most, reached in _scores(course, grade):
        said = [printable(line, MAX_REASON) for line in explained(item.work)]
        test = {
            "name": grading.exercises[item.work.exercise].title,
            "status": {None: "error", 1.0: "pass"}.get(item.share, "fail"),
            "score": round((reached or 0.0) * (1 - grade.deducted), 4),
            "max_score": round(most, 4),
            "message": "\n".join(said),
        }
        tests.append(test)
    every = {test["status"] for test in tests}
    status = next((one for one in ("fail", "error") if one in every), "pass")
    return json.dumps({"version": 1, "status": status, "max_score": course.points, "tests": tests}, indent=1) + "\n"


def summary_md(grading: Grading, course: Course, grade: Grade) -> str:
    """A job summary of one student. What quotes a stranger's file stands in <pre>, where Markdown means nothing."""
    about = " ".join(_about(grading, grade)[1:])
    points = f"{number(_so_far(course, grade))} of {number(course.points)} points"
    lines = [f"## {grading.lab}: {grading.title}", "", f"**{points}**{'' if not about else f' ({about})'}", ""]
    lines += ["| exercise | verdict | checks passed |", "|---|---|---:|"]
    for item in grade.exercises:
        work, title = item.work, grading.exercises[item.work.exercise].title
        passed = sum(check.outcome is Outcome.PASS for check in work.checks)
        of = len(work.checks) or len(grading.exercises[work.exercise].checks)
        lines.append(f"| {work.exercise}: {title} | {work.outcome or NOT_YET} | {passed} of {of} |")
    for item in grade.exercises:
        if item.share != 1.0:
            said = "\n".join(printable(line, MAX_REASON) for line in explained(item.work))
            lines += ["", f"### {item.work.exercise}", "", f"<pre>{html.escape(said)}</pre>"]
    return "\n".join(lines) + "\n"


# -- what is filled in: a table that the platform exported --

#: Bytes of such a table, and of a cell in it.
_LARGEST, _LONGEST = 16 << 20, 1 << 17


@dataclass(frozen=True)
class Filled:
    """A table with grades, and what to tell: who is in it without a grade, and who is not in it."""

    text: str
    notes: list[str]


def _table(path: Path, wanted: str) -> list[list[str]]:
    """The rows of an exported CSV. Raises BadInput."""
    hint = f"export {wanted} again"
    try:
        if path.stat().st_size > _LARGEST:
            raise BadInput(f"{path}: more than {_LARGEST >> 20} MiB", hint)
        text = path.read_text(encoding="utf-8-sig")
        first = text.partition("\n")[0]
        csv.field_size_limit(_LONGEST)
        delimiter = ";" if first.count(";") > first.count(",") else ","
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: cannot be read: {printable(error)}", hint) from error
    if not rows:
        raise BadInput(f"{path}: it is empty", hint)
    width = len(rows[0])
    return [(row + [""] * width)[:width] for row in rows]


def _column(header: Sequence[str], path: Path, name: str, fits: Callable[[str], bool] | None = None) -> int:
    """The place of a heading. Raises BadInput naming those that are there."""
    places = [place for place, one in enumerate(header) if (fits(one) if fits else one.strip() == name)]
    if len(places) != 1:
        there = ", ".join(printable(one.strip(), 40) for one in header[:20])
        what = "several columns are called" if places else "there is no column"
        raise BadInput(
            f"{path}: {what} {name}; there are: {there}", "export it in English, and name a column that it has"
        )
    return places[0]


def _maximum(cell: str, course: Course, path: Path) -> None:
    """Raise BadInput if the platform counts other points than the course."""
    with_point = cell.strip().replace(",", ".")
    if re.fullmatch(r"\d+(\.\d+)?", with_point) and float(with_point) != course.points:
        what = f"{path}: the assignment has {with_point} points, the course {number(course.points)}"
        raise BadInput(what, f"set `points: {number(float(with_point))}` in course.yml")


def _by_number(grades: Sequence[Grade], path: Path) -> dict[str, Grade]:
    """By the number at the end of a student's name in marks. Raises BadInput without any."""
    found = {grade.student.id.rpartition("_")[2]: grade for grade in grades if "_" in grade.student.id}
    if not any(key.isdecimal() for key in found):
        raise BadInput(
            f"{path}: no student of this grading has a number of that platform", "grade what the platform exported"
        )
    return found


def _notes(grades: Sequence[Grade], met: set[str]) -> list[str]:
    """Whose grade is open, and who has no row."""
    found = [f"{grade.student.id}: no row in the table" for grade in grades if grade.student.id not in met]
    return found + [
        f"{grade.student.id}: the grade is open ({', '.join(grade.open)})"
        for grade in grades
        if grade.student.id in met and grade.points is None
    ]


def moodle_worksheet(grading: Grading, course: Course, grades: Sequence[Grade], path: Path) -> Filled:
    """Moodle's grading worksheet with grades and comments, as it was downloaded from the assignment.

    Only what the import reads, and the names, are kept. Raises BadInput.
    """
    header, *rows = _table(path, "the grading worksheet")
    at_id, at_grade, at_time = (
        _column(header, path, name) for name in ("Identifier", "Grade", "Last modified (grade)")
    )
    at_names = [place for place, name in enumerate(header) if name.strip() == "Full name"]
    maximum = next((place for place, name in enumerate(header) if name.strip().casefold() == "maximum grade"), None)
    by_number, met, filled = _by_number(grades, path), set(), []
    for row in rows:
        if maximum is not None:
            _maximum(row[maximum], course, path)
        digits = re.search(r"(\d+)\s*$", row[at_id])
        grade = by_number.get(digits[1]) if digits else None
        if grade is None or grade.student.id in met:
            continue
        met.add(grade.student.id)
        comment = "<br>".join(html.escape(line) for line in _comments(grading, grade))
        cells = [harmless(row[place]) for place in (at_id, *at_names)]
        filled.append([*cells, number(grade.points), _time(row[at_time]), comment])
    names = [header[place].strip() for place in (at_id, *at_names, at_grade, at_time)]
    return Filled(csv_text([*names, "Feedback comments"], filled), _notes(grades, met))


def _time(cell: str) -> str:
    """A time, or what stands for none."""
    return cell if cell.strip() == "-" else harmless(cell)


def _comments(grading: Grading, grade: Grade) -> list[str]:
    """A line about the whole, then one for each exercise."""
    lines = [printable(line, MAX_REASON) for line in _about(grading, grade)]
    for item in grade.exercises:
        title = grading.exercises[item.work.exercise].title
        reason = "" if item.share == 1.0 else f": {printable(item.work.reason, MAX_REASON)}"
        lines.append(f"{title}: {item.work.outcome or NOT_YET}{reason}")
    return lines


def moodle_feedback(grades: Sequence[Grade], pages: Callable[[Grade], str]) -> bytes:
    """The archive for "Upload multiple feedback files in a zip": the page of each student.

    pages  the page of a grade, as HTML
    """
    files = {}
    for grade in grades:
        name, _, digits = grade.student.id.rpartition("_")
        if name and digits.isdecimal():
            plain = name.replace("_", "-")  # Moodle splits at it
            files[f"{plain}_{digits}_assignfeedback_file/feedback.html"] = pages(grade).encode(), 0o644
    return zip_archive(files)


#: What Canvas writes before the columns of assignments, and looks for.
_CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")


def canvas_gradebook(course: Course, grades: Sequence[Grade], path: Path, assignment: str) -> Filled:
    """Canvas's gradebook, as it was exported, with the column of one assignment alone.

    assignment  its title, or its number; the heading has both: `Title (4711)`
    Raises BadInput.
    """
    header, *rows = _table(path, "the gradebook")
    kept = [place for place, name in enumerate(header) if name.strip() in _CANVAS_COLUMNS]
    at_id = _column(header, path, "ID")
    for name in ("Student", "Section"):  # the import refuses a table without them
        _column(header, path, name)
    heading = re.compile(rf"{re.escape(assignment)}( \(\d+\))?|.* \({re.escape(assignment)}\)", re.DOTALL)
    column = _column(header, path, assignment, lambda name: bool(heading.fullmatch(name.strip())))
    by_number, met, filled = _by_number(grades, path), set(), []
    for row in rows:
        if "Points Possible" in row[0] and not row[at_id].strip():
            _maximum(row[column], course, path)
            filled.append([row[0], *("" for _ in kept[1:]), row[column]])
        grade = by_number.get(row[at_id].strip())
        if grade is None or grade.student.id in met:
            continue
        met.add(grade.student.id)
        if grade.points is not None:
            cells = [harmless(row[place]).replace("Points Possible", "…") for place in kept]  # no name is that row's
            filled.append([*cells, number(grade.points)])
    names = [header[place].strip() for place in kept]
    return Filled(csv_text([*names, header[column].strip()], filled), _notes(grades, met))
