# SPDX-License-Identifier: GPL-2.0-or-later
"""Where one sweep overtakes another: the number of rules from which a set is ahead, with its interval. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from fwlab.judge.statistics import Figure, nanoseconds_per_packet
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Crossing, Published
from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.report.curves import curves
from fwlab.report.formatting import digits


@dataclass(frozen=True)
class Line:
    """Advantage of the sweep ahead, in ns per packet, at each common value of the parameter; straight in between.

    A packet costs t + n c in either sweep, so the cost, and not the capacity, is what can be interpolated.
    """

    points: list[tuple[float, float]]

    def overtakes(self) -> float | None:
        """The parameter from which on the advantage is positive, up to the last point.

        The first point's where it is positive everywhere; None where it is not even at the last point.
        """
        behind = [index for index, (_, advantage) in enumerate(self.points) if advantage <= 0]
        if not behind:
            return self.points[0][0]
        if behind[-1] == len(self.points) - 1:
            return None
        (x, below), (next_x, above) = self.points[behind[-1] : behind[-1] + 2]
        return x + (next_x - x) * -below / (above - below)


@dataclass(frozen=True)
class Crossed:
    """One crossing of a run, in the parameter of its sweeps.

    first, last  the range over which both sweeps were measured
    value     where the medians cross; None where they do not within that range
    low, high  where they cross at the earliest and at the latest, if every trial of one sweep was its luckiest and
              every trial of the other its unluckiest; None where that lies outside the range
    always    the medians are apart from the first point on: it was ahead all along
    """

    id: str
    title: str
    parameter: str
    behind: str
    ahead: str
    first: float
    last: float
    value: float | None
    low: float | None
    high: float | None
    always: bool = False
    published: list[Published] = field(default_factory=list)


def where(crossed: Crossed) -> str:
    """In words: "57.3 ports (57.1 to 57.6)"."""
    if crossed.always:
        return f"from {digits(crossed.first, 3)} {crossed.parameter} on"
    if crossed.value is None:
        return f"not up to {digits(crossed.last, 3)} {crossed.parameter}"
    low = f"below {digits(crossed.first, 3)}" if crossed.low is None else digits(crossed.low, 3)
    high = f"beyond {digits(crossed.last, 3)}" if crossed.high is None else digits(crossed.high, 3)
    return f"{digits(crossed.value, 3)} {crossed.parameter} ({low} to {high})"


def beside(crossed: Crossed) -> str:
    """What the sources printed: "S3: 120 ports"."""
    return ", ".join(f"{p.source}: {p.value:g} {p.unit}" for p in crossed.published if p.value is not None)


def crossings(lab: Lab, run: Run) -> list[Crossed]:
    """Every crossing of the lab whose sweeps have two points in common in this run."""
    measured = {line.id: line for line in curves(lab, run, METRICS["capacity"])}
    found = []
    for crossing in lab.crossings:
        behind, ahead = measured.get(crossing.behind), measured.get(crossing.ahead)
        if behind is None or ahead is None:
            continue
        theirs = dict(ahead.points)
        pairs = [(x, figure, theirs[x]) for x, figure in behind.points if x in theirs]
        if len(pairs) > 1:
            found.append(_crossed(crossing, behind.parameter, pairs))
    return found


def _crossed(crossing: Crossing, parameter: str, pairs: list[tuple[float, Figure, Figure]]) -> Crossed:
    cost = nanoseconds_per_packet
    middle = Line([(x, cost(behind.median) - cost(ahead.median)) for x, behind, ahead in pairs])
    # A low capacity is a high cost: what is behind is dearest in its lowest trial.
    early = Line([(x, cost(behind.low) - cost(ahead.high)) for x, behind, ahead in pairs])
    late = Line([(x, cost(behind.high) - cost(ahead.low)) for x, behind, ahead in pairs])
    first, last = pairs[0][0], pairs[-1][0]
    always = middle.points[0][1] > 0 and middle.overtakes() == first

    def inside(line: Line) -> float | None:
        """Without what is only the edge of the range."""
        at = line.overtakes()
        return None if at == first and line.points[0][1] > 0 else at

    return Crossed(
        id=crossing.id,
        title=crossing.title,
        parameter=parameter,
        behind=crossing.behind,
        ahead=crossing.ahead,
        first=first,
        last=last,
        value=inside(middle),
        low=inside(early),
        high=inside(late),
        always=always,
        published=crossing.published,
    )
