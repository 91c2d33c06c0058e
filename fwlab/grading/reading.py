# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what a student handed in, in child processes with limits: one unpacks and copies, the next one validates."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fwlab.grading.archive_members import Unreadable
from fwlab.grading.archives import discard
from fwlab.grading.class_folder import INSIDE, Student, exercises_of
from fwlab.grading.confined import Tell, told_by
from fwlab.grading.room import NoRoom
from fwlab.grading.submissions import HandedIn, Kept, Submissions
from fwlab.measure.context import RunContext
from fwlab.measure.plan import chosen_exercises, submitted_spec
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise
from fwlab.model.printable import printable
from fwlab.rulesets.files import texts_of

_HINT = "make it smaller or simpler"


def read(
    context: RunContext, student: Student, submissions: Submissions, *, further: bool
) -> list[tuple[Exercise, HandedIn]]:
    """Each exercise that is graded, and what was handed in for it. What cannot be read costs only the student.

    further  whether further exercises that were handed in are graded
    Raises NoRoom.
    """
    known = {exercise.id: exercise for exercise in context.lab.whole.exercises}
    told = told_by(partial(_copy, list(known.values()), student, submissions, further))
    discard(submissions.scratch / INSIDE)  # a child that was ended left it behind
    why = None if told.limit is None else BadInput(f"{student.source}: {told.limit}", _HINT)
    found: dict[str, HandedIn] = {}
    for value in told.values:
        if "no room" in value:
            raise NoRoom(*value["no room"])
        if "unreadable" in value:
            why = BadInput(*value["unreadable"])
        else:
            files = tuple(Kept(*file) for file in value["files"])
            found[value["exercise"]] = HandedIn(files, tuple(value["ignored"]), _fault(value["refused"]))
    if why is not None or told.bug is not None:
        refused = why and BadInput(f"submission cannot be read: {why.message}", why.hint)
        usual = [exercise for exercise in known.values() if not exercise.further]
        return [(exercise, HandedIn(refused=refused, broken=told.bug)) for exercise in usual]
    _validate_all(context, found)
    return [(known[name], handed_in) for name, handed_in in found.items()]


def _copy(exercises: Sequence[Exercise], student: Student, submissions: Submissions, further: bool, tell: Tell) -> None:
    """In a child: unpack an archive, and copy the files."""
    try:
        with exercises_of(student, [exercise.id for exercise in exercises], submissions.scratch) as inside:
            for exercise in exercises:
                if not exercise.further or (further and os.path.lexists(inside / exercise.id)):
                    copied = submissions.copied(exercise.id, inside / exercise.id, student.id)
                    refused = copied.refused and [copied.refused.message, copied.refused.hint]
                    told = {"files": copied.files, "ignored": copied.ignored, "refused": refused}
                    tell({"exercise": exercise.id, **told})
    except Unreadable as error:
        tell({"unreadable": [error.message, error.hint]})
    except NoRoom as error:
        tell({"no room": [error.message, error.hint]})


def _validate_all(context: RunContext, found: dict[str, HandedIn]) -> None:
    """Record what is wrong with each. After one that exceeds the limits, another child goes on with the next."""
    left = [name for name, one in found.items() if one.refused is None and context.lab.exercise(name) is not None]
    while left:
        told = told_by(partial(_validate, context, {name: found[name] for name in left}))
        at = left[0]
        for value in told.values:
            if "exercise" in value:
                name = value["exercise"]
                found[name] = replace(found[name], refused=_fault(value["refused"]), broken=value["broken"])
                left.remove(name)
            at = value.get("at", "".join(left[:1]))
        for name in left[:1]:
            refused = None if told.limit is None else BadInput(f"{at}: {told.limit}", _HINT)
            found[name] = replace(found[name], refused=refused, broken=told.bug)
        left = left[1:]


def _validate(context: RunContext, found: dict[str, HandedIn], tell: Tell) -> None:
    """In a child: validate the files of these exercises."""
    for name, handed_in in found.items():
        refused = broken = None
        try:
            files = texts_of(_told(handed_in, tell))
            [exercise] = chosen_exercises(context.lab, name)
            submitted_spec(context, exercise, Path(name), files, handed_in.ignored)
        except BadInput as error:
            refused = [error.message, error.hint]
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not fail the student
            broken = f"{type(error).__name__}: {error}"
        tell({"exercise": name, "refused": refused, "broken": broken})


def _told(handed_in: HandedIn, tell: Tell) -> Iterator[tuple[str, bytes]]:
    """The files; each is told before it is validated."""
    for name, data in handed_in.again():
        tell({"at": printable(name)})
        yield name, data


def _fault(told: list[Any] | None) -> BadInput | None:
    return None if told is None else BadInput(*told)
