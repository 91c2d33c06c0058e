# SPDX-License-Identifier: GPL-2.0-or-later
"""hints.yml: for each exercise, hints from a nudge to a strong one. None is the answer."""

from typing import Annotated

from pydantic import Field, RootModel

from fwlab.checkout.project import Project, display_path, read_yaml
from fwlab.model.declared import Identifier
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab

FILE = "hints.yml"
Hint = Annotated[str, Field(min_length=1, max_length=1000)]


class Hints(RootModel[dict[Identifier, Annotated[list[Hint], Field(min_length=1, max_length=5)]]]):
    """By exercise, its hints in the order in which they are shown."""


def hints_of(project: Project, lab: Lab) -> dict[str, list[str]]:
    """By exercise, its hints; empty if the lab has none.

    Raises BadInput, naming the file, if it is faulty or names an exercise that the lab does not have.
    """
    path = lab.folder / FILE
    if not path.exists():
        return {}
    found = read_yaml(project, path, Hints).root
    for exercise in found:
        if lab.whole.exercise(exercise) is None:
            known = ", ".join(e.id for e in lab.whole.exercises)
            where = display_path(project, path)
            raise BadInput(f"{where}: {lab.id} has no exercise {exercise}; it has: {known}", f"fix {where}")
    return {exercise: [" ".join(hint.split()) for hint in hints] for exercise, hints in found.items()}
