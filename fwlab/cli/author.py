# SPDX-License-Identifier: GPL-2.0-or-later
"""What an author of labs does, and an instructor before a course: `fwlab author`."""

import re
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fwlab.checkout.project import display_path, find_project, lab_ids, lab_named
from fwlab.cli.grades import CourseFile, course_of
from fwlab.cli.options import LabName
from fwlab.cli.output import plain
from fwlab.cli.schemas import write_schemas
from fwlab.grading.autograders import write_classroom50, write_gradescope
from fwlab.grading.class_files import explanations
from fwlab.grading.student_bundle import write_bundle
from fwlab.grading.student_repository import write_repository
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput

app = typer.Typer(help="Begin a lab; pack bundles and autograders; print what a class wrote.", no_args_is_help=True)
out = Console()

#: What the template's files call the lab.
EXAMPLE = "lab99-example"


@app.command("bundle")
def bundle_command(
    labs: Annotated[
        list[str] | None, typer.Argument(metavar="[LAB]...", help="Labs of one bundle (default: all).")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Folder to write to (default: bundles/).")] = None,
    repository: Annotated[
        Path | None,
        typer.Option("--repo", metavar="DIR", help="Write a template of students' repositories for one lab instead."),
    ] = None,
    image: Annotated[
        str, typer.Option("--image", metavar="NAME", help="With --repo: the image, where students can get it.")
    ] = "fwlab",
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", metavar="FILE", help="With --repo: the numbers drawn for each repository."),
    ] = None,
) -> None:
    """Pack what a student needs into one .tar.gz: no references, mistakes, variants, results or instructor's texts."""
    project = find_project()
    chosen = [lab_named(project, name) for name in labs or lab_ids(project)]
    if repository is not None:
        if len(chosen) != 1:
            raise BadInput("--repo is for one lab", f"fwlab author bundle {chosen[0]} --repo {repository}")
        write_repository(project, chosen[0], repository, image, tasks)
        plain(out, f"written: {repository}; it grades in the image {image}")
        return
    path = write_bundle(project, chosen, output or project.root / "bundles", every=not labs)
    typer.echo(f"written: {display_path(project, path)} ({path.stat().st_size / 1e6:.1f} MB)")


@app.command("gradescope")
def gradescope_command(
    lab: LabName,
    boxes: Annotated[str, typer.Option("--boxes", metavar="URL", help="A .tar of what `make boxes EXPORT=` wrote.")],
    sha256: Annotated[str, typer.Option("--sha256", metavar="SUM", help="The SHA-256 of that archive.")],
    course: CourseFile = None,
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The .zip to write.")] = Path(
        "autograder.zip"
    ),
) -> None:
    """Pack an autograder for Gradescope: setup.sh, run_autograder, and what a bundle has."""
    project = find_project()
    if course is not None:
        course_of(project, course, lab)
    write_gradescope(project, lab_named(project, lab), output, boxes, sha256, course)
    plain(out, f"written: {output}")


@app.command("classroom50")
def classroom50_command(
    lab: LabName,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="CLASSROOM/autograders/ASSIGNMENT.")],
    image: Annotated[
        str, typer.Option("--image", metavar="NAME", help="The image, where runners can get it.")
    ] = "fwlab",
) -> None:
    """Write an autograder for Classroom 50 into its folder of your classroom50 repository."""
    project = find_project()
    write_classroom50(project, lab_named(project, lab), folder, image)
    plain(out, f"written: {folder / 'autograder.py'} and {folder / 'grade'}")


@app.command("answers")
def answers_command(
    lab: LabName,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder per student, each with what was in work/.")],
) -> None:
    """Print what a class wrote, as CSV: answers, whether they agree, predictions of exercises, and reasons."""
    project = find_project()
    typer.echo(explanations(project, load_lab(project, lab), folder), nl=False)


@app.command("new-lab")
def new_lab_command(
    lab: Annotated[str, typer.Argument(metavar="LAB", help="The new lab's name, such as lab42-queues.")],
) -> None:
    """Copy the template to labs/LAB, under its own name."""
    project = find_project()
    template, folder = project.labs / "_template", project.labs / lab
    if not template.is_dir():
        raise BadInput(f"{project.root} has no labs/_template", "git clone the project, and call it there")
    if not re.fullmatch(r"lab\d\d-[a-z0-9-]+", lab):
        raise BadInput(f"{lab} is no name of a lab", "write labNN-name, in lower case, such as lab42-queues")
    if taken := [other for other in lab_ids(project) if other[:5] == lab[:5]]:
        raise BadInput(f"{taken[0]} has this number, from which a lab's ports follow", "take another number")
    shutil.copytree(template, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in filter(Path.is_file, folder.rglob("*")):
        text = path.read_text(encoding="utf-8")
        if EXAMPLE in text:
            path.write_text(text.replace(EXAMPLE, lab), encoding="utf-8")
    typer.echo(f"written: {display_path(project, folder)}")
    typer.echo(f"next: edit labs/{lab}/lab.yml, then `fwlab list {lab}`")


@app.command("schemas")
def schemas_command(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where to write them (default: the checkout's schemas/).")
    ] = None,
) -> None:
    """Write the JSON Schemas of lab.yml, course.yml and the other YAML files, with the names that plug-ins register."""
    project = find_project()
    for path in write_schemas(folder or project.root / "schemas"):
        typer.echo(f"written: {display_path(project, path)}")
