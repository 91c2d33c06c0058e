# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of the workbook, derived from runs, and whether a student's number agrees. Pure."""

from collections.abc import Callable, Sequence

from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import doubts
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.results import Measured, Run
from fwlab.report.crossovers import crossovers
from fwlab.report.model import build_model
from fwlab.student.workbook import (
    BreakEven,
    Cost,
    Crossing,
    Difference,
    Figure,
    Mix,
    PerStep,
    Question,
    Ratio,
    Share,
    end_values,
    ends,
    needed_cases,
)

#: How far an answer may be from the number that the run gives, as a share of it.
WITHIN = 0.05
#: A wrong answer that is right but for one of these factors is told so.
_SLIPS = {1000.0: "a thousand times too large", 0.001: "a thousand times too small", -1.0: "of the wrong sign"}
_SLIPS |= {100.0: "a hundred times too large", 0.01: "a hundred times too small"}
#: Nanoseconds in a second: the instructions of the reference CPU.
_NS = 1e9

Cases = Callable[[str], float]


def derived(lab: Lab, question: Question, runs: Sequence[Run]) -> float:
    """The number that these runs give.

    Raises BadInput, with the command that measures them, if they lack a case or its figure is in doubt.
    """
    lab = lab.whole
    needed = [case.id for case in needed_cases(lab, question)]
    medians, missing = {}, []
    for name in needed:
        value = _median(name, question, runs)
        if value is None:
            missing.append(name)
        else:
            medians[name] = value
    if missing:
        names = _by_sweep(lab, missing)
        raise BadInput(
            f"{question.id}: you have no figure yet of {', '.join(names)}", f"fwlab run {lab.id} {' '.join(names)}"
        )

    def cost(case: str) -> float:
        return _cost(medians[case], question.metric)

    match question.from_runs:
        case Figure(case=name):
            return medians[name] * _shown(question)
        case Cost(case=name):
            return cost(name)
        case Difference(case=name, less=other):
            return cost(name) - cost(other)
        case Ratio(case=name, to=other):
            return medians[name] / medians[other]
        case Share(case=name, of=whole, base=base):
            below = cost(base) if base else 0.0
            return (cost(name) - below) / (cost(whole) - below)
        case PerStep() as step:
            return _per_step(lab, step, cost)
        case BreakEven(case=name, base=base) as step:
            return (cost(name) - (cost(base) if base else 0.0)) / _per_step(lab, step, cost)
        case Mix(shares=shares):
            mean = sum(share * cost(name) for name, share in shares.items())
            return _NS / mean * _shown(question)
        case Crossing(crossover=name):
            return _crossing(lab, question, name, runs)


def _shown(question: Question) -> float:
    """The factor to the unit that reports show; a share stays between 0 and 1."""
    display = METRICS[question.metric].display
    return 1.0 if display.unit == "%" else display.factor


def _by_sweep(lab: Lab, cases: list[str]) -> list[str]:
    """The cases, with a sweep's name in place of more than three of its cases."""
    found: dict[str, list[str]] = {}
    for name in cases:
        found.setdefault(lab.cases[name].sweep or name, []).append(name)
    return [name for sweep, own in found.items() for name in ([sweep] if len(own) > 3 else own)]


def _per_step(lab: Lab, step: PerStep | BreakEven, cost: Cases) -> float:
    first, last = (float(value) for value in end_values(lab, step))
    low, high = ends(lab, step)
    return (cost(high) - cost(low)) / (last - first)


def _crossing(lab: Lab, question: Question, name: str, runs: Sequence[Run]) -> float:
    curves = (curve for run in runs for curve in build_model(lab, run).curves.get(question.metric, ()))
    found = next((one for one in crossovers(lab, curves) if one.id == name), None)
    if found is None or found.value is None:
        raise BadInput(f"{question.id}: the curves do not cross in your run", f"fwlab run {lab.id}")
    return found.value


def _cost(median: float, metric: str) -> float:
    unit = METRICS[metric].unit
    if unit in ("pps", "cps"):
        return _NS / median
    return median * _NS if unit == "s" else median


def _median(case: str, question: Question, runs: Sequence[Run]) -> float | None:
    """The case's median; None if no run has one that can be relied on."""
    for run in runs:
        measured = run.case(case)
        if measured is not None and (value := _reliable(measured, question, run)) is not None:
            return value
    return None


def _reliable(measured: Measured, question: Question, run: Run) -> float | None:
    metric = METRICS[question.metric]
    if measured.refused is not None or doubts(measured, metric, run):
        return None
    found = figure(measured, metric, run.testbed, question.traffic_class)
    return found.median if found else None


def agrees(given: float, expected: float) -> bool:
    """Whether an answer is within WITHIN of the number that the run gives."""
    return abs(given - expected) <= WITHIN * abs(expected)


def slip(given: float, expected: float) -> str:
    """What a wrong answer would have to be multiplied with to be right, in words; nothing if that is no usual slip."""
    return next((words for factor, words in _SLIPS.items() if agrees(given / factor, expected)), "")
