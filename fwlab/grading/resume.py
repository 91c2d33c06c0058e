# SPDX-License-Identifier: GPL-2.0-or-later
"""Continue a grading: what was decided before, under the same conditions, is not measured again."""

from dataclasses import dataclass
from pathlib import Path

from fwlab import __version__
from fwlab.grading.graded import Work
from fwlab.grading.record import (
    FILE,
    Conditions,
    ExerciseRecord,
    Grading,
    WorkMark,
    content_of,
    lab_files,
    measured_of,
    read_grading,
)
from fwlab.host.project import Project
from fwlab.judge.verdicts import blamed
from fwlab.measure.saved_runs import load_run
from fwlab.model.declared import Value
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome


@dataclass(frozen=True)
class Earlier:
    """An earlier grading of the same lab, as it was saved."""

    grading: Grading
    run: Run

    def decided(self, work: Work, numbers: dict[str, Value]) -> tuple[WorkMark, Measured] | None:
        """The mark and the measurement of this work, if the same files were handed in and a verdict was reached.

        numbers  those of the student's individual task
        """
        student = next((one for one in self.grading.students if one.id == work.who), None)
        if work.handed_in is None or student is None or student.individual != numbers:
            return None
        content = content_of(work.handed_in)
        for mark in self.grading.works:
            if (mark.student, mark.exercise, mark.content) != (work.who, work.exercise.id, content):
                continue
            measured = measured_of(self.run, work.who, work.exercise.id)
            settled = measured is not None and (mark.holds or _against_the_ruleset(measured))
            if measured is not None and settled and mark.outcome in (Outcome.PASS, Outcome.FAIL):
                return mark, measured
        return None

    def why_not(self, run: Run) -> str | None:
        """Why nothing can be taken over into this run; None if it can."""
        if self.grading.conditions is None:
            return "it had no machines yet"
        now = Conditions.of(run)
        if not now.portable:
            return f"figures of the {now.testbed} testbed hold for their session only"
        return self.grading.conditions.difference(now)


def read_earlier(project: Project, lab: Lab, folder: Path) -> tuple[Earlier | None, str]:
    """What this folder has of an earlier grading, or None and the reason. Raises BadInput for faulty files."""
    if not (folder / FILE).exists():
        return None, f"there is no {folder / FILE}"
    grading = read_grading(folder)
    if grading.lab != lab.id:
        return None, f"it is a grading of {grading.lab}"
    if grading.fwlab != __version__:
        return None, f"it was made by version {grading.fwlab}, this is {__version__}"
    if changed := changed_files(grading, project, lab):
        return None, f"{changed[0]} has changed since"
    if any(grading.exercises.get(e.id) != ExerciseRecord.of(e) for e in lab.whole.exercises):
        return None, "the lab's checks have changed since"
    return Earlier(grading, load_run(folder / "run.json", lab.id)), ""


def changed_files(grading: Grading, project: Project, lab: Lab) -> list[str]:
    """The lab's files that are not what they were, or that are new or gone."""
    now = lab_files(project, lab)
    return sorted(path for path in {*now, *grading.files} if now.get(path) != grading.files.get(path))


def _against_the_ruleset(measured: Measured) -> bool:
    """Whether it cannot be on the DUT: a tool refused it, it crashed the DUT, or it kept itself from being measured."""
    return measured.refused is not None or bool(measured.lost) or blamed(measured) is not None
