# SPDX-License-Identifier: GPL-2.0-or-later
"""What results/ holds of each lab, and of a lab for several systems of each of them: "lab08-pf:linux"."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fwlab.checkout.raw_results import name_of, raw_results, read_document
from fwlab.grading.lab_rulesets import load_variants
from fwlab.measure.saved_runs import load_run, published_files
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.model.systems import on_system, several
from tests.checkout import LAB_IDS, PROJECT, lab_named

#: What the results of a grading have, and those of cases have not.
GRADED = b'"ruleset": "ex'


def _names() -> list[str]:
    found = []
    for name in LAB_IDS:
        lab = lab_named(name)
        if several(lab):
            endings = {name_of(path).removeprefix("published-") for path in published_files(PROJECT, lab)}
            found += [f"{name}:{system}" for system in lab.needs.systems if system in endings]
        elif published_files(PROJECT, lab):
            found.append(name)
    return found


#: Everything that was measured in full.
NAMES = _names()


def lab_of(name: str) -> Lab:
    """The lab, or what one of its systems measures of it."""
    lab_id, _, system = name.partition(":")
    lab = lab_named(lab_id)
    return on_system(lab, system) if system else lab


def files(name: str, kind: str) -> list[Path]:
    """The results of a kind, such as "graded-variants*", the oldest first."""
    lab_id, _, system = name.partition(":")
    return raw_results(PROJECT, f"{lab_id}/*-{system}-{kind}" if system else f"{lab_id}/*-{kind}")


#: Exercises that have changed since their variants were graded, by name. Their references are graded anew.
DUE = {
    "lab08-pf:freebsd": {"ex6-no-state"},
}


@cache
def graded(name: str, *, due: bool = False) -> tuple[Lab, dict[str, tuple[Measured, Run]]]:
    """The lab, and the newest reliable grading of each of its rulesets, by the ruleset's folder.

    due  with the variants of exercises that have changed since
    """
    lab = lab_of(name)
    wanted = {f"{exercise.id}/{part}" for exercise in lab.exercises for part in ("start", "reference", "mistake")}
    for exercise in lab.exercises:
        if exercise.id in DUE.get(name, ()) and not due:
            continue
        wanted |= {f"{exercise.id}/variants/{one}" for one in load_variants(PROJECT, lab, exercise).names}
    runs = [load_run(path, lab.id) for path in files(name, "*") if GRADED in read_document(path)]
    newest: dict[str, tuple[Measured, Run]] = {}
    for run in sorted(runs, key=lambda run: run.started):
        for measured in run.exercises:
            if measured.ruleset in wanted and (not measured.problems or measured.ruleset not in newest):
                newest[measured.ruleset] = measured, run
    return lab, newest
