# SPDX-License-Identifier: GPL-2.0-or-later
"""The student's folder of an exercise: labs/LAB/work/EXERCISE, which begins as a copy of the exercise's start."""

import shutil
from pathlib import Path

from fwlab.host.atomic_write import write_errors_as
from fwlab.measure.context import RunContext
from fwlab.model.lab import Exercise
from fwlab.rulesets.files import lab_ruleset


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
