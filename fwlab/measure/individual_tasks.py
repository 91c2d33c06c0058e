# SPDX-License-Identifier: GPL-2.0-or-later
"""Individual tasks: a lab with the numbers that are drawn for one student."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from fwlab.checkout.project import Project, display_path, validated
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.measure.labs import lab_in
from fwlab.model.declared import Strict, Value
from fwlab.model.drawn import Drawn
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system, with_systems
from fwlab.rulesets.files import systems_in

FORMAT: Final = "fwlab-tasks/1"
Numbers = Mapping[str, Value]


class Tasks(Strict):
    """A task file: by lab and student, the numbers that were drawn. It does not have the secret."""

    format: Literal["fwlab-tasks/1"] = FORMAT
    tasks: dict[str, dict[str, dict[str, Value]]]


class OwnTask(Strict):
    """work/task.yml: the task of the student who works in this checkout."""

    format: Literal["fwlab-tasks/1"] = FORMAT
    student: str = Field(min_length=1, max_length=64)
    numbers: dict[str, Value]


def of_students(lab: Lab) -> dict[str, Drawn]:
    """The numbers of the lab that differ from student to student, by name."""
    return {name: drawn for name, drawn in lab.whole.drawn.items() if drawn.of == "student"}


def draw(secret: str, lab: Lab, student: str) -> dict[str, Value]:
    """The student's numbers. Without the secret, another student's cannot be derived."""
    return {name: drawn.value(secret, lab.id, name, student) for name, drawn in of_students(lab).items()}


def individual_lab(project: Project, lab: Lab, numbers: Numbers) -> Lab:
    """The lab with these numbers added, validated like any other. Raises BadInput.

    Its cases, and the traffic that they play, must be those of the lab, so that all students have the same baseline.
    """
    path = lab.folder / "lab.yml"
    name = display_path(project, path)
    data = json.loads(json.dumps(read_yaml_file(path, name)))  # what an alias repeats becomes separate
    declared = of_students(lab)
    for key, number in numbers.items():
        if key not in declared or number not in declared[key].values:
            raise BadInput(f"{lab.id}: drawn.{key}: {number} is not valid for this task", "get a new task file")
        try:
            declared[key].put(data, number)
        except ValueError as error:
            raise BadInput(f"{name}: drawn.{key}: {error}", f"fix {name}") from error
    own = lab_in(data, f"{name} with individual numbers")
    own._folder = lab.folder
    own = with_systems(own.with_ranges(lab.whole.ranges), lambda ruleset: systems_in(lab.folder / "rulesets" / ruleset))
    _reject_other_cases(name, lab.whole, own)
    return on_system(own, _system(lab))


def _system(lab: Lab) -> str:
    systems = {exercise.system for exercise in lab.exercises if exercise.system}
    return systems.pop() if len(systems) == 1 else lab.needs.systems[0]


def _reject_other_cases(name: str, lab: Lab, own: Lab) -> None:
    for case_id, case in lab.cases.items():
        traffic = case.traffic
        if own.cases.get(case_id) != case or (traffic and own.traffic[traffic] != lab.traffic[traffic]):
            raise BadInput(f"{name}: drawn: it changes the case {case_id}, which all share", f"fix {name}")


def with_own_task(project: Project, lab: Lab) -> Lab:
    """The lab with the task of the student who works here, if work/task.yml has one. Raises BadInput."""
    path = own_task_file(lab)
    if not path.exists():
        return lab
    own = read_own_task(project, path)
    return individual_lab(project, lab, own.numbers)


def own_task_file(lab: Lab) -> Path:
    """Where the numbers of the student who works here are kept."""
    return lab.folder / "work" / "task.yml"


def read_own_task(project: Project, path: Path) -> OwnTask:
    """Raises BadInput naming the file."""
    name = display_path(project, path)
    hint = f"`fwlab task` writes it, or remove {name}"
    return validated(read_yaml_file(path, name, hint), name, OwnTask, hint=hint)


def read_tasks(path: Path) -> Tasks:
    """A task file. Raises BadInput naming the field."""
    hint = "get the task file again"
    return validated(read_yaml_file(path, str(path), hint), str(path), Tasks, hint=hint)


def values(lab: Lab, own: Lab, exercise_id: str) -> list[tuple[str, str, str]]:
    """What differs in an exercise: where, what the lab's page says, and what this student has."""
    found: list[tuple[str, str, str]] = []
    before, after = lab.whole.exercise(exercise_id), own.whole.exercise(exercise_id)
    if before is None or after is None:
        return found
    pairs: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
        ("", before.parameters, after.parameters),
    ]
    if before.traffic is not None and after.traffic is not None:
        played = lab.whole.traffic[before.traffic], own.whole.traffic[after.traffic]
        pairs.append(("traffic: ", played[0].tunables, played[1].tunables))
    for kind, theirs, mine in pairs:
        found += [(kind + name, str(theirs[name]), str(mine[name])) for name in theirs if theirs[name] != mine[name]]
    for old, new in zip(before.checks, after.checks, strict=True):
        if old.between != new.between:
            was, now = (" to ".join(f"{side:g}" for side in check.between) for check in (old, new))
            found.append((f"limit: {old.id}", was, now))
    return found
