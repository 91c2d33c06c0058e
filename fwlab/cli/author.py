# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab author`: what an instructor hands out, and what a class wrote into its workbooks."""

from pathlib import Path
from typing import Annotated

import typer

from fwlab.checkout.project import display_path, find_project, lab_ids
from fwlab.cli.options import LabName
from fwlab.grading.class_files import explanations
from fwlab.grading.student_bundle import write_bundle
from fwlab.measure.labs import load_lab

app = typer.Typer(help="Pack bundles for students; print what a class wrote into its workbooks.", no_args_is_help=True)


@app.command("bundle")
def bundle_command(
    labs: Annotated[
        list[str] | None, typer.Argument(metavar="[LAB]...", help="Labs of one bundle (default: all).")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Folder to write to (default: bundles/).")] = None,
) -> None:
    """Pack what a student needs into one .tar.gz: no references, mistakes, variants, results or instructor's texts."""
    project = find_project()
    chosen = labs or lab_ids(project)
    path = write_bundle(project, chosen, output or project.root / "bundles", every=not labs)
    typer.echo(f"written: {display_path(project, path)} ({path.stat().st_size / 1e6:.1f} MB)")


@app.command("answers")
def answers_command(
    lab: LabName,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder per student, each with what was in work/.")],
) -> None:
    """Print what a class wrote into its workbooks, as CSV: numbers, whether they agree, and reasons."""
    project = find_project()
    typer.echo(explanations(project, load_lab(project, lab), folder), nl=False)
