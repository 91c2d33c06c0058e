# SPDX-License-Identifier: GPL-2.0-or-later
"""The report model: a run with its verdicts and everything derived from them, computed once.

All renderers show this model, so they cannot disagree, and none of them judges or derives anything itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fwlab.judge.statistics import Figure
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.model.metric import MAIN_METRIC
from fwlab.model.results import Run
from fwlab.model.systems import on_system, several
from fwlab.model.verdict import Outcome
from fwlab.report import formatting
from fwlab.report.curves import Crossover, Curve, crossovers, curves
from fwlab.report.report_rows import MetricRow, Row, baselines, case_rows, exercise_rows, overall_outcome
from fwlab.report.tables import LoadTable, SurvivalTable, load_tables, survival_tables


@dataclass(frozen=True)
class Baseline:
    """The case that ratios are to, and its capacity (pps), if it was measured."""

    case: str
    capacity: Figure | None


@dataclass(frozen=True)
class ReportModel:
    """A run, judged; of a lab for several systems, the latest run of each. Immutable.

    lab, run    the lab on all its systems; the run that the report was asked for
    runs        every run that the report shows, in the order of the lab's systems; usually `run` alone
    cases, exercises  a row for each measurement, with figures, verdicts and problems
    baselines   one for each run, in the same order
    curves      by metric name, the curves of the sweeps; only metrics that are plotted
    crossovers  where one sweep becomes faster than another
    survival    tables of survival under attack
    load_tables what was found load by load: frame loss, latency
    notes       what every reader must know before the figures
    """

    lab: Lab
    run: Run
    runs: tuple[Run, ...]
    cases: tuple[Row, ...]
    exercises: tuple[Row, ...]
    baselines: tuple[Baseline, ...]
    curves: Mapping[str, tuple[Curve, ...]]
    crossovers: tuple[Crossover, ...]
    survival: tuple[SurvivalTable, ...]
    load_tables: tuple[LoadTable, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Cases, then exercises."""
        return self.cases + self.exercises

    @property
    def listed(self) -> tuple[tuple[Row, MetricRow], ...]:
        """The figures of cases that are listed one by one, because they have no column or table of their own."""
        return tuple((row, m) for row in self.cases for m in row.metrics if m.figure and _listed(row, m))

    @property
    def outcome(self) -> Outcome | None:
        """The worst outcome of all rows; None if nothing was expected and nothing is in doubt."""
        return overall_outcome(self.rows)


def _listed(row: Row, found: MetricRow) -> bool:
    display = found.metric.display
    return display.listed or (display.table == "sweep" and row.sweep is None)


def build_model(lab: Lab, run: Run, others: Sequence[Run] | None = None) -> ReportModel:
    """Judge a run and derive what reports show. A pure function: an old run can be judged again at any time.

    others  the latest runs on the lab's other systems, each judged by itself and shown with this one; the report
            says which systems were not measured. None: a report of this run alone
    """
    lab = lab.whole
    order = lab.needs.systems
    runs = sorted([run, *(others or [])], key=lambda one: order.index(one.dut.system) if one.dut.system in order else 0)
    parts = [_part(on_system(lab, one.dut.system), one) for one in runs]
    plotted = {
        name: tuple(curve for part in parts for curve in part.curves.get(name, ()))
        for name, metric in METRICS.items()
        if metric.display.caption
    }
    notes = dict.fromkeys(note for one in runs for note in (formatting.caution(one.testbed), one.testbed.note) if note)
    return ReportModel(
        lab=lab,
        run=run,
        runs=tuple(runs),
        cases=tuple(row for part in parts for row in part.cases),
        exercises=tuple(row for part in parts for row in part.exercises),
        baselines=tuple(part.baseline for part in parts),
        curves=MappingProxyType(plotted),
        crossovers=crossovers(lab, plotted.get(MAIN_METRIC, ())),
        survival=tuple(table for part in parts for table in part.survival),
        load_tables=load_tables(row for part in parts for row in part.cases),
        notes=(*notes, *([] if others is None else _not_measured(lab, runs))),
    )


@dataclass(frozen=True)
class _Part:
    """What one run brings to the report."""

    cases: tuple[Row, ...]
    exercises: tuple[Row, ...]
    baseline: Baseline
    curves: dict[str, tuple[Curve, ...]]
    survival: tuple[SurvivalTable, ...]


def _part(lab: Lab, run: Run) -> _Part:
    bases = MappingProxyType(dict(baselines(lab, run)))
    cases = case_rows(lab, run, bases)
    return _Part(
        cases=cases,
        exercises=exercise_rows(lab, run, bases),
        baseline=Baseline(lab.baseline, bases.get(MAIN_METRIC)),
        curves={name: curves(lab, cases, bases, name) for name, metric in METRICS.items() if metric.display.caption},
        survival=survival_tables(lab, cases),
    )


def _not_measured(lab: Lab, runs: Sequence[Run]) -> list[str]:
    """A note for each system of the lab without a run, and the command that makes one."""
    if not several(lab):
        return []
    missing = [system for system in lab.needs.systems if system not in {run.dut.system for run in runs}]
    return [
        f"The cases for {system} are not measured yet: `FWLAB_DUT={system} .venv/bin/fwlab run {lab.id}` measures "
        f"them; `packer/build dut-{system}` builds the box of such a DUT."
        for system in missing
    ]
