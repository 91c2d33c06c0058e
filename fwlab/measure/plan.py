# SPDX-License-Identifier: GPL-2.0-or-later
"""What a session is asked to measure: cases by name, exercises by whose ruleset."""

from __future__ import annotations

import shutil
from pathlib import Path

from fwlab.host.atomic_write import write_errors_as
from fwlab.host.project import shown
from fwlab.measure.context import RunContext
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Case, Trials
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import LONGEST_PATH, lab_ruleset, student_ruleset
from fwlab.rulesets.registry import KINDS

#: A trial of an exercise has so many packets at least: its mix has dear ones and cheap ones, and with 640 packets the
#: trials of a list of 500 pairs lay 3.6 % apart. Cheap ones are many more in so many seconds of the DUT's clock.
EXERCISE_PACKETS, EXERCISE_S = 2048, 0.1
#: The rulesets that a lab brings for each exercise.
PARTS = ("start", "reference", "mistake")


def chosen_cases(lab: Lab, names: list[str], *, quick: bool = False) -> list[Case]:
    """The named cases; a sweep's name stands for its cases. Raises BadInput for a name that is neither.

    Without names all of them, or with `quick` those that lab.yml marks so.
    """
    if not names:
        return _baseline_first(lab, [case for case in lab.cases.values() if case.quick or not quick])
    found: list[Case] = []
    for name in names:
        matching = [case for case in lab.cases.values() if name in (case.id, case.sweep)]
        if not matching:
            raise BadInput(f"{lab.id} has no case {name}; it has: {', '.join(lab.cases)}", f"fwlab list {lab.id}")
        found += [case for case in matching if case not in found]
    return _baseline_first(lab, found)


def _baseline_first(lab: Lab, chosen: list[Case]) -> list[Case]:
    """Survival is about multiples of the baseline's capacity: then it is measured as well, and before."""
    if not any("survival" in (case.metric, *case.also) for case in chosen):
        return chosen
    base = lab.cases[lab.baseline]
    return [base, *(case for case in chosen if case is not base)]


def case_task(context: RunContext, case: Case, trials: int | None) -> MeasurementSpec:
    lab = context.lab
    return MeasurementSpec(
        id=case.id,
        title=case.title,
        ruleset=case.ruleset,
        files=lab_ruleset(lab.folder / "rulesets" / case.ruleset, case.parameters, context.topology),
        metrics=[case.metric, *case.also],
        traffic=case.traffic,
        parameters=case.parameters,
        each=case.load == "each",
        trial=lab.trials.changed(trials).changed(case.trials),
        victim_class=case.victim_class,
        offered=case.offered,
        baseline=lab.baseline,
        state_packets=case.state_packets,
        sampled=case.sampled,
        fresh=case.fresh,
    )


def chosen_exercises(lab: Lab, name: str | None) -> list[Exercise]:
    if name is None:
        return list(lab.exercises)
    exercise = lab.exercise(name)
    if exercise is None:
        known = ", ".join(e.id for e in lab.exercises)
        raise BadInput(f"{lab.id} has no exercise {name}; it has: {known}", f"fwlab list {lab.id}")
    return [exercise]


def lab_part_task(context: RunContext, exercise: Exercise, part: str, trials: int | None = None) -> MeasurementSpec:
    """An exercise with the lab's own start, reference or mistake, or with a variant: variants/NAME."""
    folder = context.lab.folder / "rulesets" / exercise.id / part
    files = lab_ruleset(folder, exercise.parameters, context.topology)
    return _exercise_task(context.lab, exercise, f"{exercise.id}/{part}", files, trials)


def work_task(context: RunContext, exercise: Exercise, folder: Path, trials: int | None = None) -> MeasurementSpec:
    """An exercise with what a student wrote into `folder`."""
    return submitted_task(context, exercise, folder, student_ruleset(folder), trials)


def submitted_task(
    context: RunContext, exercise: Exercise, folder: Path, files: list[RulesetFile], trials: int | None = None
) -> MeasurementSpec:
    """The same with what was read before; `folder` only says where it came from."""
    return _exercise_task(context.lab, exercise, submitted_from(context, folder), files, trials)


def submitted_from(context: RunContext, folder: Path) -> str:
    """A student's folder as the results name it."""
    return printable(shown(context.project, folder), LONGEST_PATH)


def refuse_settings(exercise: Exercise, files: list[RulesetFile]) -> None:
    """Raises BadInput naming the first file that sets the machine where the exercise is about rules."""
    for file in files:
        if KINDS[file.kind].machine_setting and file.kind not in exercise.settings:
            taken = " and ".join(f"*.{kind}" for kind in exercise.settings)
            raise BadInput(
                f"{file.name}: {exercise.id} takes no *.{file.kind} file: such settings change what every packet "
                f"costs, and the exercise is about {'rules and ' + taken if taken else 'rules'}",
                f"remove {file.name}",
            )


def _exercise_task(
    lab: Lab, exercise: Exercise, ruleset: str, files: list[RulesetFile], trials: int | None
) -> MeasurementSpec:
    refuse_settings(exercise, files)
    wanted = {check.metric for check in exercise.checks}
    survivors = [check.traffic_class for check in exercise.checks if check.metric == "survival"]
    return MeasurementSpec(
        id=exercise.id,
        title=exercise.title,
        ruleset=ruleset,
        files=files,
        metrics=[name for name in METRICS if name in wanted],
        traffic=exercise.traffic,
        parameters=exercise.parameters,
        # Not the lab's own: those may be short, for its cases play packets of one cost. An exercise mixes dear and
        # cheap ones, and a short window has more of the one or the other.
        trial=Trials(packets=EXERCISE_PACKETS, seconds=EXERCISE_S, settle=lab.trials.settle).changed(trials),
        victim_class=survivors[0] if survivors else None,
        offered=exercise.offered,
        baseline=lab.baseline,
        state_packets=exercise.state_packets,
        load_dependent=exercise.load_dependent,
    )


def ensure_started(context: RunContext, exercise: Exercise) -> Path:
    """work/<exercise>/, made from the exercise's start (rendered) where the student has not begun."""
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


def base_cases(lab: Lab, exercises: list[Exercise]) -> list[Case]:
    """The cases that the checks of these exercises compare with, or take a multiple of."""
    checks = [check for exercise in exercises for check in exercise.checks]
    wanted = {check.ratio_to for check in checks if check.ratio_to}
    wanted |= {lab.baseline for check in checks if check.metric == "survival"}
    return [case for case in lab.cases.values() if case.id in wanted]
