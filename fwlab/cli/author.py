# SPDX-License-Identifier: GPL-2.0-or-later
"""What an author of labs begins with: `fwlab author new-lab` and `fwlab author schemas`."""

import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from fwlab.checkout.project import display_path, find_project, lab_ids
from fwlab.cli.schemas import write_schemas
from fwlab.model.errors import BadInput

#: What the template's files call the lab.
EXAMPLE = "lab99-example"


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


def schemas_command(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where to write them (default: the checkout's schemas/).")
    ] = None,
) -> None:
    """Write the JSON Schemas of lab.yml, course.yml and the other YAML files, with the names that plug-ins register."""
    project = find_project()
    for path in write_schemas(folder or project.root / "schemas"):
        typer.echo(f"written: {display_path(project, path)}")
