# SPDX-License-Identifier: GPL-2.0-or-later
"""A picture of what a packet costs on a modelled core: instructions at full width, and what it waits for."""

from collections.abc import Sequence

from fwlab_coresim.figures import CoreFigures
from matplotlib.figure import Figure as Drawing

from fwlab.checkout.project import find_project
from fwlab.report.formatting import digits
from fwlab.report.plot import COLOURS
from tools.core_ratios import modelled_cases

WIDTH_IN, BAR_IN, AROUND_IN = 8.0, 0.36, 1.3
#: What a bar consists of, and its colour.
PARTS = (
    ("instructions, at full width", COLOURS[6]),
    ("waits for caches, memory and translations", COLOURS[0]),
    ("waits for mispredicted branches", COLOURS[1]),
    ("locked instructions", COLOURS[3]),
)


def cycles_of(lab: str, core: str, rows: Sequence[tuple[str, str]]) -> Drawing:
    """A bar for each (case, words), from the lab's newest modelled figures of this core. Raises KeyError."""
    cases = modelled_cases(find_project(), lab)[core]
    found = [(words, cases[case]) for case, words in rows]
    drawing = Drawing(figsize=(WIDTH_IN, AROUND_IN + BAR_IN * len(rows)), layout="constrained")
    axes = drawing.subplots()
    most = max(one.cycles for _, one in found)
    for place, (_, one) in enumerate(found):
        left = 0.0
        for (_, colour), part in zip(PARTS, parts(one), strict=True):
            axes.barh(place, part, left=left, height=0.62, color=colour, alpha=0.8)
            left += part
        words = f"{one.cycles:,.0f}, of {digits(one.instructions)} instructions"
        axes.text(one.cycles + most * 0.01, place, words, va="center", fontsize=9)
    axes.set_yticks(range(len(found)), [words for words, _ in found])
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.42)
    axes.set_xlabel(f"cycles per packet, {core}")
    for name, colour in PARTS:
        axes.barh(0, 0, color=colour, alpha=0.8, label=name)
    drawing.legend(loc="outside lower center", ncols=2, fontsize=9)
    return drawing


def parts(one: CoreFigures) -> tuple[float, float, float, float]:
    """The cycles of each part of a bar, in the order of PARTS."""
    waits = [one.cycles * share for share in (one.memory, one.branches, one.locks)]
    return one.cycles - sum(waits), waits[0], waits[1], waits[2]
