# SPDX-License-Identifier: GPL-2.0-or-later
"""One picture for an exercise, as inline SVG: what was predicted and measured, and what is accepted.

Text takes the colour of the surrounding page. The picture is narrow, so that it can be read on a phone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from fwlab.judge.statistics import Figure
from fwlab.model.metric import MAIN_METRIC, Metric
from fwlab.report.formatting import expected_range, quantity
from fwlab.report.report_rows import Row

#: The drawing's width, where bars begin and how long the longest is, the height of a bar's row and of the text.
WIDTH, LEFT, MAX_BAR, ROW, FONT = 420, 84, 240, 32, 14
#: Okabe and Ito's colours: of what was measured, predicted, accepted. The baseline is grey.
COLOURS = {"measured": "#0072B2", "predicted": "#E69F00", "baseline": "#808080"}
ACCEPTED = "#009E73"


@dataclass(frozen=True)
class Bar:
    """A figure of the picture, with the range of its trials if it was measured."""

    kind: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CheckPlot:
    """The bars of one exercise, in one metric, and the range that the exercise accepts, if it names one."""

    metric: Metric
    bars: tuple[Bar, ...]
    accepted: tuple[float, float] | None
    accepted_words: str


def check_plot(row: Row, baseline: Figure | None) -> CheckPlot | None:
    """The plot of an exercise, in the metric of its prediction, else its main metric or a check's; None without one.

    baseline  the capacity of the case that ratios are to
    """
    asked = row.prediction
    names = [row.measured.metric, *(verdict.metric for verdict in row.verdicts)]
    main = next((one for name in names if (one := row.of(name))), None)
    metric, figure = (asked.metric, asked.figure) if asked else (main.metric, main.figure) if main else (None, None)
    if metric is None or figure is None:
        return None
    bars = [Bar("measured", figure.median, figure.low, figure.high)]
    if asked:
        bars.insert(0, Bar("predicted", asked.value, asked.value, asked.value))
    if baseline and metric.name == MAIN_METRIC:
        bars.append(Bar("baseline", baseline.median, baseline.low, baseline.high))
    own = [v for v in row.verdicts if v.metric == metric.name and v.relative_to is None]
    if asked and asked.traffic_class:
        own = [v for v in own if v.check == f"{metric.name}-{asked.traffic_class}"]
    verdict = next(iter(own), None)
    return CheckPlot(
        metric=metric,
        bars=tuple(bars),
        accepted=(verdict.low, verdict.high) if verdict else None,
        accepted_words=expected_range(verdict) if verdict else "",
    )


def check_svg(plot: CheckPlot, label: str) -> str:
    """The plot as an <svg> element; `label` says what it shows to those who do not see it."""
    most = _longest(plot)
    bottom = len(plot.bars) * ROW + 4
    height = bottom + (ROW - 8 if plot.accepted else 4)
    looks = f'font-family="system-ui, sans-serif" font-size="{FONT}"'
    lines = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}" {looks}>']
    if plot.accepted:
        low, high = (max(0.0, min(1.0, bound / most)) for bound in plot.accepted)
        left, width = LEFT + low * MAX_BAR, max(3.0, (high - low) * MAX_BAR)
        lines.append(
            f'<rect x="{left:.1f}" y="0" width="{width:.1f}" height="{bottom}" fill="{ACCEPTED}" fill-opacity="0.18"/>'
            f'<line x1="{left:.1f}" x2="{left:.1f}" y1="0" y2="{bottom}" stroke="{ACCEPTED}" stroke-width="1.5"/>'
            f'<rect x="{LEFT}" y="{bottom + 9}" width="12" height="12" fill="{ACCEPTED}" fill-opacity="0.4"/>'
            f'<text x="{LEFT + 18}" y="{bottom + 20}" fill="currentColor">'
            f"accepted: {escape(plot.accepted_words)}</text>"
        )
    lines += [_bar(bar, plot.metric, index, most) for index, bar in enumerate(plot.bars)]
    return "\n".join([*lines, "</svg>"])


def _longest(plot: CheckPlot) -> float:
    """The value at the end of the longest bar; the accepted range begins within it."""
    bounds: Sequence[float] = plot.accepted or ()
    values = [*(bar.high for bar in plot.bars), *(bound for bound in bounds if math.isfinite(bound))]
    return max(values) or 1.0


def _bar(bar: Bar, metric: Metric, index: int, most: float) -> str:
    top = index * ROW + 6
    middle, end = top + 11, LEFT + bar.value / most * MAX_BAR
    low, high = (LEFT + value / most * MAX_BAR for value in (bar.low, bar.high))
    spread = f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="currentColor" stroke-width="2"/>' if high > low else ""
    return (
        f'<text x="{LEFT - 8}" y="{top + 16}" text-anchor="end" fill="currentColor">{bar.kind}</text>'
        f'<rect x="{LEFT}" y="{top}" width="{max(1.0, end - LEFT):.1f}" height="22" rx="2" '
        f'fill="{COLOURS[bar.kind]}" fill-opacity="0.75"/>{spread}'
        f'<text x="{WIDTH - 2}" y="{top + 16}" text-anchor="end" fill="currentColor">'
        f"{escape(quantity(bar.value, metric))}</text>"
    )
