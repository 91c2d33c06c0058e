# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab init`: a folder to work in, for who installed fwlab without a checkout."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fwlab.checkout.project import Project, lab_ids
from fwlab.cli import doctor
from fwlab.grading.student_folder import make_folder
from fwlab.images.boxes import built_boxes
from fwlab.model.errors import CannotMeasure


def init_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or an empty one.")],
    labs: Annotated[
        list[str] | None, typer.Option("--lab", metavar="LAB", help="A lab; may be repeated (default: all).")
    ] = None,
) -> None:
    """Make a folder with labs, without solutions, and what builds and starts their machines."""
    made = make_folder(folder, labs or [])
    project = Project(folder)
    there = lab_ids(project)
    typer.echo(f"{folder} has {', '.join(there)}{'' if made else ' already'}")
    change = "" if folder.samefile(Path.cwd()) else f"cd {shlex.quote(str(folder))} && "
    typer.echo(f"next: {change}{_next(project, there[0])}")


def _next(project: Project, lab: str) -> str:
    """The first step that is left before the lab can be used."""
    if lacking := [one.item for one in doctor.programs(boxes_built=True) if one.required and not one.ok]:
        return f"provision/host/install   # as root; missing: {', '.join(lacking)}"
    try:
        built_boxes(project)
    except CannotMeasure:
        return f"packer/build --lab {lab}   # or --import FOLDER, with boxes from another host"
    return f"vagrant up {lab}"
