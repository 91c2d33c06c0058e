# SPDX-License-Identifier: GPL-2.0-or-later
"""Curves as inline SVG. Error bars range from the lowest to the highest trial; axes are logarithmic, except for
sweeps from zero. Those have a zero next to a logarithmic axis if their values are far apart.

Text and axes take the colour of the surrounding page, so that one drawing serves light and dark themes.
"""

import io
import re
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from fwlab.judge.statistics import Figure
from fwlab.model.metric import MAIN_METRIC, Metric
from fwlab.report.curves import Crossover, Curve, panels, position
from fwlab.report.formatting import digits, either
from fwlab.report.model import ReportModel

#: Okabe and Ito's palette and a grey: distinguishable with any colour vision. The markers differ as well.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#808080"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
#: Once all colours are used, further lines are dashed.
DASHES = ["-", "--", ":"]
#: Placeholder for the colour of the page's text; replaced in the finished SVG.
INK = "#123457"
SIZE_IN = (8.0, 4.8)
#: The number of characters that fit into two columns of the legend, and the height of one line (inches).
LEGEND_CHARACTERS = 84
LEGEND_LINE_IN = 0.22
#: From this factor between the values of a sweep from zero on, a linear axis would squeeze the small ones.
FAR_APART = 100
#: Values that differ by less than this factor count as one value on a logarithmic axis.
ONE_VALUE = 1.001
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def plots(model: ReportModel, metric: Metric) -> list[str]:
    """The metric over the parameters of the sweeps, as <svg> elements; empty if no sweep measured it."""
    style: Any = {**STYLE, "svg.hashsalt": metric.name}
    with matplotlib.rc_context(style):
        return [
            svg_element(drawing(model, metric, lines), f"{metric.name}-{index}", metric.display.heading)
            for index, lines in enumerate(panels(model.curves.get(metric.name, ())))
        ]


def drawing(model: ReportModel, metric: Metric, lines: list[Curve]) -> Drawing:
    """Curves that share their axes, as a matplotlib figure."""
    baselines, factor = model.baselines, metric.display.factor
    figure = Drawing(figsize=SIZE_IN, layout="constrained")
    axes = figure.subplots()
    logarithmic = not lines[0].linear
    bases = [base for base in baselines if base.capacity] if metric.name == MAIN_METRIC else []
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _widen(lines, factor, [base.capacity for base in bases if base.capacity], axes)
    for index, line in enumerate(lines):
        _line(axes, line, factor, index)
    if metric.name == MAIN_METRIC:
        own = {line.id for line in lines}
        for crossover in model.crossovers:
            if {crossover.slower, crossover.faster} <= own:
                index = [line.id for line in lines].index(crossover.faster)
                _crossover(axes, crossover, COLOURS[index % len(COLOURS)])
    for place, base in enumerate(bases):
        if base.capacity:
            dash = (0, (6, 4 + 4 * place))
            axes.axhline(base.capacity.median * factor, color=INK, linestyle=dash, linewidth=1, label=base.case)
    varied = " or ".join(dict.fromkeys(line.parameter for line in lines))
    x_label = "number of {parameter}" if lines[0].plain else metric.display.x_label
    axes.set_xlabel(x_label.format(parameter=varied, baseline=either(base.case for base in baselines)))
    axes.set_ylabel(metric.display.heading)
    if logarithmic:
        _ticks(axes)
    else:
        axes.set_ylim(bottom=0)
        _from_zero(axes, lines)
    axes.grid(True, which="major", color=INK, alpha=0.15, linewidth=0.8)
    _legend(figure, axes, [*(line.title for line in lines), *(base.case for base in baselines)])
    return figure


def _legend(figure: Drawing, axes: Axes, first: list[str]) -> None:
    """Below the plot, where it hides no curve: our curves in the lab's order, then the published ones."""
    named = list(zip(*axes.get_legend_handles_labels(), strict=True))
    named.sort(key=lambda pair: first.index(pair[1]) if pair[1] in first else len(first))
    widest = sorted(len(label) for _, label in named)[-2:]
    columns = 2 if sum(widest) <= LEGEND_CHARACTERS else 1
    # One column needs more lines than two. Make the figure taller rather than the plot smaller.
    figure.set_figheight(SIZE_IN[1] + (len(named) // 2 * LEGEND_LINE_IN if columns == 1 else 0))
    figure.legend(*zip(*named, strict=True), loc="outside lower center", ncols=columns)


def _line(axes: Axes, line: Curve, factor: float, index: int) -> None:
    colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
    dash = DASHES[index // len(COLOURS) % len(DASHES)]
    xs = [x for x, _ in line.points]
    middle = [found.median * factor for _, found in line.points]
    bars = [
        [(found.median - found.low) * factor for _, found in line.points],
        [(found.high - found.median) * factor for _, found in line.points],
    ]
    style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": dash, "markersize": 5, "linewidth": 1.6}
    axes.errorbar(xs, middle, bars, label=line.title, capsize=3, **style)
    for source in dict.fromkeys(p.source for p in line.published):
        marks = [p for p in line.published if p.source == source]
        axes.plot(
            [p.x for p in marks],
            [p.y * factor for p in marks],
            linestyle="none",
            marker=marker,
            markersize=11,
            markerfacecolor="none",
            markeredgecolor=colour,
            markeredgewidth=1.4,
            label=f"{source} for {line.title}",
        )


def _crossover(axes: Axes, crossover: Crossover, colour: str) -> None:
    """A line where one curve crosses another, over its interval; dotted lines where the sources saw it."""
    if crossover.value is not None:
        axes.axvspan(
            crossover.first if crossover.low is None else crossover.low,
            crossover.last if crossover.high is None else crossover.high,
            color=colour,
            alpha=0.2,
            linewidth=0,
        )
        label = f"{crossover.title}: {position(crossover)}"
        axes.axvline(crossover.value, color=colour, linestyle="-.", linewidth=1.2, label=label)
    for mark in crossover.published:
        if mark.value is not None:
            label = f"{mark.source}: {mark.value:g} {mark.unit}"
            axes.axvline(mark.value, color=colour, linestyle=":", linewidth=1.6, label=label)


def _widen(lines: list[Curve], factor: float, bases: list[Figure], axes: Axes) -> None:
    """Widen axes that have a single value: matplotlib gives a logarithmic axis no usable width then."""
    marks = [mark for line in lines for mark in line.published]
    xs = [*(x for line in lines for x, _ in line.points), *(mark.x for mark in marks)]
    ys = [value for line in lines for _, found in line.points for value in (found.low, found.high)]
    ys += [*(mark.y for mark in marks), *(base.median for base in bases)]
    for values, scale, limit in ((xs, 1, axes.set_xlim), (ys, factor, axes.set_ylim)):
        if max(values) < min(values) * ONE_VALUE:
            limit(min(values) * scale / 2, max(values) * scale * 2)


def _from_zero(axes: Axes, lines: list[Curve]) -> None:
    """The axis of sweeps that start at zero: linear, or logarithmic from their first step on."""
    steps = [x for line in lines if line.linear for x, _ in line.points if x > 0]
    if steps and max(steps) >= FAR_APART * min(steps):
        axes.set_xscale("symlog", linthresh=min(steps), linscale=0.5)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))
    axes.set_xlim(left=0)


def _ticks(axes: Axes) -> None:
    """Labels at 1, 2 and 5 of each decade; the axis ends on whole steps."""
    low, high = axes.get_ylim()
    steps = [mantissa * 10.0**decade for decade in range(-9, 10) for mantissa in (1, 2, 5)]
    below, above = (step for step in steps if step <= low), (step for step in steps if step >= high)
    axes.set_ylim(max(below, default=low), min(above, default=high))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: digits(value, 1)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))


def _thousands(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def svg_element(figure: Drawing, name: str, label: str) -> str:
    """The drawing as an element of an HTML page: no XML header, no URLs, identifiers that begin with `name`."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    head = rf'<svg viewBox="\1" role="img" aria-label="{label}">'
    text = re.sub(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', head, text, count=1)
    return text.replace(INK, "currentColor").replace(INK.lower(), "currentColor").strip()
