# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of a report: what was measured, published and expected, side by side. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fwlab.judge.checks import judge_exercise
from fwlab.judge.clocks import clock_of
from fwlab.judge.statistics import Figure, figure, nanoseconds_per_packet, paired_ratio
from fwlab.judge.verdicts import all_doubts, judge_cases
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Published
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict, overall

#: By metric name, the figure that ratios are to, where it was measured in this session.
Baselines = Mapping[str, Figure]


@dataclass(frozen=True)
class MetricRow:
    """One metric of one measurement.

    figure     in the metric's unit; None if it was not measured
    ratio      to the figure of the baseline case in the same session; None for metrics without a baseline
    ratio_interval  the confidence interval of that ratio, if the two cases were interleaved
    scatter    spread of the trials; on the host's clock the length of the median's confidence interval. As a share of
               the median; None if there are too few trials
    cost       ns per packet; on the reference CPU that is the number of instructions
    published  what the sources printed
    """

    metric: Metric
    figure: Figure | None
    traffic_class: str = ""
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    scatter: float | None = None
    cost: float | None = None
    published: tuple[Published, ...] = ()

    @property
    def label(self) -> str:
        """The metric's name, and the traffic class that this row is about."""
        name = self.metric.display.label
        return f"{name}, {self.traffic_class}" if self.traffic_class else name


@dataclass(frozen=True)
class Prediction:
    """The student's number in the metric's unit, and what was measured; `traffic_class`: "" if it is about none."""

    metric: Metric
    value: float
    figure: Figure | None
    traffic_class: str = ""

    @property
    def measured(self) -> float | None:
        """The median, in the same unit."""
        return self.figure.median if self.figure else None

    @property
    def ratio(self) -> float | None:
        """Measured over predicted; 1 is a perfect prediction."""
        return self.measured / self.value if self.measured is not None and self.value else None


@dataclass(frozen=True)
class Row:
    """One case or exercise.

    problems  why its figures are in doubt, or why the ruleset was not loaded
    outcome   None if nothing was expected and nothing is in doubt
    system    the DUT's system that it was measured on
    baseline  the case that its ratios are to
    """

    measured: Measured
    title: str
    sweep: str | None
    metrics: tuple[MetricRow, ...]
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...]
    outcome: Outcome | None
    question: str = ""
    prediction: Prediction | None = None
    system: str = "linux"
    baseline: str = ""

    @property
    def id(self) -> str:
        """The case's or exercise's id."""
        return self.measured.id

    @property
    def published(self) -> list[Published]:
        """What the sources printed as a ratio, of any metric."""
        return [p for metric in self.metrics for p in metric.published if p.ratio is not None]

    def of(self, metric: str) -> MetricRow | None:
        """The row of the metric of this name, if it has a figure."""
        return next((m for m in self.metrics if m.metric.name == metric and m.figure), None)


def fidelity(published: Published, ratio: float | None) -> float | None:
    """The relative difference of our ratio from the published one: 0.05 means five percent above."""
    return ratio / published.ratio - 1 if published.ratio and ratio is not None else None


def baselines(lab: Lab, run: Run) -> Baselines:
    """The baselines that this run measured, of every metric that has ratios."""
    found = {}
    for metric in METRICS.values():
        base = run.case(baseline_case(lab, metric)) if metric.display.table == "ratio" else None
        value = figure(base, metric, run.testbed) if base else None
        if value and value.median > 0:
            found[metric.name] = value
    return found


def baseline_case(lab: Lab, metric: Metric) -> str:
    """The id of the case that the metric's ratios are to.

    That is the lab's baseline if it measures the metric, else the first case that does with the baseline's ruleset.
    """
    base = lab.cases[lab.baseline]
    if metric.name in (base.metric, *base.also):
        return base.id
    return next((c.id for c in lab.cases.values() if (c.metric, c.ruleset) == (metric.name, base.ruleset)), base.id)


def case_rows(lab: Lab, run: Run, bases: Baselines) -> tuple[Row, ...]:
    """A row for each case of the run, in its order, also for cases that the lab no longer has."""
    verdicts = judge_cases(lab, run, METRICS)
    rows = []
    for measured in run.cases:
        case = lab.cases.get(measured.id)
        own = tuple(v for v in verdicts if v.subject == measured.id)
        problems = _problems(measured, run)
        rows.append(
            Row(
                measured=measured,
                title=measured.title,
                sweep=case.sweep if case else None,
                metrics=_metrics(lab, run, measured, case.published if case else (), bases),
                verdicts=own,
                problems=problems,
                outcome=_case_outcome(measured, own, problems),
                system=run.dut.system,
                baseline=lab.baseline,
            )
        )
    return tuple(rows)


def exercise_rows(lab: Lab, run: Run, bases: Baselines) -> tuple[Row, ...]:
    """A row for each measurement of an exercise. Only its checks decide, not doubt about other figures."""
    rows = []
    for measured in run.exercises:
        exercise = lab.exercise(measured.id)
        own = tuple(judge_exercise(exercise, measured, run, METRICS)) if exercise else ()
        rows.append(
            Row(
                measured=measured,
                title=exercise.shown_title if exercise else measured.title,
                sweep=None,
                metrics=_metrics(lab, run, measured, (), bases),
                verdicts=own,
                problems=_problems(measured, run),
                outcome=overall([v.outcome for v in own]) if own else None,
                question=exercise.predict.question if exercise else "",
                prediction=_prediction(lab, run, measured),
                system=run.dut.system,
                baseline=lab.baseline,
            )
        )
    return tuple(rows)


def overall_outcome(rows: Iterable[Row]) -> Outcome | None:
    """The worst outcome of the rows; None if none of them has one."""
    outcomes = [row.outcome for row in rows if row.outcome is not None]
    return overall(outcomes) if outcomes else None


def _metrics(
    lab: Lab, run: Run, measured: Measured, published: Iterable[Published], bases: Baselines
) -> tuple[MetricRow, ...]:
    rows: list[MetricRow] = []
    for metric in (METRICS[name] for name in dict.fromkeys(measured.metrics)):
        classes = [""]
        if metric.by_class:
            offered = {name for d in measured.deliveries for name, count in d.offered.items() if count}
            classes = [name for name in lab.classes if name in offered] or [""]
        base, base_id = bases.get(metric.name), baseline_case(lab, metric)
        rows += [_metric_row(run, measured, metric, name, published, base, base_id) for name in classes]
    return tuple(rows)


def _metric_row(
    run: Run,
    measured: Measured,
    metric: Metric,
    traffic_class: str,
    published: Iterable[Published],
    base: Figure | None,
    base_id: str,
) -> MetricRow:
    value = figure(measured, metric, run.testbed, traffic_class)
    # A published figure in another unit (connections per second, say) belongs to the case's main metric.
    units = {METRICS[name].unit for name in measured.metrics}
    own = tuple(
        p for p in published if p.unit == metric.unit or (metric.name == measured.metric and p.unit not in units)
    )
    scatter = _scatter(value, run)
    if metric.display.table != "ratio" or value is None:
        return MetricRow(metric, value, traffic_class, scatter=scatter, published=own)
    paired = paired_ratio(measured, metric, run.testbed, base_id)
    return MetricRow(
        metric,
        value,
        ratio=paired.median if paired else value.median / base.median if base else None,
        ratio_interval=paired.interval if paired else None,
        scatter=scatter,
        cost=nanoseconds_per_packet(value.median) if metric.display.cost_per_packet and value.median else None,
        published=own,
    )


def _scatter(value: Figure | None, run: Run) -> float | None:
    return None if value is None else clock_of(run.testbed).scatter(value)


def _problems(measured: Measured, run: Run) -> tuple[str, ...]:
    if measured.refused is not None:
        return (f"not loaded: {measured.refused}",)
    return tuple(all_doubts(measured, run, METRICS))


def _case_outcome(measured: Measured, verdicts: Iterable[Verdict], problems: tuple[str, ...]) -> Outcome | None:
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
    asked = exercise.predict
    metric = METRICS[asked.metric]
    return Prediction(metric, value, figure(measured, metric, run.testbed, asked.traffic_class), asked.traffic_class)
