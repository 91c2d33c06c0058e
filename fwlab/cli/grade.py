# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab grade`: the instructor's grading, with the options of `fwlab`."""

from pathlib import Path
from typing import Annotated

import typer

from fwlab.cli.options import DrawnSeed, LabName, Verbose
from fwlab.host.project import find_project
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_USAGE


def grade_command(
    lab: LabName,
    submissions: Annotated[
        Path | None, typer.Option(help="A folder or an archive per student, or what a learning platform exports.")
    ] = None,
    course: Annotated[Path | None, typer.Option(help="course.yml: weights, deadlines, partial marks.")] = None,
    results: Annotated[Path | None, typer.Option(help="Folder to write to (default: reports/LAB/grading).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Do not measure again what was decided before.")] = False,
    further: Annotated[bool, typer.Option("--further", help="Grade the further exercises, too.")] = False,
    sets: Annotated[int, typer.Option("--sets", metavar="N", help="Grade on N sets of machines side by side.")] = 1,
    force_sets: Annotated[bool, typer.Option("--force-sets", help="Even where the host is too small.")] = False,
    verbose: Verbose = False,
    seed: DrawnSeed = None,
) -> None:
    """Grade a class: the same as `pytest --testinfra --lab LAB [--submissions DIR] [--further]`."""
    import pytest

    from fwlab.grading.guard import explicit

    project = find_project()
    load_lab(project, lab)
    arguments = [*explicit(), "-p", "no:cacheprovider", "--testinfra", "--lab", lab, *(["-v"] if verbose else [])]
    given = {"submissions": submissions, "course": course, "results": results}
    arguments += [f"--{name}={path}" for name, path in given.items() if path is not None]
    arguments += ["--resume"] if resume else []
    arguments += ["--further"] if further else []
    arguments += [f"--sets={sets}"] if sets != 1 else []
    arguments += ["--force-sets"] if force_sets else []
    arguments += [] if seed is None else [f"--traffic-seed={seed}"]
    code = pytest.main(arguments)
    raise typer.Exit(EXIT_USAGE if code == pytest.ExitCode.USAGE_ERROR else int(code))
