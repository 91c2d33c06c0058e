# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab task`: what a student's own task has in place of what the lab's page says."""

from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import find_project
from fwlab.cli.options import LabName
from fwlab.cli.output import plain
from fwlab.measure.individual_tasks import (
    FORMAT,
    individual_lab,
    own_task_file,
    read_own_task,
    read_tasks,
    values,
)
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import chosen_exercises
from fwlab.model.declared import Value
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.printable import printable

out = Console()


def task_command(
    lab: LabName,
    exercise: Annotated[str, typer.Argument(metavar="EXERCISE", help="One of the lab's exercises.")],
    student: Annotated[
        str | None, typer.Option("--student", metavar="NAME", help="Your name in the task file.")
    ] = None,
    file: Annotated[Path, typer.Option("--file", metavar="FILE", help="The task file that you were given.")] = Path(
        "tasks.yml"
    ),
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
    for where, page, mine in values(found, individual_lab(project, found, own.numbers), chosen.id):
        plain(out, f"{where}: {mine} (on the page: {page})")
    plain(out, f"{chosen.id}: the task of {printable(own.student)}; everything else is as on the page")
    if (found.folder / "work" / chosen.id).exists():
        plain(
            out, f"work/{chosen.id} was there before; if it has the start of another task, move it away and start again"
        )


def numbers_of(file: Path, lab: Lab, student: str) -> dict[str, Value]:
    """The student's numbers in the task file. Raises BadInput."""
    tasks = read_tasks(file).tasks.get(lab.id, {})
    if student not in tasks:
        what = f"nobody is called {printable(student)}" if tasks else f"it has no tasks of {lab.id}"
        raise BadInput(f"{file}: {what}", "ask your instructor for the task file and your name in it")
    return tasks[student]
