# SPDX-License-Identifier: GPL-2.0-or-later
"""The student's folder of an exercise: labs/LAB/work/EXERCISE, which begins as a copy of the exercise's start."""

import shutil
from datetime import datetime
from pathlib import Path

from fwlab.checkout.atomic_write import write_errors_as
from fwlab.measure.context import RunContext
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.topology import Topology
from fwlab.rulesets.files import lab_ruleset, plain_files, rendered

#: The folder in work/ with what was there before an exercise was started over.
KEPT = "kept"


def ensure_started(context: RunContext, exercise: Exercise) -> Path:
    """The folder; made from the start's rendered rulesets and notes if it is not there.

    Raises BadInput if it cannot be written; it is never left half-made.
    """
    folder = context.lab.folder / "work" / exercise.id
    if folder.exists():
        return folder
    start = context.lab.folder / "rulesets" / exercise.id / "start"
    files = lab_ruleset(start, exercise.parameters, context.topology)
    partial = folder.with_name(folder.name + ".part")
    with write_errors_as(folder):
        shutil.rmtree(partial, ignore_errors=True)
        try:
            partial.mkdir(parents=True)
            for file in files:
                (partial / file.name).write_text(file.text)
            for note in start.iterdir():
                if note.suffix in (".md", ".txt"):
                    shutil.copy(note, partial / note.name)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def is_start(lab: Lab, exercise: Exercise, topology: Topology) -> bool:
    """Whether the student's files are still those of the start. What is not loaded does not count."""
    start = dict(rendered(lab.folder / "rulesets" / exercise.id / "start", exercise.parameters, topology))
    try:
        own = dict(plain_files(lab.folder / "work" / exercise.id, exercise.id))
    except BadInput:
        return False
    return own == {name: text.encode() for name, text in start.items()}


def started_over(context: RunContext, exercise: Exercise) -> Path | None:
    """Put the folder back to the start. What was there is kept; returns where, or None if nothing had changed."""
    folder = context.lab.folder / "work" / exercise.id
    kept = None
    if folder.exists() and not is_start(context.lab, exercise, context.topology):
        kept = _unused(folder.parent / KEPT / f"{exercise.id}-{datetime.now().astimezone():%Y-%m-%d-%H%M%S}")
        with write_errors_as(kept):
            kept.parent.mkdir(exist_ok=True)
            folder.rename(kept)
    ensure_started(context, exercise)
    return kept


def _unused(path: Path) -> Path:
    """The path, with a number behind it if it is taken."""
    count, found = 1, path
    while found.exists():
        count += 1
        found = path.with_name(f"{path.name}-{count}")
    return found
