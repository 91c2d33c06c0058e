# SPDX-License-Identifier: GPL-2.0-or-later
"""What an instructor does with finished gradings: `fwlab grades` and `fwlab verify`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, find_project
from fwlab.cli.options import Json, LabName
from fwlab.cli.output import instead_of_text, plain
from fwlab.grading.class_files import for_moodle, totals_csv, write_class, write_merged
from fwlab.grading.class_folder import NAME
from fwlab.grading.course import Course, grade_class, read_course, reject_unknown
from fwlab.grading.platforms import canvas_gradebook
from fwlab.grading.record import read_record
from fwlab.grading.verify import Verified, verify
from fwlab.measure.individual_tasks import FORMAT, draw, of_students
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNMEASURED, BadInput
from fwlab.model.printable import printable

app = typer.Typer(help="Grades of a class, from gradings that are finished.", no_args_is_help=True)
out = Console()

Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="The folder of a grading.")]
Several = Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Folders of gradings.")]
CourseFile = Annotated[Path | None, typer.Option("--course", metavar="FILE", help="course.yml.")]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="A new folder for the result.")]


@app.command("merge")
def merge_command(parts: Several, output: Output, course: CourseFile = None) -> None:
    """Join the parts of a class that were graded on several hosts."""
    project = find_project()
    record = write_merged(parts, output, course_of(project, course, read_record(parts[0]).begun.lab))
    plain(out, f"{len(record.students)} students in {output / 'grades.csv'}")


@app.command("write")
def write_command(results: Results, course: CourseFile = None) -> None:
    """Write grades and pages again, for example after a change of course.yml. Nothing is judged again."""
    grading = read_record(results).grading()
    write_class(grading, course_of(find_project(), course, grading.lab), results)
    plain(out, f"{len(grading.students)} students in {results / 'grades.csv'}")


@app.command("total")
def total_command(
    results: Several,
    course: Annotated[Path, typer.Option("--course", metavar="FILE", help="course.yml, with the weights of the labs.")],
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The table to write.")] = Path("course.csv"),
) -> None:
    """Sum up the labs of a course: one row per student."""
    project = find_project()
    gradings = [read_record(folder).grading() for folder in results]
    found = read_course(project, course)
    for grading in gradings:
        reject_unknown(found, load_lab(project, grading.lab), str(course))
    write_atomically(output, totals_csv(gradings, found))
    plain(out, f"written: {output}")


@app.command("moodle")
def moodle_command(
    results: Results,
    worksheet: Annotated[Path, typer.Argument(metavar="FILE", help="The grading worksheet that Moodle offers.")],
    output: Output,
    course: CourseFile = None,
) -> None:
    """Fill in Moodle's grading worksheet, and pack a page for each student as feedback files."""
    grading = read_record(results).grading()
    for note in for_moodle(grading, course_of(find_project(), course, grading.lab), worksheet, output):
        plain(out, note)
    plain(out, f"written: {output / 'worksheet.csv'} and {output / 'feedback.zip'}")


@app.command("canvas")
def canvas_command(
    results: Results,
    gradebook: Annotated[Path, typer.Argument(metavar="FILE", help="The gradebook that Canvas exports.")],
    assignment: Annotated[str, typer.Option("--assignment", metavar="NAME", help="Its title, or its number.")],
    course: CourseFile = None,
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The table to write.")] = Path("canvas.csv"),
) -> None:
    """Fill in one assignment of Canvas's gradebook, to be imported there."""
    grading = read_record(results).grading()
    found = course_of(find_project(), course, grading.lab)
    filled = canvas_gradebook(found, grade_class(grading, found), gradebook, assignment)
    for note in filled.notes:
        plain(out, note)
    write_atomically(output, filled.text)
    plain(out, f"written: {output}")


@app.command("tasks")
def tasks_command(
    lab: LabName,
    course: Annotated[Path, typer.Option("--course", metavar="FILE", help="course.yml, with a secret.")],
    students: Annotated[Path, typer.Option("--students", metavar="FILE", help="One name per line.")],
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The task file.")] = Path("tasks.yml"),
) -> None:
    """Draw an individual task for each student, for you to hand out. The file does not have the secret."""
    project = find_project()
    found, declared = read_course(project, course), load_lab(project, lab)
    if found.secret is None:
        raise BadInput(
            f"{course}: secret: this field is missing", "set it to at least 16 characters that cannot be guessed"
        )
    if not of_students(declared):
        hint = f"declare a number `of: student` under `drawn` in labs/{lab}/lab.yml"
        raise BadInput(f"{lab} has no individual tasks", hint)
    names = roster(students)
    tasks = {lab: {name: draw(found.secret, declared, name) for name in names}}
    write_atomically(output, yaml.safe_dump({"format": FORMAT, "tasks": tasks}, sort_keys=False, allow_unicode=True))
    plain(out, f"{len(names)} tasks in {output}")


def verify_command(results: Results, as_json: Json = False) -> None:
    """Judge stored results again, without a machine, and say which files and limits have changed since."""
    found = verify(find_project(), results)
    with instead_of_text(lambda: asdict(found), as_json=as_json):
        _show_verified(found)


def _show_verified(found: Verified) -> None:
    for line in [*found.changes, *found.faults]:
        plain(out, line)
    for mark in found.marks:
        plain(out, f"{mark.student}/{mark.exercise}: was {mark.was}, is {mark.now}: {mark.why}")
    plain(out, f"{found.judged - len(found.marks) - len(found.faults)} of {found.judged} marks are the same today")
    raise typer.Exit(EXIT_FAIL if found.marks else EXIT_UNMEASURED if found.faults else EXIT_PASS)


def roster(path: Path) -> list[str]:
    """Names, one per line; empty lines and comments are left out. Raises BadInput naming the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read", "give a text file with one name per line") from error
    names = [line.partition("#")[0].strip() for line in lines]
    for number, name in enumerate(names, 1):
        if name and (not NAME.fullmatch(name) or name in names[: number - 1]):
            why = "appears twice" if NAME.fullmatch(name) else "a name may hold only letters, digits and . _ @ -"
            raise BadInput(f"{path}:{number}: {printable(name)}: {why}", f"fix {path}")
    found = [name for name in names if name]
    if not found:
        raise BadInput(f"{path}: no student names found", "write one name per line")
    return found


def course_of(project: Project, path: Path | None, lab: str) -> Course:
    """What course.yml says of the lab; the default without one. Raises BadInput."""
    if path is None:
        return Course()
    course = read_course(project, path)
    reject_unknown(course, load_lab(project, lab), str(path))
    return course
