# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of each sweep over its parameter, and where two sweeps cross. Data of plots, without the plots."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fwlab.judge.statistics import Figure, nanoseconds_per_packet
from fwlab.model.case import DeclaredCrossover, Published
from fwlab.model.lab import Lab
from fwlab.model.metric import MAIN_METRIC
from fwlab.report.formatting import digits
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
    """The curves grouped by plot: all logarithmic ones together, linear ones by parameter.

    A group without two points of one curve is left out: the table says the same.
    """
    found: dict[str | None, list[Curve]] = {}
    for line in lines:
        found.setdefault(line.parameter if line.linear else None, []).append(line)
    return [group for group in found.values() if any(len(line.points) > 1 for line in group)]


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
        PublishedPoint(x, p.ratio * base.median, p.source) for x, row in placed for p in row.published if p.ratio
    )


#: How many ns per packet the second sweep saves, at each common value of the parameter. A packet costs t + n c in
#: either sweep. So costs, unlike capacities, can be interpolated linearly.
AdvantageLine = list[tuple[float, float]]


def positive_from(line: AdvantageLine) -> float | None:
    """The parameter from which the advantage stays positive up to the last point.

    It is the first point's if the advantage is positive everywhere, and None if it is not at the last point.
    """
    negative = [index for index, (_, advantage) in enumerate(line) if advantage <= 0]
    if not negative:
        return line[0][0]
    if negative[-1] == len(line) - 1:
        return None
    (x, below), (next_x, above) = line[negative[-1] : negative[-1] + 2]
    return x + (next_x - x) * -below / (above - below)


@dataclass(frozen=True)
class Crossover:
    """The crossover of two sweeps, in their parameter.

    slower, faster  the sweep that wins below the crossover's value, and the one that wins above it
    first, last  the range in which both sweeps were measured
    value     where the medians cross; None if not within that range
    low, high  the interval: where the lines cross if all trials of one sweep were as fast, and all of the other as
              slow, as its extreme trial; None outside the range
    always    the second sweep is faster from the first point on
    """

    id: str
    title: str
    parameter: str
    slower: str
    faster: str
    first: float
    last: float
    value: float | None
    low: float | None
    high: float | None
    always: bool = False
    published: tuple[Published, ...] = ()


def position(crossover: Crossover) -> str:
    """In words: "57.3 ports (57.1 to 57.6)"."""
    if crossover.always:
        return f"from {digits(crossover.first, 3)} {crossover.parameter} on"
    if crossover.value is None:
        return f"not up to {digits(crossover.last, 3)} {crossover.parameter}"
    low = f"below {digits(crossover.first, 3)}" if crossover.low is None else digits(crossover.low, 3)
    high = f"beyond {digits(crossover.last, 3)}" if crossover.high is None else digits(crossover.high, 3)
    return f"{digits(crossover.value, 3)} {crossover.parameter} ({low} to {high})"


def published_positions(crossover: Crossover) -> str:
    """What the sources printed: "S3: 120 ports"."""
    return ", ".join(f"{p.source}: {p.value:g} {p.unit}" for p in crossover.published if p.value is not None)


def crossovers(lab: Lab, capacity: Iterable[Curve]) -> tuple[Crossover, ...]:
    """Every crossover of the lab whose sweeps share at least two points; `capacity` holds the curves of capacity."""
    measured = {line.id: line for line in capacity}
    found = []
    for declared in lab.crossovers:
        slower, faster = measured.get(declared.slower), measured.get(declared.faster)
        if slower is None or faster is None:
            continue
        other = dict(faster.points)
        pairs = [(x, figure, other[x]) for x, figure in slower.points if x in other]
        if len(pairs) > 1:
            found.append(_crossover(declared, slower.parameter, pairs))
    return tuple(found)


def _crossover(declared: DeclaredCrossover, parameter: str, pairs: list[tuple[float, Figure, Figure]]) -> Crossover:
    cost = nanoseconds_per_packet
    middle = [(x, cost(slower.median) - cost(faster.median)) for x, slower, faster in pairs]
    # A low capacity is a high cost: the slower sweep costs most in its lowest trial.
    early = [(x, cost(slower.low) - cost(faster.high)) for x, slower, faster in pairs]
    late = [(x, cost(slower.high) - cost(faster.low)) for x, slower, faster in pairs]
    first, last = pairs[0][0], pairs[-1][0]

    def inside(line: AdvantageLine) -> float | None:
        """Where the line turns positive; None if that is only the edge of the range."""
        at = positive_from(line)
        return None if at == first and line[0][1] > 0 else at

    return Crossover(
        id=declared.id,
        title=declared.title,
        parameter=parameter,
        slower=declared.slower,
        faster=declared.faster,
        first=first,
        last=last,
        value=inside(middle),
        low=inside(early),
        high=inside(late),
        always=middle[0][1] > 0 and positive_from(middle) == first,
        published=tuple(declared.published),
    )
