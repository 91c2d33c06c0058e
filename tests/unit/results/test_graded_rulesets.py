# SPDX-License-Identifier: GPL-2.0-or-later
"""Today's limits give the saved gradings of references, starts, mistakes, variants and non-solutions their verdicts."""

import pytest

from fwlab.grading.grading_plan import plan_grading
from fwlab.grading.lab_rulesets import load_variants
from fwlab.grading.options import GradingOptions
from fwlab.grading.works import NON_SOLUTIONS
from fwlab.judge.checks import judge_exercise
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Exercise, Lab
from fwlab.model.results import Measured, Run
from fwlab.model.variants import REFUSED
from fwlab.model.verdict import Outcome, Verdict, overall
from tests.checkout import PROJECT
from tests.fakes.published import DUE, NAMES, files, graded, lab_of

each_graded_lab = pytest.mark.parametrize("name", NAMES)


@each_graded_lab
def test_references_pass_starts_and_mistakes_fail(name: str) -> None:
    lab, rulesets = graded(name)
    found = {}
    for work, run in rulesets.values():
        outcomes = {v.outcome for v in judged(lab.exercise(work.id), work, run)}
        found[work.ruleset] = "fail" if Outcome.FAIL in outcomes else "pass" if outcomes == {Outcome.PASS} else "?"
    wanted = {"start": "fail", "reference": "pass", "mistake": "fail"}
    own = {ruleset: verdict for ruleset, verdict in found.items() if "/variants/" not in ruleset}
    assert own == {f"{exercise.id}/{part}": wanted[part] for exercise in lab.exercises for part in wanted}


def judged(exercise: Exercise, measured: Measured, run: Run) -> list[Verdict]:
    """The verdicts on what the run measured."""
    later = newer(exercise, measured)
    return [verdict for verdict in judge_exercise(exercise, measured, run, METRICS) if verdict.check not in later]


def newer(exercise: Exercise, measured: Measured) -> set[str]:
    """The checks that are newer than this grading."""
    there = {*measured.metrics} - ({"returned"} if not measured.returned else set())
    return {check.id for check in exercise.checks if check.metric not in there}


@each_graded_lab
def test_there_are_at_least_four_variants_of_each_kind(name: str) -> None:
    lab = lab_of(name)
    for exercise in lab.exercises:
        variants = load_variants(PROJECT, lab, exercise)
        assert min(len(variants.right), len(variants.wrong)) >= 4, exercise.id


@each_graded_lab
def test_right_variants_pass_and_wrong_ones_fail_the_named_checks(name: str) -> None:
    """If one variant of an exercise was graded, all of them were."""
    lab, rulesets = graded(name)
    for exercise in lab.exercises:
        if any(ruleset.startswith(f"{exercise.id}/variants/") for ruleset in rulesets):
            assert contradictions(lab, exercise, rulesets) == [], exercise.id


@pytest.mark.parametrize(("name", "exercise"), [(name, exercise) for name in DUE for exercise in sorted(DUE[name])])
def test_variants_that_were_graded_are_not_due(name: str, exercise: str) -> None:
    lab, rulesets = graded(name, due=True)
    assert contradictions(lab, lab.exercise(exercise), rulesets), "graded: take it out of DUE"


def contradictions(lab: Lab, exercise: Exercise, rulesets: dict[str, tuple[Measured, Run]]) -> list[str]:
    """The variants that were not graded, or that got another verdict than they must."""
    variants, found = load_variants(PROJECT, lab, exercise), []
    for variant in variants.names:
        ruleset, wrong = f"{exercise.id}/variants/{variant}", variants.wrong.get(variant)
        if ruleset not in rulesets:
            found.append(f"{ruleset}: not graded")
            continue
        measured, run = rulesets[ruleset]
        if wrong is not None and wrong.fails == [REFUSED]:
            found += [] if measured.refused else [f"{ruleset}: not refused"]
            continue
        failing = {v.check for v in judged(exercise, measured, run) if v.outcome is not Outcome.PASS}
        failing -= set(wrong.may if wrong else [])
        if measured.problems or failing != set(wrong.fails if wrong else []) - newer(exercise, measured):
            found.append(f"{ruleset}: fails {sorted(failing)}, with {measured.problems}")
    return found


@pytest.mark.usefixtures("unplayed")
@pytest.mark.parametrize("name", [name for name in NAMES if files(name, "graded-non-solutions*")])
def test_what_must_not_pass_fails(name: str) -> None:
    """Judged by today's limits. All of an exercise's were graded if one was."""
    lab_id = name.partition(":")[0]
    plan = plan_grading(PROJECT, GradingOptions(labs=[lab_id], parts=[NON_SOLUTIONS]))
    context = plan.contexts[lab_id]
    lab, works = context.lab, {work.ruleset(context): work for work in plan.works[lab_id]}
    newest: dict[str, tuple[Measured, Run]] = {}
    runs = [load_run(path, lab.id) for path in files(name, "graded-non-solutions*")]
    for run in sorted(runs, key=lambda run: run.started):
        newest |= {measured.ruleset: (measured, run) for measured in run.exercises if measured.ruleset in works}
    exercises = {measured.id for measured, _ in newest.values()}
    assert {ruleset for ruleset, work in works.items() if work.exercise.id in exercises} <= set(newest)
    for ruleset, (measured, run) in newest.items():
        outcomes = [verdict.outcome for verdict in judge_exercise(works[ruleset].exercise, measured, run, METRICS)]
        assert overall(outcomes) is works[ruleset].expected, ruleset
