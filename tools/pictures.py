# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures of a lab's page, drawn from its newest figures under results/.

Each is an image, followed by a comment that draws it:

    ![Lists bend, sets stay level](pictures/lists.svg)
    <!-- drawn: curves("capacity", "iptables-rules", "ipset") -->

The comment names one of the functions below and its arguments. The files are kept in git. Other pages link them without
drawing them. Each takes the reader's light or dark theme.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure as Drawing

from fwlab.checkout.project import find_project
from fwlab.judge.clocks import clock_of
from fwlab.judge.statistics import figure, nanoseconds_per_packet
from fwlab.measure.core_models import core_profile
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.call_stacks import Stacks
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.report.curves import Curve
from fwlab.report.flame import flame
from fwlab.report.formatting import digits
from fwlab.report.model import ReportModel, build_model
from fwlab.report.plot import COLOURS, INK, STYLE, drawing, svg_element
from tools.architecture import packages
from tools.calls import call
from tools.core_pages import cycles_of
from tools.figures import Median, medians, profiled, published_runs
from tools.network_picture import network

_PICTURE = re.compile(r"!\[(?P<words>[^\]]*)\]\((?P<path>[^)\s]+\.svg)\)\s*<!-- drawn: (?P<call>.+?) -->", re.DOTALL)
#: What a wrong call raises.
_FAULTS = (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError)
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
    functions = _functions(str(page))
    found = {}
    for one in wanted:
        style = {**STYLE, "svg.hashsalt": one["path"]}
        words = " ".join(one["words"].split())
        try:
            with matplotlib.rc_context(style):  # type: ignore[arg-type]
                drawn = call(one["call"], functions)
                if isinstance(drawn, Flame):
                    element = flame(drawn.stacks, drawn.cost, drawn.unit, words)
                else:
                    element = svg_element(drawn, Path(one["path"]).stem, escape(words))
                found[page.parent / one["path"]] = _file(element)
        except _FAULTS as error:
            message = f"{page.name}: {one['path']}: {type(error).__name__}: {error}"
            raise BadInput(message, f"correct the comment behind it in {page.name}") from error
    return found


def in_one_scheme(picture: str, *, dark: bool) -> str:
    """The file of a picture in the colours of one theme, for a page that does not follow the reader's system."""
    return picture.replace(_THEMES, f"<style>svg{{color:{DARK if dark else LIGHT}}}</style>")


def _file(element: str) -> str:
    """The element of a page as a separate file, with the colours that a page would give it."""
    head, rest = element.removeprefix("<svg").split(">", 1)
    return f"<svg {_NAMESPACES}{head}>{_THEMES}{rest}\n"


@dataclass(frozen=True)
class Flame:
    """What a flame graph shows: samples by stack, and the cost of a packet in a unit."""

    stacks: Stacks
    cost: float
    unit: str


def _functions(page: str) -> dict[str, Callable[..., Drawing | Flame]]:
    """What draws a picture.

    curves  a metric over the parameter of some sweeps, as in reports. With `predicted`, also what t + n c predicts for
            a sweep from its baseline and its last point: {"iptables-rules": "raw-drop"}
    places  where a packet can be dropped on its way, and the capacity then: (case, place, what the kernel has done)
    flames  the flame graph of a case, from the newest results/LAB/*-profile.json.gz that has it; LAB may be another lab
    cycles  what a packet costs on a modelled core: the lab, the core, and (case, words) for each bar

    packages  which package of fwlab imports which
    waits   the flame graph of where a packet waits on a modelled core: the lab, and a file in results/LAB of one case
    network  the lab's address plan, and where on a packet's way its rulesets act: senders, receivers, places

    All but the last four need a lab's page.
    """

    @functools.cache
    def figures() -> tuple[ReportModel, Median]:
        lab, runs = published_runs(page)
        return build_model(lab, runs[0], runs[1:]), medians(page, lab, runs)

    def curves(metric: str, *sweeps: str, predicted: dict[str, str] | None = None) -> Drawing:
        model, median = figures()
        chosen = [_curve(model, metric, sweep) for sweep in sweeps]
        drawn = drawing(model, METRICS[metric], chosen)
        for index, (sweep, base) in enumerate((predicted or {}).items()):
            line = next(line for line in chosen if line.id == sweep)
            _predict(drawn, line, median(base), METRICS[metric].display.factor, above=index == 0)
        return drawn

    def places(rows: Sequence[tuple[str, str, str]]) -> Drawing:
        median = figures()[1]
        return _places([(median(case) / 1e3, place, done) for case, place, done in rows])

    def flames(case: str, lab_id: str = Path(page).resolve().parent.name) -> Flame:
        run, found = profiled(lab_id, case)
        measured = figure(found, METRICS["capacity"], run.testbed)
        if measured is None or not found.stacks:
            raise ValueError(f"no samples of {case}")
        return Flame(found.stacks, nanoseconds_per_packet(measured.median), clock_of(run.testbed).cost_unit)

    return {
        "curves": curves,
        "places": places,
        "flames": flames,
        "cycles": cycles_of,
        "network": network,
        "packages": packages,
        "waits": _waits,
    }


def _waits(lab: str, file: str) -> Flame:
    run = load_run(find_project().root / "results" / lab / file, lab)
    [case] = run.cases
    core = core_profile(case, run.testbed)
    if core is None:
        raise ValueError(f"no functions in {file}")
    return Flame(core.stacks, core.waits, "cycles per packet")


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
