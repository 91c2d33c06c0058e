# SPDX-License-Identifier: GPL-2.0-or-later
"""Plan a session: which cases and exercises to measure, each as a MeasurementSpec. Pure but for reading rulesets."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from fwlab.checkout.project import display_path
from fwlab.generator import selection as engines
from fwlab.measure.context import RunContext
from fwlab.measure.labs import measured_elsewhere
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Case, Trials
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.metric import TrafficKind, missing_fields, refused_by_clock
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.model.systems import several
from fwlab.rulesets.files import MAX_PATH, lab_ruleset, not_loaded, remarks, student_ruleset, with_reasons
from fwlab.rulesets.registry import KINDS, files_of, suffixes
from fwlab.testbed.testbeds import TESTBEDS

#: The least packets and duration (s of the DUT's clock) of an exercise's trial. Its packets differ in cost: with only
#: 640 of them, the trials of a list of 500 pairs were 3.6 % apart.
EXERCISE_PACKETS, EXERCISE_S = 2048, 0.1
FEW_CASES = 20  # up to this number, all cases are named where one is not found
#: The rulesets that a lab provides for each exercise.
PARTS = ("start", "reference", "mistake")


def chosen_cases(lab: Lab, names: list[str], *, quick: bool = False) -> list[Case]:
    """The named cases; a sweep's name means all its cases. Raises BadInput for an unknown name.

    Without names: all cases, or with `quick` only those that lab.yml marks `quick`.
    """
    if not names:
        return _baseline_first(lab, [case for case in lab.cases.values() if case.quick or not quick])
    found: list[Case] = []
    for name in names:
        matching = [case for case in lab.cases.values() if name in (case.id, case.sweep)]
        elsewhere = [case for case in lab.whole.cases.values() if name in (case.id, case.sweep)]
        if elsewhere and not matching:
            raise measured_elsewhere(lab, name, elsewhere[0].system)
        if not matching:
            raise BadInput(f"{lab.id} has no case {name}; {known_cases(lab, name)}", f"fwlab list {lab.id}")
        found += [case for case in matching if case not in found]
    return _baseline_first(lab, found)


def cases_of_part(lab: Lab, name: str | None) -> list[str]:
    """The names of a part's cases; none for no part. Raises BadInput for an unknown part."""
    if name is None:
        return []
    part = next((part for part in lab.parts if part.id == name), None)
    if part is None:
        has = f"it has: {', '.join(p.id for p in lab.parts)}" if lab.parts else "it is not cut into parts"
        raise BadInput(f"{lab.id} has no part {name}; {has}", f"fwlab list {lab.id}")
    return list(part.cases)


def _baseline_first(lab: Lab, chosen: list[Case]) -> list[Case]:
    """Add the baseline, as the first case, if a load is a multiple of its capacity."""
    if not any(METRICS[name].of_baseline for case in chosen for name in (case.metric, *case.also)):
        return chosen
    return [lab.cases[lab.baseline], *(case for case in chosen if case.id != lab.baseline)]


def case_spec(context: RunContext, case: Case, trials: int | None) -> MeasurementSpec:
    """How to measure a case; `trials` replaces the case's number of trials. Raises BadInput for its ruleset."""
    return replace(_alone(context, case, trials), interleaved=_base_of_case(context, case, trials))


def _base_of_case(context: RunContext, case: Case, trials: int | None) -> MeasurementSpec | None:
    """The case that this one's ratio is to, if their trials can alternate."""
    lab = context.lab
    expected = (e for e in lab.declared_expectations if e.metric == case.metric and e.ratio_to)
    name = next((e.ratio_to for e in expected if case.id in lab.cases_named(e.cases)), lab.baseline)
    return None if name == case.id else _base(context, name, case.metric, trials)


def _base(context: RunContext, name: str | None, metric: str, trials: int | None) -> MeasurementSpec | None:
    """The case of this name, to be measured by this metric alone; None if their trials cannot alternate."""
    base = context.lab.cases.get(name or "")
    if base is None or metric not in (base.metric, *base.also) or not METRICS[metric].interleaved:
        return None
    return replace(_alone(context, base, trials), metrics=[metric])


def _alone(context: RunContext, case: Case, trials: int | None) -> MeasurementSpec:
    lab = context.lab
    return MeasurementSpec(
        id=case.id,
        title=case.title,
        ruleset=case.ruleset,
        files=[
            *_nic_file(case.nic),
            *lab_ruleset(lab.folder / "rulesets" / case.ruleset, case.parameters, context.topology),
        ],
        metrics=[case.metric, *case.also],
        traffic=case.traffic,
        parameters=case.parameters,
        each=case.load == "each",
        trial=lab.trials.changed(trials).changed(case.trials),
        victim_class=case.victim_class,
        total_load=case.total_load,
        baseline=lab.baseline,
        state_packets=case.state_packets,
        sampled=case.sampled,
        reload_each_attempt=case.reload_each_attempt,
        cpus=case.cpus,
        nic=case.nic,
        apart=any(METRICS[name].apart for name in (case.metric, *case.also)),
    )


def _nic_file(nic: str | None) -> list[RulesetFile]:
    """What lets the DUT use this NIC: nothing for the usual one. Loaded first."""
    return [] if nic is None else [RulesetFile("links.nic", "nic", f"{nic}\n")]


def case_specs(
    context: RunContext, names: list[str], trials: int | None, *, quick: bool = False, also: Sequence[str] = ()
) -> list[MeasurementSpec]:
    """How to measure the chosen cases, with the metrics `also` in addition to their own.

    Raises BadInput as `chosen_cases`, `with_metrics` and `case_spec` do, and for what the testbed cannot measure.
    """
    cases = [with_metrics(context, case, also) for case in chosen_cases(context.lab, names, quick=quick)]
    specs = [case_spec(context, case, trials) for case in cases]
    if names or also:
        reject_wrong_clock(context, specs)
    return specs


def with_metrics(context: RunContext, case: Case, names: Sequence[str]) -> Case:
    """The case with these metrics in addition to its own.

    Raises BadInput for an unknown metric, and for one that needs another traffic or a field that the case lacks.
    """
    lab, own = context.lab, (case.metric, *case.also)
    traffic = lab.traffic.get(case.traffic or "")
    played: TrafficKind = "none" if traffic is None else "connections" if traffic.connections else "packets"
    for name in names:
        if name not in METRICS:
            raise BadInput(f"unknown metric {name}; known metrics: {', '.join(METRICS)}", "fwlab run --help")
        if played not in METRICS[name].traffic:
            kinds = " or ".join(sorted(METRICS[name].traffic))
            raise BadInput(f"{case.id} plays {played}, {name} needs {kinds}", f"fwlab list {lab.id}")
    for missing in missing_fields(case, names, METRICS):
        raise BadInput(f"{case.id}: {missing}", f"choose a case of {lab.id} that has it")
    return case.model_copy(update={"also": [*case.also, *(name for name in names if name not in own)]})


def reject_wrong_clock(context: RunContext, specs: Iterable[MeasurementSpec]) -> None:
    """Raise BadInput if a testbed was asked for whose clock cannot measure one of these. No machine is needed."""
    kind = TESTBEDS.get(context.testbed.name)
    for metric in (METRICS[name] for spec in specs for name in spec.metrics):
        why = refused_by_clock(metric, kind.clock) if kind else None
        if why:
            raise BadInput(why, f"fwlab run {context.lab.id} --testbed real")


def exercise_id(lab: Lab, name: str) -> str:
    """The whole name of an exercise, or the same name if it is none.

    The part before the first hyphen is enough where only one exercise begins so: ex1 is ex1-one-host.
    """
    matching = [exercise.id for exercise in lab.whole.exercises if exercise.id.startswith(f"{name}-")]
    return matching[0] if len(matching) == 1 and lab.whole.exercise(name) is None else name


def chosen_exercises(lab: Lab, name: str | None) -> list[Exercise]:
    """The exercise of that name, or all for None. Raises BadInput for an unknown name."""
    if name is None:
        return list(lab.exercises)
    name = exercise_id(lab, name)
    exercise = lab.exercise(name)
    elsewhere = lab.whole.exercise(name)
    if exercise is None and elsewhere is not None:
        raise measured_elsewhere(lab, name, elsewhere.system)
    if exercise is None:
        known = ", ".join(e.id for e in lab.exercises)
        raise BadInput(f"{lab.id} has no exercise {name}; it has: {known}", f"fwlab list {lab.id}")
    return [exercise]


def lab_part_spec(context: RunContext, exercise: Exercise, part: str, trials: int | None = None) -> MeasurementSpec:
    """An exercise with the lab's own start, reference or mistake, or with a variant: variants/NAME."""
    folder = context.lab.folder / "rulesets" / exercise.id / part
    files = lab_ruleset(folder, exercise.parameters, context.topology)
    return exercise_spec(context, exercise, f"{exercise.id}/{part}", files, trials)


def work_spec(context: RunContext, exercise: Exercise, folder: Path, trials: int | None = None) -> MeasurementSpec:
    """An exercise with the student's ruleset in `folder`."""
    return submitted_spec(context, exercise, folder, student_ruleset(folder), not_loaded(folder), trials)


def submitted_spec(
    context: RunContext,
    exercise: Exercise,
    folder: Path,
    files: list[RulesetFile],
    ignored: Sequence[str] = (),
    trials: int | None = None,
) -> MeasurementSpec:
    """An exercise with files that have been read already; `folder` only names their origin.

    ignored  names of what lies in the same folder and is not loaded
    Raises BadInput if that is all there is.
    """
    if ignored and not files:
        raise BadInput(f"{exercise.id} has nothing to load: {with_reasons(ignored)}", f"use one of: {suffixes()}")
    unloaded = [f"Not loaded: {with_reasons(ignored)}."] if ignored else []
    spec = exercise_spec(context, exercise, submitted_from(context, folder), files, trials)
    return replace(spec, remarks=[*unloaded, *remarks(files)])


def submitted_from(context: RunContext, folder: Path) -> str:
    """The name of a student's folder in results."""
    return printable(display_path(context.project, folder), MAX_PATH)


def reject_settings(exercise: Exercise, files: list[RulesetFile]) -> None:
    """Raise BadInput for the first file of a kind, or with a machine setting, that the exercise does not allow."""
    about = ["rules"] if exercise.rules is None else [f"*.{name}" for name in exercise.rules]
    topics = " and ".join([*about, *(f"*.{name}" for name in exercise.settings)])
    for file in files:
        kind = KINDS[file.kind]
        if (line := kind.past_routing(file.text) if kind.past_routing else None) is not None:
            message = f"{file.name}: {exercise.id} does not allow `{line}`: it sends packets on without routing them"
            raise BadInput(message, "remove the line")
        if file.kind in exercise.settings:
            for name in kind.named_in(file.text):
                if not any(fnmatchcase(name, pattern) for pattern in exercise.only):
                    allowed = " and ".join(exercise.only)
                    message = (
                        f"{file.name}: {exercise.id} allows {allowed}, not {name}, which may change every packet's cost"
                    )
                    raise BadInput(message, "remove the line")
            continue
        line = kind.setting_in(file.text) if kind.setting_in else None
        if kind.machine_setting or line is not None:
            what = f"*.{file.kind} files" if line is None else f"`{line}`"
            raise BadInput(
                f"{file.name}: {exercise.id} does not allow {what}: such settings change the cost of "
                f"every packet, and the exercise is about {topics}",
                f"remove {file.name if line is None else 'the line'}",
            )
        if exercise.rules is not None and file.kind not in exercise.rules:
            other = "other rules" if exercise.rules else "rules"
            raise BadInput(
                f"{file.name}: {exercise.id} is about {topics} files and accepts no {other}", f"remove {file.name}"
            )


def reject_other_systems(lab: Lab, exercise: Exercise, files: list[RulesetFile]) -> None:
    """Raise BadInput for the first file that only another system than the exercise's could load."""
    for file in files:
        kind = KINDS[file.kind]
        if several(lab) and exercise.system not in (None, kind.system):
            raise BadInput(
                f"{file.name}: {exercise.id} is measured on {exercise.system}, which has no tool for {files_of(kind)}",
                f"remove {file.name}",
            )


def exercise_spec(
    context: RunContext, exercise: Exercise, ruleset: str, files: list[RulesetFile], trials: int | None = None
) -> MeasurementSpec:
    """An exercise with these files; `ruleset` names them in results. Raises BadInput if it does not admit them."""
    lab = context.lab
    reject_settings(exercise, files)
    reject_other_systems(lab, exercise, files)
    wanted = {name for check in exercise.checks for name in check.metrics}
    survivors = [check.traffic_class for check in exercise.checks if METRICS[check.metric].of_baseline]
    apart = any(METRICS[name].apart for name in wanted)
    start = lab.folder / "rulesets" / exercise.id / "start"
    ratios = [check for check in exercise.checks if check.ratio_to and METRICS[check.metric].interleaved]
    return MeasurementSpec(
        id=exercise.id,
        title=exercise.title,
        ruleset=ruleset,
        files=[*_nic_file(exercise.nic), *files],
        metrics=[name for name in METRICS if name in wanted],
        traffic=exercise.traffic,
        parameters=exercise.parameters,
        # Not the lab's trials, which may be short because the packets of a case all cost the same. An exercise mixes
        # expensive and cheap packets, and short trials would differ in the mix.
        trial=Trials(packets=EXERCISE_PACKETS, seconds=EXERCISE_S, settle=lab.trials.settle).changed(trials),
        victim_class=survivors[0] if survivors else None,
        total_load=exercise.total_load,
        baseline=lab.baseline,
        state_packets=exercise.state_packets,
        nic=exercise.nic,
        accounted=True,
        load_dependent=exercise.load_dependent or exercise.stateful,
        apart=apart,
        compared_with=lab_ruleset(start, exercise.parameters, context.topology) if apart else [],
        interleaved=_base(context, ratios[0].ratio_to, ratios[0].metric, trials) if ratios else None,
    )


def base_cases(lab: Lab, exercises: list[Exercise]) -> list[Case]:
    """The cases whose figures the checks of these exercises are compared with or are multiples of."""
    checks = [check for exercise in exercises for check in exercise.checks]
    wanted = {case for check in checks for case in check.cases}
    wanted |= {lab.baseline for check in checks for name in check.metrics if METRICS[name].of_baseline}
    return [case for case in lab.cases.values() if case.id in wanted]


def with_able_engine(context: RunContext, names: Iterable[str | None]) -> RunContext:
    """The context with an engine that can play these traffics, if `auto` would choose one that cannot."""
    if context.engine != engines.AUTO:
        return context
    found = engines.instead(context.project, context.store, _packets(context, names))
    return context if found is None else context.played_by(found.name, found.why)


def reject_unplayable_traffic(context: RunContext, names: Iterable[str | None]) -> None:
    """Raise BadInput, naming the profile, if the engine cannot play one of these. No machine is needed."""
    choice = engines.choose(context.project, context.engine)
    for name in _packets(context, names):
        engines.check(choice, context.store, name)


def _packets(context: RunContext, names: Iterable[str | None]) -> list[str]:
    """These traffics as far as an engine plays them: profiles, also those in the background of TCP connections."""
    found = []
    for name in dict.fromkeys(name for name in names if name is not None):
        connections = context.store.connections(name)
        found.append(name if connections is None else connections.background)
    return [name for name in found if name is not None]


def known_cases(lab: Lab, name: str) -> str:
    """The cases that there are; in a lab with many, those and the sweeps whose names come close."""
    if len(lab.cases) <= FEW_CASES:
        return f"it has: {', '.join(lab.cases)}"
    close = get_close_matches(name, [*lab.cases, *(sweep.id for sweep in lab.sweeps)], n=5)
    return f"close to it: {', '.join(close)}" if close else f"it has {len(lab.cases)} others"
