# SPDX-License-Identifier: GPL-2.0-or-later
"""The curves of a run: the figures of each sweep over its parameter. Data of plots, without the plots."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fwlab.judge.statistics import Figure
from fwlab.model.lab import Lab
from fwlab.model.metric import MAIN_METRIC
from fwlab.report.report_rows import Baselines, Row


@dataclass(frozen=True)
class PublishedPoint:
    """A published ratio at x on our scale: y is the ratio times our baseline."""

    x: float
    y: float
    source: str


@dataclass(frozen=True)
class Curve:
    """One sweep. `points` are ordered by x, the value of the parameter that the sweep varies.

    plain  the parameter is not what the metric's own label of the axis says, such as a load
    """

    id: str
    title: str
    parameter: str
    points: tuple[tuple[float, Figure], ...]
    published: tuple[PublishedPoint, ...] = ()
    plain: bool = False

    @property
    def linear(self) -> bool:
        """Whether it needs linear axes: a sweep that starts at zero has no place on a logarithmic one."""
        return self.points[0][0] == 0


def panels(lines: Iterable[Curve]) -> list[list[Curve]]:
    """The curves grouped by plot: all logarithmic ones together, linear ones by parameter."""
    found: dict[str | None, list[Curve]] = {}
    for line in lines:
        found.setdefault(line.parameter if line.linear else None, []).append(line)
    return list(found.values())


def curves(lab: Lab, rows: Sequence[Row], bases: Baselines, metric: str) -> tuple[Curve, ...]:
    """A curve for each sweep that measured the metric; single cases that name a sweep join it.

    Left out are parameters that are not numbers or are negative, and figures of zero: no axis can show them.
    """
    found = []
    for sweep in lab.sweeps:
        own = [(row, _x(row, sweep.parameter)) for row in rows if row.sweep == sweep.id]
        placed = sorted(((x, row) for row, x in own if x is not None), key=lambda pair: pair[0])
        points = tuple((x, value) for x, row in placed if (value := _plotted(row, metric)) is not None)
        if points:
            marks = _published(placed, bases.get(metric)) if metric == MAIN_METRIC else ()
            plain = sweep.attack_load is not None
            found.append(Curve(sweep.id, sweep.title, sweep.parameter, points, marks, plain))
    return tuple(found)


def _x(row: Row, parameter: str) -> float | None:
    value = row.measured.parameters.get(parameter)
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def _plotted(row: Row, metric: str) -> Figure | None:
    found = row.of(metric)
    return found.figure if found and found.figure and found.figure.low > 0 else None


def _published(placed: Iterable[tuple[float, Row]], base: Figure | None) -> tuple[PublishedPoint, ...]:
    if base is None:
        return ()
    return tuple(
        PublishedPoint(x, p.ratio * base.median, p.source)
        for x, row in placed
        for metric in row.metrics
        for p in metric.published
        if p.ratio
    )
