# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures of a lab's page, drawn from its newest full run. Each is an image, followed by a comment that draws it:

    ![Lists bend, sets stay level](pictures/lists.svg)
    <!-- drawn: curves("capacity", "iptables-rules", "ipset") -->

The expression is Python, like cog's blocks, and knows the functions below. The files are kept in git. Other pages link
them without drawing them. Each takes the reader's light or dark theme.
"""

import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure as Drawing

from fwlab.judge.statistics import nanoseconds_per_packet
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.report.curves import Curve
from fwlab.report.derived_tables import medians, published_runs
from fwlab.report.formatting import digits
from fwlab.report.model import ReportModel, build_model
from fwlab.report.plot import COLOURS, INK, STYLE, drawing, svg_element

_PICTURE = re.compile(
    r"!\[(?P<words>[^\]]*)\]\((?P<path>[^)\s]+\.svg)\)\s*<!-- drawn: (?P<expression>.+?) -->", re.DOTALL
)
#: Text and axes in a light theme, and in a dark one.
LIGHT, DARK = "#1f2328", "#d1d7e0"
_THEMES = f"<style>svg{{color:{LIGHT}}}@media (prefers-color-scheme:dark){{svg{{color:{DARK}}}}}</style>"
_NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
#: Width of the diagram of places, and height of one place (inches); the share of the width that its words take.
PLACES_IN, PLACE_IN, WORDS = 8.0, 0.52, 0.52


def pictures_of(page: Path) -> dict[Path, str]:
    """The pictures that this page draws, by their files. Raises BadInput, naming the picture that cannot be drawn."""
    wanted = list(_PICTURE.finditer(page.read_text(encoding="utf-8")))
    if not wanted:
        return {}
    names = _functions(str(page))
    found = {}
    for one in wanted:
        style = {**STYLE, "svg.hashsalt": one["path"]}
        label = escape(" ".join(one["words"].split()))
        try:
            with matplotlib.rc_context(style):  # type: ignore[arg-type]
                figure = eval(one["expression"], {"__builtins__": {}}, names)  # noqa: S307 - as cog does with this page
                found[page.parent / one["path"]] = _file(svg_element(figure, Path(one["path"]).stem, label))
        except (ArithmeticError, AttributeError, LookupError, NameError, SyntaxError, TypeError, ValueError) as error:
            message = f"{page.name}: {one['path']}: {type(error).__name__}: {error}"
            raise BadInput(message, f"correct the comment behind it in {page.name}") from error
    return found


def _file(element: str) -> str:
    """The element of a page as a file of its own, with the colours that a page would give it."""
    head, rest = element.removeprefix("<svg").split(">", 1)
    return f"<svg {_NAMESPACES}{head}>{_THEMES}{rest}\n"


def _functions(page: str) -> dict[str, Callable[..., Drawing]]:
    """What draws a picture.

    curves  a metric over the parameter of some sweeps, as in reports. With `predicted`, also what t + n c predicts for
            a sweep from its baseline and its last point: {"iptables-rules": "raw-drop"}
    places  where a packet can be dropped on its way, and the capacity then: (case, place, what the kernel has done)
    """
    lab, runs = published_runs(page)
    model, median = build_model(lab, runs[0], runs[1:]), medians(page, lab, runs)

    def curves(metric: str, *sweeps: str, predicted: dict[str, str] | None = None) -> Drawing:
        chosen = [_curve(model, metric, sweep) for sweep in sweeps]
        figure = drawing(model, METRICS[metric], chosen)
        for index, (sweep, base) in enumerate((predicted or {}).items()):
            line = next(line for line in chosen if line.id == sweep)
            _predict(figure, line, median(base), METRICS[metric].display.factor, above=index == 0)
        return figure

    def places(rows: Sequence[tuple[str, str, str]]) -> Drawing:
        return _places([(median(case) / 1e3, place, done) for case, place, done in rows])

    return {"curves": curves, "places": places}


def _curve(model: ReportModel, metric: str, sweep: str) -> Curve:
    return {line.id: line for line in model.curves[metric]}[sweep]


def _predict(figure: Drawing, line: Curve, base: float, factor: float, *, above: bool) -> None:
    """The line 1 / (t + n c): t is the cost of the baseline's packet, c that of a rule by the longest list."""
    axes = figure.axes[0]
    last, found = line.points[-1]
    t = nanoseconds_per_packet(base)
    c = (nanoseconds_per_packet(found.median) - t) / last
    lowest = line.points[0][0]
    xs = [lowest * (last / lowest) ** (step / 60) for step in range(61)]
    axes.plot(xs, [1e9 / (t + n * c) * factor for n in xs], color=INK, linewidth=0.9, alpha=0.8, zorder=1)
    axes.annotate(
        f"t + n c, c = {digits(c, 2)} instructions",
        (xs[30], 1e9 / (t + xs[30] * c) * factor),
        xytext=(6, 6) if above else (-8, -8),
        textcoords="offset points",
        ha="left" if above else "right",
        va="bottom" if above else "top",
        fontsize=9,
    )


def _places(rows: list[tuple[float, str, str]]) -> Drawing:
    """A packet's way from the top down; a bar at each place where it can be dropped, and at the end."""
    figure = Drawing(figsize=(PLACES_IN, PLACE_IN * (len(rows) + 1.2)), layout="constrained")
    axes = figure.subplots()
    most = max(kpps for kpps, _, _ in rows)
    for index, (kpps, place, done) in enumerate(rows):
        last = index == len(rows) - 1
        axes.barh(index, kpps, height=0.5, color=COLOURS[2 if last else 0], alpha=0.75)
        axes.text(kpps + most * 0.012, index, digits(kpps, 3), va="center", fontsize=10)
        axes.text(-most * 0.03, index - 0.08, place, va="bottom", ha="right", fontsize=11)
        axes.text(-most * 0.03, index - 0.02, done, va="top", ha="right", fontsize=8.5, alpha=0.75)
    arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.4}
    axes.annotate("", xy=(0, len(rows) - 0.45), xytext=(0, -0.75), arrowprops=arrow)
    axes.set_ylim(len(rows) - 0.4, -0.8)
    axes.set_xlim(-most * WORDS / (1 - WORDS), most * 1.1)
    axes.set_axis_off()
    axes.text(0, -0.8, "a packet's way · capacity, kpps, if it is dropped there", ha="left", fontsize=10)
    return figure
