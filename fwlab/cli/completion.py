# SPDX-License-Identifier: GPL-2.0-or-later
"""What the shell offers after Tab: labs, cases, exercises and questions. It never fails: a typing aid says nothing."""

from collections.abc import Callable, Iterable

import typer

from fwlab.checkout.project import Project, find_project, lab_ids
from fwlab.measure.core_models import known_cores
from fwlab.measure.labs import load_lab
from fwlab.model.errors import FwlabError
from fwlab.model.lab import Lab
from fwlab.student.workbook import predictions_of, workbook_of

#: What a lab has, by name, with a title.
Offer = Callable[[Project, Lab], Iterable[tuple[str, str]]]
Completer = Callable[[typer.Context, str], list[tuple[str, str]]]


def labs(incomplete: str) -> list[str]:
    """Labs that begin so."""
    try:
        return [name for name in lab_ids(find_project()) if name.startswith(incomplete)]
    except FwlabError:
        return []


def cores(incomplete: str) -> list[tuple[str, str]]:
    """Cores that can be modelled and begin so, with their titles."""
    return [(name, title) for name, title in known_cores().items() if name.startswith(incomplete)]


def _of_lab(offer: Offer) -> Completer:
    """A completer for what the lab on the command line has."""

    def complete(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        try:
            project = find_project()
            lab = load_lab(project, str(ctx.params.get("lab")))
            return [one for one in offer(project, lab) if one[0].startswith(incomplete)]
        except FwlabError:
            return []

    return complete


def _cases(_: Project, lab: Lab) -> list[tuple[str, str]]:
    sweeps = [(sweep.id, f"{sweep.title} (all)") for sweep in lab.sweeps]
    return [*sweeps, *((case.id, case.title) for case in lab.cases.values())]


def _exercises(_: Project, lab: Lab) -> list[tuple[str, str]]:
    return [(exercise.id, exercise.title) for exercise in lab.exercises]


def _cases_and_exercises(project: Project, lab: Lab) -> list[tuple[str, str]]:
    return [*_cases(project, lab), *_exercises(project, lab)]


def _questions(project: Project, lab: Lab) -> list[tuple[str, str]]:
    return [*((question.id, question.question) for question in workbook_of(project, lab)), *_exercises(project, lab)]


def _predictions(project: Project, lab: Lab) -> list[tuple[str, str]]:
    return [*((asked.id, asked.question) for asked in predictions_of(project, lab)), *_exercises(project, lab)]


cases = _of_lab(_cases)
exercises = _of_lab(_exercises)
cases_and_exercises = _of_lab(_cases_and_exercises)
questions = _of_lab(_questions)
predictions = _of_lab(_predictions)
