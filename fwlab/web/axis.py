# SPDX-License-Identifier: GPL-2.0-or-later
"""The axis of an exercise's figure: a prediction is dragged on it, and each trial becomes a dot above it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from fwlab.model.metric import Metric
from fwlab.report.check_plot import COLOURS
from fwlab.report.formatting import quantity

#: By unit, the decades of a logarithmic axis: exponents of ten. A share has a linear axis, from 0 to 1.
DECADES = {"pps": (3, 6), "cps": (2, 5), "count": (0, 6)}
#: Steps of the slider from one end to the other, and significant digits of what it is set to.
STEPS, DIGITS = 300, 2
#: The drawing: its width and margins, where the axis is, the distance and radius of dots, how many are in a column.
WIDTH, MARGIN, BASE, PITCH, RADIUS, COLUMN = 420, 36, 66, 10, 4, 5


@dataclass(frozen=True)
class Axis:
    """An axis of this metric. A place on it is a share of its length."""

    metric: Metric

    @property
    def _decades(self) -> tuple[int, int] | None:
        return None if self.metric.unit == "ratio" else DECADES.get(self.metric.unit, DECADES["count"])

    def place(self, value: float) -> float:
        """Where the value is, from 0 to 1; what is beyond the axis is at its end."""
        if self._decades is None:
            return min(1.0, max(0.0, value))
        first, last = self._decades
        return min(1.0, max(0.0, (math.log10(max(value, 1e-9)) - first) / (last - first)))

    def value(self, place: float) -> float:
        """The value there, rounded."""
        if self._decades is None:
            return round(place, DIGITS)
        first, last = self._decades
        return float(f"{10 ** (first + place * (last - first)):.{DIGITS}g}")

    def ticks(self) -> list[tuple[float, str]]:
        """The places that are named, and their names."""
        if self._decades is None:
            values = [0.0, 0.25, 0.5, 0.75, 1.0]
        else:
            values = [10.0**exponent for exponent in range(self._decades[0], self._decades[1] + 1)]
        show = self.metric.display
        return [(self.place(value), f"{value * show.factor:g} {show.unit}".strip()) for value in values]


def slider(axis: Axis, value: float | None, on_change: Callable[[float], object]) -> None:
    """The axis with a handle, for mouse, finger and arrow keys. `on_change` gets the value that was chosen."""

    def moved(event: ValueChangeEventArguments[Any]) -> None:
        chosen = axis.value(event.value / STEPS)
        event.sender.props["label-value"] = quantity(chosen, axis.metric)
        on_change(chosen)

    at = 0.5 if value is None else axis.place(value)
    made = ui.slider(min=0, max=STEPS, value=round(at * STEPS), on_change=moved).mark("axis").classes("axis")
    made.props["aria-label"] = f"Your prediction of {axis.metric.display.label}"
    made.props["label"] = True
    made.props["label-value"] = "drag" if value is None else quantity(value, axis.metric)
    made.props["marker-labels"] = [{"value": round(place * STEPS), "label": name} for place, name in axis.ticks()]


def trials_svg(axis: Axis, trials: Sequence[float], predicted: float | None) -> str:
    """Trials as dots above the axis, those of one place on top of each other; the prediction as a line."""

    def x(place: float) -> float:
        return MARGIN + place * (WIDTH - 2 * MARGIN)

    said = f"{len(trials)} trials" + (f", the last {quantity(trials[-1], axis.metric)}" if trials else "")
    lines = [
        f'<svg viewBox="0 0 {WIDTH} {BASE + 24}" role="img" aria-label="{escape(said)}" font-size="12">',
        f'<path d="M{MARGIN} {BASE}H{WIDTH - MARGIN}" stroke="currentColor"/>',
    ]
    lines += [
        f'<path d="M{x(place):.1f} {BASE}v5" stroke="currentColor"/><text x="{x(place):.1f}" y="{BASE + 18}" '
        f'text-anchor="middle" fill="currentColor">{escape(name)}</text>'
        for place, name in axis.ticks()
    ]
    if predicted is not None:
        lines.append(
            f'<path d="M{x(axis.place(predicted)):.1f} {BASE}V4" stroke="{COLOURS["predicted"]}" stroke-width="3">'
            f"<title>predicted {escape(quantity(predicted, axis.metric))}</title></path>"
        )
    lines += [
        f'<circle cx="{x(axis.place(value)):.1f}" cy="{BASE - PITCH * (1 + number % COLUMN)}" r="{RADIUS}" '
        f'fill="{COLOURS["measured"]}"><title>{escape(quantity(value, axis.metric))}</title></circle>'
        for number, value in enumerate(trials)
    ]
    return "\n".join([*lines, "</svg>"])
