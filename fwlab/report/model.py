# SPDX-License-Identifier: GPL-2.0-or-later
"""The report model: a run with its verdicts and everything derived from them, computed once.

All renderers show this model, so they cannot disagree, and none of them judges or derives anything itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fwlab.judge.statistics import Figure
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.model.verdict import Outcome
from fwlab.report import formatting
from fwlab.report.crossovers import Crossover, crossovers
from fwlab.report.curves import Curve, curves
from fwlab.report.report_rows import Baselines, MetricRow, Row, baselines, case_rows, exercise_rows, overall_outcome
from fwlab.report.survival_tables import SurvivalTable, survival_tables


@dataclass(frozen=True)
class ReportModel:
    """One run, judged. Immutable.

    cases, exercises  a row for each measurement, with figures, verdicts and problems
    baselines   by metric name, the figure that ratios are to, in the metric's unit
    curves      by metric name, the curves of the sweeps; only metrics that are plotted
    crossovers  where one sweep becomes faster than another
    survival    tables of survival under attack
    notes       what every reader must know before the figures
    """

    lab: Lab
    run: Run
    cases: tuple[Row, ...]
    exercises: tuple[Row, ...]
    baselines: Baselines
    curves: Mapping[str, tuple[Curve, ...]]
    crossovers: tuple[Crossover, ...]
    survival: tuple[SurvivalTable, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Cases, then exercises."""
        return self.cases + self.exercises

    @property
    def listed(self) -> tuple[tuple[Row, MetricRow], ...]:
        """The figures of cases that are listed one by one, because they have no column or table of their own."""
        return tuple((row, m) for row in self.cases for m in row.metrics if m.figure and m.metric.display.listed)

    @property
    def outcome(self) -> Outcome | None:
        """The worst outcome of all rows; None if nothing was expected and nothing is in doubt."""
        return overall_outcome(self.rows)

    @property
    def baseline(self) -> Figure | None:
        """The capacity of the lab's baseline (pps), if it was measured."""
        return self.baselines.get("capacity")


def build_model(lab: Lab, run: Run) -> ReportModel:
    """Judge a run and derive what reports show. A pure function: an old run can be judged again at any time."""
    bases = MappingProxyType(dict(baselines(lab, run)))
    cases = case_rows(lab, run, bases)
    plotted = {name: curves(lab, cases, bases, name) for name, metric in METRICS.items() if metric.display.caption}
    return ReportModel(
        lab=lab,
        run=run,
        cases=cases,
        exercises=exercise_rows(lab, run, bases),
        baselines=bases,
        curves=MappingProxyType(plotted),
        crossovers=crossovers(lab, plotted.get("capacity", ())),
        survival=survival_tables(lab, cases),
        notes=tuple(note for note in (formatting.caution(run.testbed), run.testbed.note) if note),
    )
