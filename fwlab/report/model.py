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
    cases, exercises, bases, survival = list[Row](), list[Row](), list[Baseline](), list[SurvivalTable]()
    plotted = {name: list[Curve]() for name, metric in METRICS.items() if metric.display.caption}
    for one in runs:
        own = on_system(lab, one.dut.system)
        base = baselines(own, one)
        rows = case_rows(own, one, base)
        cases += rows
        exercises += exercise_rows(own, one, base)
        bases.append(Baseline(own.baseline, base.get(MAIN_METRIC)))
        survival += survival_tables(own, rows)
        for name, found in plotted.items():
            found += curves(own, rows, base, name)
    notes = dict.fromkeys(note for one in runs for note in (formatting.caution(one.testbed), one.testbed.note) if note)
    return ReportModel(
        lab=lab,
        run=run,
        runs=tuple(runs),
        cases=tuple(cases),
        exercises=tuple(exercises),
        baselines=tuple(bases),
        curves=MappingProxyType({name: tuple(found) for name, found in plotted.items()}),
        crossovers=crossovers(lab, plotted.get(MAIN_METRIC, ())),
        survival=tuple(survival),
        load_tables=load_tables(cases),
        notes=(*notes, *([] if others is None else _not_measured(lab, runs))),
    )


def _not_measured(lab: Lab, runs: Sequence[Run]) -> list[str]:
    """A note for each system of the lab without a run, and the command that makes one."""
    if not several(lab):
        return []
    missing = [system for system in lab.needs.systems if system not in {run.dut.system for run in runs}]
    return [
        f"The cases for {system} are not measured yet: `FWLAB_DUT={system} fwlab run {lab.id}` measures "
        f"them; `packer/build dut-{system}` builds the box of such a DUT."
        for system in missing
    ]
