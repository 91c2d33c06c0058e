# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make labs` gave, every lab in one go on machines of another boot, against the ranges of today."""

from __future__ import annotations

import statistics
from functools import cache
from pathlib import Path

import pytest

from fwlab.grading.variant_files import load_variants
from fwlab.host.project import find_project, is_measured, lab_ids, load_lab
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import judge_cases, judge_exercise
from fwlab.measure.saved_runs import load_run
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric
from fwlab.model.results import Run
from fwlab.model.variants import REFUSED
from fwlab.model.verdict import Outcome

ROOT = Path(__file__).resolve().parents[2]
PROJECT = find_project(ROOT)
LABS = [name for name in lab_ids(PROJECT) if is_measured(PROJECT, name)]
each_lab = pytest.mark.parametrize("name", LABS)


@cache
def kept(name: str, kind: str) -> tuple[Lab, Run]:
    """The lab, and its newest results of this kind."""
    return load_lab(PROJECT, name), load_run(max((ROOT / "results" / name).glob(f"*-{kind}.json")), name)


@each_lab
def test_every_case_is_in_it_and_holds(name: str) -> None:
    lab, run = kept(name, "labs")
    assert {case.id for case in run.cases} == set(lab.cases)
    verdicts = judge_cases(lab, run)
    assert verdicts
    assert [v for v in verdicts if v.outcome is not Outcome.PASS] == []


def test_a_run_with_tables_filled_sooner_holds_the_same_ranges() -> None:
    lab, run = kept("lab02-conntrack", "sooner")
    assert {case.id for case in run.cases} == set(lab.cases)
    assert [v for v in judge_cases(lab, run) if v.outcome is not Outcome.PASS] == []
    took = round(sum(case.wall_s for case in run.cases))
    assert f"take {took // 60} min {took % 60:02} s in all" in (ROOT / "results" / "README.md").read_text()


@each_lab
def test_references_pass_starts_and_mistakes_fail(name: str) -> None:
    lab, run = kept(name, "labs-exercises")
    found = {}
    for work in run.exercises:
        outcomes = {v.outcome for v in judge_exercise(lab.exercise(work.id), work, run)}
        found[work.ruleset] = "fail" if Outcome.FAIL in outcomes else "pass" if outcomes == {Outcome.PASS} else "?"
    wanted = {"start": "fail", "reference": "pass", "mistake": "fail"}
    own = {ruleset: verdict for ruleset, verdict in found.items() if "/variants/" not in ruleset}
    assert own == {f"{exercise.id}/{part}": wanted[part] for exercise in lab.exercises for part in wanted}


@each_lab
def test_right_variants_pass_and_wrong_ones_fail_by_what_they_name(name: str) -> None:
    """Where the run has any, it has all: those that were added later wait for the next run."""
    lab, run = kept(name, "labs-exercises")
    graded = {work.ruleset: work for work in run.exercises if "/variants/" in work.ruleset}
    for exercise in lab.exercises if graded else []:
        variants = load_variants(PROJECT, lab, exercise)
        for variant in variants.names:
            work = graded[f"{exercise.id}/variants/{variant}"]
            wrong = variants.wrong.get(variant)
            if wrong is not None and wrong.fails == [REFUSED]:
                assert work.refused, work.ruleset
                continue
            outcomes = {v.check: v.outcome for v in judge_exercise(exercise, work, run)}
            failing = {check for check, outcome in outcomes.items() if outcome is not Outcome.PASS}
            assert failing == set(wrong.fails if wrong else []), work.ruleset


def test_the_figures_repeat_as_the_page_on_method_says() -> None:
    apart = {}
    for name in LABS:
        (_, shown), (_, again) = kept(name, "full"), kept(name, "labs")
        for case in shown.cases:
            if Metric.CAPACITY in (case.metric, *case.also):
                runs = [(run.case(case.id), run.testbed) for run in (shown, again)]
                first, second = (figure(found, Metric.CAPACITY, testbed).median for found, testbed in runs)
                apart[name, case.id] = abs(second / first - 1)
    text = " ".join((ROOT / "guides" / "method.md").read_text().split())
    *others, most = sorted(apart, key=apart.get)
    half, nine = (f"{share * 100:.2f} %" for share in statistics.quantiles(apart.values(), n=10)[4::4])
    says = f"Of {len(apart)} capacities half are within {half} of the guides', nine in ten within {nine}"
    one = f"That one is {most[0][:5]}'s {most[1]} ({apart[most] * 100:.1f} %)"
    assert f"{says}, and all but one within 0.5 %. {one}" in text
    assert apart[others[-1]] <= 0.005
