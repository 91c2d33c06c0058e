# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of a report: what was measured, what was published, what was expected, side by side.

Pure. Terminal, page, guide and JSON document all show these rows, so they cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fwlab.judge.statistics import Figure, figure, nanoseconds_per_packet
from fwlab.judge.verdicts import all_doubts, judge_cases, judge_exercise
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Published
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict, overall


@dataclass(frozen=True)
class MetricRow:
    """One metric of one measurement; `figure` is None where it was not measured.

    ratio      capacity or connections to the baseline's in the same session; None for other metrics
    cost       ns per packet; on the reference CPU that is the number of instructions
    published  what the sources printed for it
    """

    metric: Metric
    figure: Figure | None
    traffic_class: str = ""
    ratio: float | None = None
    cost: float | None = None
    published: list[Published] = field(default_factory=list)


@dataclass(frozen=True)
class Prediction:
    """The student's number beside the measured median, both in the metric's unit."""

    metric: Metric
    value: float
    measured: float | None

    @property
    def ratio(self) -> float | None:
        """Measured over predicted; 1 is a perfect prediction."""
        return self.measured / self.value if self.measured is not None and self.value else None


@dataclass(frozen=True)
class Row:
    """One case or exercise. `outcome` is None where nothing was expected and nothing is in doubt."""

    measured: Measured
    title: str
    sweep: str | None
    metrics: list[MetricRow]
    verdicts: list[Verdict]
    problems: list[str]
    outcome: Outcome | None
    question: str = ""
    prediction: Prediction | None = None

    @property
    def id(self) -> str:
        return self.measured.id

    def of(self, metric: str) -> MetricRow | None:
        """The metric's row if it has a figure."""
        return next((m for m in self.metrics if m.metric.name == metric and m.figure), None)


def fidelity(published: Published, ratio: float | None) -> float | None:
    """How far our ratio lies from the published one: 0.05 is five percent above."""
    return ratio / published.ratio - 1 if published.ratio and ratio is not None else None


def case_rows(lab: Lab, run: Run, verdicts: list[Verdict] | None = None) -> list[Row]:
    """A row for each case of the run, in its order. `verdicts` are judged here if not given."""
    verdicts = judge_cases(lab, run, METRICS) if verdicts is None else verdicts
    rows = []
    for measured in run.cases:
        case = lab.cases.get(measured.id)
        own = [v for v in verdicts if v.subject == measured.id]
        problems = _problems(measured, run)
        rows.append(
            Row(
                measured=measured,
                title=measured.title,
                sweep=case.sweep if case else None,
                metrics=_metrics(lab, run, measured, case.published if case else []),
                verdicts=own,
                problems=problems,
                outcome=_case_outcome(measured, own, problems),
            )
        )
    return rows


def exercise_rows(lab: Lab, run: Run, verdicts: list[Verdict] | None = None) -> list[Row]:
    """A row for each measured exercise. Only its checks decide: a doubt about a figure that no check
    needs fails nobody. With `verdicts` given, an exercise must not be in the run twice: without
    them each of its measurements is judged by itself."""
    rows = []
    for measured in run.exercises:
        exercise = lab.exercise(measured.id)
        if verdicts is not None:
            own = [v for v in verdicts if v.subject == measured.id]
        else:
            own = judge_exercise(exercise, measured, run, METRICS) if exercise else []
        rows.append(
            Row(
                measured=measured,
                title=exercise.title if exercise else measured.title,
                sweep=None,
                metrics=_metrics(lab, run, measured, []),
                verdicts=own,
                problems=_problems(measured, run),
                outcome=overall([v.outcome for v in own]) if own else None,
                question=exercise.predict.question if exercise else "",
                prediction=_prediction(lab, run, measured),
            )
        )
    return rows


def overall_outcome(rows: list[Row]) -> Outcome | None:
    """The worst of the rows; None where none of them has an outcome."""
    outcomes = [row.outcome for row in rows if row.outcome is not None]
    return overall(outcomes) if outcomes else None


def baseline(lab: Lab, run: Run, metric: Metric = METRICS["capacity"]) -> Figure | None:
    """The metric of the lab's baseline in this session, if it was measured.

    Connections have a baseline of their own: the first case that counts them with the baseline's ruleset.
    """
    base = run.case(baseline_case(lab, metric))
    found = figure(base, metric, run.testbed) if base else None
    return found if found and found.median > 0 else None


def baseline_case(lab: Lab, metric: Metric) -> str:
    """The case that the metric's ratios are to."""
    base = lab.cases[lab.baseline]
    if metric.name in (base.metric, *base.also):
        return base.id
    return next((c.id for c in lab.cases.values() if (c.metric, c.ruleset) == (metric.name, base.ruleset)), base.id)


def _metrics(lab: Lab, run: Run, measured: Measured, published: list[Published]) -> list[MetricRow]:
    rows: list[MetricRow] = []
    for metric in (METRICS[name] for name in dict.fromkeys(measured.metrics)):
        classes = [""]
        if metric.by_class:
            offered = {name for d in measured.deliveries for name, count in d.offered.items() if count}
            classes = [name for name in lab.classes if name in offered] or [""]
        rows += [_metric_row(lab, run, measured, metric, name, published) for name in classes]
    return rows


def _metric_row(
    lab: Lab, run: Run, measured: Measured, metric: Metric, traffic_class: str, published: list[Published]
) -> MetricRow:
    found = figure(measured, metric, run.testbed, traffic_class)
    # A published figure in some other unit (connections per second) stays with the case's own metric.
    units = {METRICS[name].unit for name in measured.metrics}
    beside = [p for p in published if p.unit == metric.unit or (metric.name == measured.metric and p.unit not in units)]
    if metric.display.table != "ratio" or found is None:
        return MetricRow(metric, found, traffic_class, published=beside)
    base = baseline(lab, run, metric)
    return MetricRow(
        metric,
        found,
        ratio=found.median / base.median if base else None,
        cost=nanoseconds_per_packet(found.median) if metric.display.cost_per_packet and found.median else None,
        published=beside,
    )


def _problems(measured: Measured, run: Run) -> list[str]:
    """Why figures of this measurement cannot be trusted, each once."""
    if measured.refused is not None:
        return [f"not loaded: {measured.refused}"]
    return all_doubts(measured, run, METRICS)


def _case_outcome(measured: Measured, verdicts: list[Verdict], problems: list[str]) -> Outcome | None:
    outcomes = [v.outcome for v in verdicts]
    if measured.refused is not None:
        outcomes.append(Outcome.FAIL)
    elif problems:
        outcomes.append(Outcome.INCONCLUSIVE)
    return overall(outcomes) if outcomes else None


def _prediction(lab: Lab, run: Run, measured: Measured) -> Prediction | None:
    exercise, value = lab.exercise(measured.id), run.predictions.get(measured.id)
    if exercise is None or value is None:
        return None
    metric = METRICS[exercise.predict.metric]
    found = figure(measured, metric, run.testbed)
    return Prediction(metric, value, found.median if found else None)
