# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's figures as curves over the number of rules or entries: data of a plot, without the plot."""

from __future__ import annotations

from dataclasses import dataclass, field

from fwlab.judge.statistics import Figure
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric
from fwlab.model.results import Run
from fwlab.report.report_rows import Row, baseline, case_rows


@dataclass(frozen=True)
class Published:
    """A published ratio at x, brought to our scale: y is the ratio times our baseline."""

    x: float
    y: float
    source: str


@dataclass(frozen=True)
class Curve:
    """One sweep. `points` are in rising order of x, the value of the parameter that the sweep varies."""

    id: str
    title: str
    parameter: str
    points: list[tuple[float, Figure]]
    published: list[Published] = field(default_factory=list)

    @property
    def linear(self) -> bool:
        """A sweep from nothing on has no place on a logarithmic axis: its axes begin at zero."""
        return self.points[0][0] == 0


def panels(lines: list[Curve]) -> list[list[Curve]]:
    """The curves by drawing: all logarithmic ones together, the linear ones by their parameter."""
    found: dict[str | None, list[Curve]] = {}
    for line in lines:
        found.setdefault(line.parameter if line.linear else None, []).append(line)
    return list(found.values())


def curves(lab: Lab, run: Run, metric: Metric) -> list[Curve]:
    """A curve for each sweep that measured the metric; single cases that name a sweep join it.

    A value that is not a number, or below zero, has no place on an axis and is left out, and so is a figure of zero.
    """
    rows = case_rows(lab, run)
    found = []
    for sweep in lab.sweeps:
        own = [(row, _x(row, sweep.parameter)) for row in rows if row.sweep == sweep.id]
        placed = sorted(((x, row) for row, x in own if x is not None), key=lambda pair: pair[0])
        points = [(x, measured) for x, row in placed if (measured := _plotted(row, metric)) is not None]
        if points:
            marks = _published(lab, run, placed) if metric.name == "capacity" else []
            found.append(Curve(sweep.id, sweep.title, sweep.parameter, points, marks))
    return found


def _x(row: Row, parameter: str) -> float | None:
    value = row.measured.parameters.get(parameter)
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def _plotted(row: Row, metric: Metric) -> Figure | None:
    found = row.of(metric.name)
    return found.figure if found and found.figure and found.figure.low > 0 else None


def _published(lab: Lab, run: Run, placed: list[tuple[float, Row]]) -> list[Published]:
    base = baseline(lab, run)
    if base is None:
        return []
    return [
        Published(x, p.ratio * base.median, p.source)
        for x, row in placed
        for metric in row.metrics
        for p in metric.published
        if p.ratio
    ]
