# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab author bundle`: archives for students, without solutions."""

from pathlib import Path
from typing import Annotated

import typer

from fwlab.checkout.project import display_path, find_project, lab_ids
from fwlab.grading.student_bundle import write_bundle


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
